"""Batches on a device: the loader's own, and one that is read ahead counts nowhere."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

import windrow as wr


@pytest.fixture
def view(tmp_path: Path) -> wr.View:
    np.arange(2000, dtype=np.uint16).tofile(tmp_path / "tokens.bin")
    return wr.open(tmp_path / "tokens.bin", dtype="uint16").pack(16)


def loader(view: wr.View, **options: object) -> wr.Loader:
    return wr.Loader(view, **({"batch_size": 8, "seed": 3, "framework": "torch"} | options))


def ids(batch: dict[str, torch.Tensor]) -> list[int]:
    return batch["input_ids"].cpu()[:, 0].tolist()


# Where a GPU is, copies to it are tried too.
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
def test_batches_are_those_of_the_loader(view: wr.View, device: str) -> None:
    plain = loader(view)
    expected = [[ids(batch) for batch in plain] for _ in range(3)]
    batches = wr.torch.OnDevice(loader(view), device)
    found = []
    for _ in range(3):
        epoch = []
        for batch in batches:
            assert {field.device.type for field in batch.values()} == {device}
            epoch.append(ids(batch))
        found.append(epoch)
    assert found == expected and len(batches) == len(expected[0]) > 10
    endless = wr.torch.OnDevice(loader(view), device).stream()
    assert [ids(next(endless)) for _ in range(2 * len(batches))] == expected[0] + expected[1]


@pytest.mark.parametrize("device", DEVICES)
def test_a_state_is_of_the_batches_that_were_given(view: wr.View, device: str) -> None:
    plain, batches = loader(view), wr.torch.OnDevice(loader(view), device)
    for step, (batch, expected) in enumerate(zip(batches, plain, strict=True)):
        assert ids(batch) == ids(expected)
        state = batches.state_dict()
        assert state == plain.state_dict()
        if step % 5 == 0:
            rest = loader(view)
            rest.load_state_dict(state)
            moved = wr.torch.OnDevice(loader(view), device)
            moved.load_state_dict(state)
            assert ids(next(iter(moved))) == ids(next(rest))
    assert batches.state_dict() == plain.state_dict()


def test_a_batch_that_was_read_ahead_comes_after_a_break(view: wr.View) -> None:
    plain, batches = loader(view), wr.torch.OnDevice(loader(view), "cpu")
    for stop in [1, 4, 2, len(plain), 3]:
        found, expected = [], []
        for source, into in [(batches, found), (plain, expected)]:
            for batch in source:
                into.append(ids(batch))
                if len(into) == stop:
                    break
        assert found == expected
        assert batches.state_dict() == plain.state_dict()
    batches.set_epoch(5)
    plain.set_epoch(5)
    assert ids(next(iter(batches))) == ids(next(iter(plain)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("begin", ["stream", "__iter__"])
def test_an_iterator_goes_where_its_loader_goes(view: wr.View, device: str, begin: str) -> None:
    def found(source: wr.Loader | wr.torch.OnDevice) -> list[object]:
        batches, saved, found = getattr(source, begin)(), source.state_dict(), []

        def take(n: int) -> None:
            found.extend((ids(batch), source.state_dict()) for batch in islice(batches, n))

        take(5)
        source.load_state_dict(saved)
        take(3)
        source.set_epoch(0)
        take(2)
        with pytest.raises(wr.WindrowError):
            source.load_state_dict({**saved, "version": 99})
        take(1)
        # All batches of the epoch, the end of it not seen.
        source.load_state_dict(saved)
        take(len(source))
        source.load_state_dict(saved)
        take(2)
        source.set_epoch(1)
        take(2)
        return found

    plain = found(loader(view))
    assert found(wr.torch.OnDevice(loader(view), device)) == plain
    assert plain[5] == plain[0]


@pytest.mark.parametrize("device", DEVICES)
def test_iterators_share_one_place(view: wr.View, device: str) -> None:
    def found(source: wr.Loader | wr.torch.OnDevice) -> list[object]:
        one, other, endless = iter(source), iter(source), source.stream()
        order = [one, other, one, one, endless, other, other, endless, one, *[other] * 20, one, endless, other, endless]
        return [(ids(batch) if (batch := next(batches, None)) else None, source.state_dict()) for batches in order]

    assert found(wr.torch.OnDevice(loader(view), device)) == found(loader(view))


def test_an_error_of_a_batch_that_is_left_out_is_not_raised(view: wr.View) -> None:
    def refuses_some(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        if ids(batch) == refused:
            raise ValueError("refused")
        return batch

    expected = [ids(batch) for batch in loader(view)]
    refused = expected[3]
    source = wr.torch.OnDevice(loader(view, collate=refuses_some), "cpu")
    batches, saved = source.stream(), source.state_dict()
    assert [ids(next(batches)) for _ in range(3)] == expected[:3]
    source.load_state_dict(saved)
    assert ids(next(batches)) == expected[0]


def test_a_device_is_asked_for_by_name(view: wr.View) -> None:
    # torch's device without memory: shapes go there.
    batch = next(iter(wr.torch.OnDevice(loader(view), "meta")))
    assert batch["labels"].device.type == "meta" and batch["labels"].shape == (8, 16)


def test_what_cannot_be_is_said(view: wr.View) -> None:
    if torch.cuda.is_available():
        with pytest.raises(RuntimeError):
            next(iter(wr.torch.OnDevice(loader(view), "cuda:999")))
    else:
        with pytest.raises(wr.ConfigError, match=r"no CUDA device for 'cuda:0'\n  hint: on a machine without a GPU say \"cpu\""):
            wr.torch.OnDevice(loader(view), "cuda:0")
    with pytest.raises(wr.ConfigError, match="batches of numpy arrays"):
        next(iter(wr.torch.OnDevice(loader(view, framework="numpy"), "cpu")))


def test_page_locked_batches_are_those_of_the_loader(view: wr.View) -> None:
    if torch.cuda.is_available():
        pinned = loader(view, pin_memory=True)
        for batch, expected in zip(pinned, loader(view), strict=True):
            assert all(field.is_pinned() for field in batch.values())
            assert ids(batch) == ids(expected)
        assert ids(next(iter(wr.torch.OnDevice(loader(view, pin_memory=True), "cuda")))) == ids(next(loader(view)))
    else:
        with pytest.raises(wr.ConfigError, match=r"torch finds no CUDA device\n  hint: pin_memory=torch.cuda.is_available\(\)"):
            loader(view, pin_memory=True)
    with pytest.raises(wr.ConfigError, match="torch's tensors alone"):
        loader(view, framework="numpy", pin_memory=True)
    assert ids(next(loader(view, pin_memory=False))) == ids(next(loader(view)))


def test_records_and_lists_are_handed_on(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"a": {n}, "b": "x{n}"}}\n' for n in range(8)))
    view = wr.open(tmp_path / "rows.jsonl").rows()
    plain, moved = loader(view, batch_size=2), wr.torch.OnDevice(loader(view, batch_size=2), "cpu")
    assert [batch for batch in moved] == [batch for batch in plain]


@pytest.mark.parametrize("device", DEVICES)
def test_an_error_comes_after_the_batch_before_it(view: wr.View, device: str) -> None:
    def refuses_some(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        if ids(batch) == refused:
            raise ValueError("refused")
        return batch

    refused = [ids(batch) for batch in loader(view)][3]
    plain = loader(view, collate=refuses_some)
    batches = wr.torch.OnDevice(loader(view, collate=refuses_some), device)
    for source in (plain, batches):
        found = []
        with pytest.raises(ValueError, match="refused"):
            for batch in source:
                found.append(ids(batch))
        assert len(found) == 3
    assert batches.state_dict()["samples"] == 24
    # Asked again, it is refused again: nothing was passed over.
    with pytest.raises(ValueError, match="refused"):
        next(iter(batches))
