"""Records whole in a loader: every format whose records are rows or JSON, in a true order, from threads, to be collated."""

import json
import pickle
import threading

import foreign_cases
import numpy as np
import pytest
import torch
from foreign_cases import GOLDEN, same

import windrow as wr

GROUPS = ("arrow", "litdata", "mds", "parquet", "records", "webdataset")


def row_cases():
    """Cases whose records are rows, or values of their own."""
    return list(each_case())


def each_case():
    for group in GROUPS:
        for name in foreign_cases.names(group):
            case = json.loads((GOLDEN / group / name / "case.json").read_text())
            if case["records"] not in ("error", "numbers") and not case.get("error_ok"):
                yield pytest.param(GOLDEN / group / name, case, id=f"{group}/{name}")


def opened(folder, case):
    return wr.open(folder / case["open"], **case["options"])


@pytest.fixture
def pages(tmp_path):
    """60 JSON records of a text, a number and three numbers."""
    path = tmp_path / "pages.jsonl"
    lines = [{"text": f"page {i}", "label": i, "box": [i, i + 0.5, 2 * i]} for i in range(60)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return wr.open(path)


@pytest.fixture
def pictures():
    """Samples of text, a class, an array and a picture."""
    return wr.open(GOLDEN / "webdataset" / "mixed")


@pytest.mark.parametrize(("folder", "case"), row_cases())
def test_an_epoch_gives_each_record_once_as_the_data_set_gives_it(folder, case):
    ds = opened(folder, case)
    view = ds.rows()
    assert len(view) == len(ds)
    if len(ds) == 0:
        return
    assert same(view[-1], ds[-1])
    assert same(view[:2], ds[:2])
    # The order by number, from a view that numbers its samples.
    order = [row["position"] for row in sorted(places(view, 3), key=lambda row: row["position"])]
    assert order == list(range(len(ds)))
    numbers = [row["sample"] for row in sorted(places(view, 3), key=lambda row: row["position"])]
    delivered = [record for batch in wr.Loader(view, 3, seed=3, drop_last=False, epochs=1) for record in batch]
    assert same(delivered, [ds[number] for number in numbers])
    assert sorted(numbers) == list(range(len(ds)))


def places(view, seed):
    loader = wr.Loader(view, 3, seed=seed, drop_last=False)
    return [row for step in range(len(loader)) for row in wr.trace(loader, step=step)]


def all_rows(view, **options):
    return [record for batch in wr.Loader(view, **options) for record in batch]


def test_threads_and_ranks_change_nothing(pages):
    view = pages.rows()
    alone = all_rows(view, batch_size=8, seed=1, num_threads=1, epochs=1)
    for threads in (0, 4):
        assert all_rows(view, batch_size=8, seed=1, num_threads=threads, prefetch=7, epochs=1) == alone
    ranks = [wr.Loader(view, global_batch_size=8, seed=1, rank=rank, world_size=3) for rank in range(3)]
    shared = [[record for part in parts for record in part] for parts in zip(*ranks, strict=True)]
    assert [record for batch in shared for record in batch] == alone


def test_a_run_continues_exactly_on_other_ranks(pages):
    view = pages.rows()

    def ranks(world):
        return [wr.Loader(view, 6 // world, seed=5, rank=rank, world_size=world) for rank in range(world)]

    two = ranks(2)
    for loader in two:
        for _ in range(5):
            next(loader)
    state = json.loads(json.dumps(two[0].state_dict()))
    assert "view=rows;" in state["plan"]
    three = ranks(3)
    for loader in three:
        loader.load_state_dict(state)
    for _ in range(8):
        a, b = (sum((next(loader) for loader in loaders), []) for loaders in (two, three))
        assert a == b


def test_columns_and_stack_are_part_of_the_plan_and_collate_is_not(pages):
    state = wr.Loader(pages.rows(), 4).state_dict()
    wr.Loader(pages.rows(), 4, collate=len).load_state_dict(state)
    for other in (pages.rows(["text"]), pages.rows(stack=True), pages.rows(["text", "label"])):
        with pytest.raises(wr.MismatchError):
            wr.Loader(other, 4).load_state_dict(state)
    one, other = (pages.rows(columns) for columns in (["label", "text"], ["text", "label"]))
    with pytest.raises(wr.MismatchError, match="layout"):
        wr.Loader(one, 4).load_state_dict(wr.Loader(other, 4).state_dict())


def test_columns_in_the_order_asked(pages, pictures):
    assert list(pages.rows(["label", "text"])[3].items()) == [("label", 3), ("text", "page 3")]
    names = [name for name in pictures[0] if not name.startswith("__")][::-1]
    view = pictures.rows(names)
    assert [list(row) for row in view] == [names] * len(pictures)
    assert same(view[1], {name: pictures[1][name] for name in names})
    batch = next(wr.Loader(view, 2, shuffle=False))
    assert same(batch, view[:2])


@pytest.mark.parametrize(("folder", "case"), [c for c in row_cases() if c.id in ("mds/encodings", "parquet/kinds", "arrow/saved_kinds", "webdataset/mixed", "records/tf_example")])
def test_columns_of_typed_formats(folder, case):
    ds = opened(folder, case)
    names = list(ds[0])[::-1]
    assert same(ds.rows(names)[0], {name: ds[0][name] for name in names})
    assert list(ds.rows(names)[0]) == names
    with pytest.raises(wr.ConfigError, match='(no column is called|no key) "not there"') as error:
        ds.rows(["not there"])
    assert names[0] in str(error.value)


def test_columns_that_are_not_there(pages, pictures):
    with pytest.raises(wr.ConfigError, match="no key \"none\".*text, label, box"):
        pages.rows(["text", "none"])
    with pytest.raises(wr.ConfigError, match="twice"):
        pages.rows(["text", "text"])
    for columns in ([], [next(iter(pictures[0]))] * 2):
        with pytest.raises(wr.ConfigError, match="expected each once"):
            pictures.rows(columns)
    with pytest.raises(TypeError):
        pages.rows("text")
    with pytest.raises(TypeError, match="stak"):
        pages.rows(stak=True)


def test_values_without_names_have_no_columns(tmp_path):
    wr.write(tmp_path / "a.tfrecord", [{"value": f"{i}".encode()} for i in range(3)], to="tfrecord")
    ds = wr.open(tmp_path / "a.tfrecord", payload="bytes")
    assert all_rows(ds.rows(), batch_size=3, shuffle=False, epochs=1) == [b"0", b"1", b"2"]
    assert next(wr.Loader(ds.rows(stack=True), 3, shuffle=False)) == {"value": [b"0", b"1", b"2"]}
    with pytest.raises(wr.ConfigError, match="values without names"):
        ds.rows(["value"])


def test_numbers_are_refused_with_the_views_that_take_them(tmp_path):
    path = tmp_path / "tokens.bin"
    np.arange(10, dtype=np.uint16).tofile(path)
    with pytest.raises(wr.ConfigError, match=r"numbers[\s\S]*the view records"):
        wr.open(path, dtype="uint16").rows()
    with pytest.raises(wr.ConfigError, match="keep the dtypes"):
        wr.Loader(wr.open(GOLDEN / "webdataset" / "mixed").rows(), 2, dtype="int32")


def test_stacked_columns(pages):
    view = pages.rows(["box", "text", "label"], stack=True)
    batch = next(wr.Loader(view, 4, shuffle=False))
    assert list(batch) == ["box", "text", "label"]
    assert batch["text"] == [f"page {i}" for i in range(4)]
    assert batch["label"].dtype == np.int64
    assert batch["label"].tolist() == [0, 1, 2, 3]
    assert batch["box"].tolist() == [[i, i + 0.5, 2 * i] for i in range(4)]
    batch["box"][0] = 7
    # One sample stays a record.
    assert view[1] == {"box": [1, 1.5, 2], "text": "page 1", "label": 1}
    assert view.batch([2, 1])["label"].tolist() == [2, 1]
    assert all_rows(pages.rows(), batch_size=6, epochs=1)[0]["label"] == next(wr.Loader(pages.rows(stack=True), 6))["label"][0]


def test_arrays_of_one_shape_stack_in_their_dtype(tmp_path):
    rows = [{"image": np.full((2, 3), i, np.uint8), "name": f"{i}", "score": i / 2} for i in range(5)]
    wr.write(tmp_path / "out", rows, to="mds")
    view = wr.open(tmp_path / "out").rows(stack=True)
    batch = next(wr.Loader(view, 5, shuffle=False))
    assert (batch["image"].dtype, batch["image"].shape) == (np.uint8, (5, 2, 3))
    assert batch["image"][4].tolist() == [[4] * 3] * 2
    assert batch["score"].tolist() == [0, 0.5, 1, 1.5, 2]
    assert batch["name"] == list("01234")


def test_what_does_not_stack_is_named(tmp_path):
    rows = [{"image": np.zeros((2, 3 + (i == 4)), np.uint8), "i": i} for i in range(8)]
    wr.write(tmp_path / "out", rows, to="mds")
    ds = wr.open(tmp_path / "out")
    loader = wr.Loader(ds.rows(stack=True), 8, shuffle=False)
    with pytest.raises(wr.MismatchError, match=r'column "image": uint8 \[2, 4\] here, uint8 \[2, 3\] in record 0') as error:
        next(loader)
    assert error.value.record == 4
    assert "out" in str(error.value.path)
    assert "collate" in error.value.hint
    # As they are, they come.
    assert len(next(wr.Loader(ds.rows(), 8))) == 8


def test_json_that_does_not_stack(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n{"a": null}\n{"b": 1}\n')
    view = wr.open(path).rows(stack=True)
    with pytest.raises(wr.MismatchError, match='column "a": null here') as error:
        view.batch([0, 1])
    assert (error.value.record, str(error.value.path)) == (1, str(path))
    with pytest.raises(wr.MismatchError, match='no column "a" here, but in record 0'):
        view.batch([0, 2])
    assert view.batch([1])["a"] == [None]


def test_a_stacked_column_has_one_dtype_in_every_batch_and_rank(tmp_path):
    path = tmp_path / "scores.jsonl"
    path.write_text("".join(json.dumps({"score": 1 if i % 5 else 0.5}) + "\n" for i in range(40)))
    view = wr.open(path).rows(stack=True)
    with pytest.raises(wr.MismatchError, match=r'column "score": int64 \[\] here, float64 \[\] in record 0') as error:
        next(wr.Loader(view, 4, shuffle=False))
    assert error.value.record == 1
    assert "as 1.0" in error.value.hint
    for rank in range(2):
        with pytest.raises(wr.MismatchError, match='column "score"'):
            list(wr.Loader(view, 4, seed=0, epochs=1, rank=rank, world_size=2))
    path.write_text("".join(json.dumps({"score": 1.0 if i % 5 else 0.5}) + "\n" for i in range(40)))
    batches = wr.Loader(wr.open(path).rows(stack=True), 4, seed=0, epochs=1)
    assert {batch["score"].dtype for batch in batches} == {np.dtype(np.float64)}


def test_collate_gets_the_rows_and_makes_the_batch(pictures):
    def decoded(rows):
        assert isinstance(rows, list)
        return np.stack([np.frombuffer(row["__key__"].encode(), np.uint8)[:2] for row in rows]), len(rows)

    view = pictures.rows()
    pixels, n = next(wr.Loader(view, 2, collate=decoded))
    assert (pixels.shape, n) == ((2, 2), 2)
    assert next(wr.Loader(pictures.rows(stack=True, columns=["__key__"]), 2, collate=list)) == ["__key__"]


def test_an_exception_of_collate_arrives_as_it_is_and_nothing_is_lost(pages):
    class Odd(Exception):
        pass

    failing = [True]

    def collate(rows):
        if failing[0]:
            raise Odd("not this one")
        return rows

    view = pages.rows()
    loader = wr.Loader(view, 4, seed=2, collate=collate)
    with pytest.raises(Odd, match="^not this one$"):
        next(loader)
    assert loader.samples == 0
    failing[0] = False
    assert next(loader) == next(wr.Loader(view, 4, seed=2))


def test_two_sources_in_a_mix(pages, tmp_path):
    wr.write(tmp_path / "more", [{"text": f"more {i}", "label": -i} for i in range(30)], to="mds")
    more = wr.open(tmp_path / "more")
    columns = ["text", "label"]
    mixed = wr.mix({"pages": (pages.rows(columns), 0.75), "more": (more.rows(columns), 0.25)}, stop="all")
    rows = all_rows(mixed, batch_size=8, epochs=1, seed=4)
    texts = [row["text"] for row in rows]
    assert all(sum(text.startswith("more") for text in texts[at : at + 8]) == 2 for at in range(0, 64, 8))
    assert {text for text in texts if text.startswith("more")} == {f"more {i}" for i in range(30)}
    assert mixed[0] in (pages.rows(columns)[0], more.rows(columns)[0])
    assert mixed[:3] == [mixed[i] for i in range(3)]
    assert mixed.coverage()["more"]["used"] == 30
    found = wr.find(wr.Loader(mixed, 8, seed=4), record=7, part="more")
    assert texts[found[0]["step"] * 8 + found[0]["row"]] == "more 7"
    stacked = wr.mix({"a": (pages.rows(columns, stack=True), 0.5), "b": (more.rows(columns, stack=True), 0.5)})
    assert next(wr.Loader(stacked, 4))["label"].shape == (4,)


def test_a_mix_of_other_rows_is_refused(pages, pictures, tmp_path):
    wr.write(tmp_path / "more", [{"text": "a", "extra": 1}], to="mds")
    more = wr.open(tmp_path / "more")
    with pytest.raises(wr.MismatchError, match=r'columns=\["text"\]\) and rows\(columns=\["extra"\]'):
        wr.mix({"pages": (pages.rows(["text"]), 1), "more": (more.rows(["extra"]), 1)})
    with pytest.raises(wr.MismatchError, match='only "more" has "extra", "text"'):
        wr.mix({"pictures": (pictures.rows(), 1), "more": (more.rows(), 1)})
    with pytest.raises(wr.MismatchError, match="stack=true"):
        wr.mix({"a": (pages.rows(), 1), "b": (pages.rows(stack=True), 1)})
    path = tmp_path / "tokens.bin"
    np.arange(10, dtype=np.uint16).tofile(path)
    with pytest.raises(wr.MismatchError, match='"rows" gives rows, "tokens" tensors'):
        wr.mix({"tokens": (wr.open(path, dtype="uint16").pack(2), 1), "rows": (pages.rows(), 1)})


def test_trace_and_find_name_files_and_bytes(pages):
    loader = wr.Loader(pages.rows(["text"]), 4, seed=6)
    row = wr.trace(loader, step=2, row=1)[0]
    place = row["reads"][0]["locations"][0]
    with open(place["file"], "rb") as file:
        file.seek(place["start"])
        line = file.read(place["size"])
    assert json.loads(line)["text"] == f"page {row['sample']}"
    assert [(found["step"], found["row"]) for found in wr.find(loader, record=row["sample"])] == [(2, 1)]
    assert wr.trace(loader.recipe(), step=2, row=1)[0] == row
    assert pages.rows().coverage() == {"used": 60, "repeated": 0, "padded": 0, "unseen": 0, "skipped_records": 0}


@pytest.mark.parametrize("threads", [0, 1, 4])
def test_a_damaged_record_is_named_and_nothing_hangs(tmp_path, threads):
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"a": i}) for i in range(40)]
    lines[17] = '{"a": oops}'
    path.write_text("\n".join(lines) + "\n")
    loader = wr.Loader(wr.open(path).rows(), 4, shuffle=False, num_threads=threads)
    assert [len(next(loader)) for _ in range(4)] == [4] * 4
    for _ in range(2):
        with pytest.raises(wr.CorruptError, match="expected JSON") as error:
            next(loader)
        assert (error.value.record, str(error.value.path)) == (17, str(path))
    assert loader.samples == 16


def test_damaged_shards_name_file_and_record(tmp_path):
    rows = [{"text": f"row {i}", "data": bytes(2000)} for i in range(20)]
    file = tmp_path / "out.tfrecord"
    wr.write(file, rows, to="tfrecord")
    data = bytearray(file.read_bytes())
    data[len(data) // 2 + 300] ^= 0xFF
    file.write_bytes(data)
    view = wr.open(file, trust=True).rows()
    with pytest.raises(wr.CorruptError) as error:
        all_rows(view, batch_size=2, num_threads=3, epochs=1)
    assert str(error.value.path) == str(file)
    assert error.value.record in (9, 10, 11)


def test_numbers_beyond_64_bits_come_whole(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 123456789012345678901234567890, "b": -0, "c": [18446744073709551615], "a2": {"x": -9223372036854775809}}\n')
    ds = wr.open(path)
    assert ds.rows()[0] == ds[0]
    assert [type(value) for value in ds.rows()[0].values()] == [type(value) for value in ds[0].values()]
    assert ds.rows(["a"])[0] == {"a": 123456789012345678901234567890}


def test_json_that_is_no_object(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('"one"\n[1, 2]\nnull\n3.5\n')
    ds = wr.open(path, format="jsonl")
    assert all_rows(ds.rows(), batch_size=4, shuffle=False, epochs=1) == ["one", [1, 2], None, 3.5]
    with pytest.raises(wr.MismatchError, match='column "value"'):
        ds.rows(stack=True).batch([0, 3])


def test_large_values_keep_their_memory(tmp_path):
    images = np.random.default_rng(1).integers(0, 255, (6, 64, 64, 3), np.uint8)
    wr.write(tmp_path / "out", [{"image": image, "raw": image.tobytes()} for image in images], to="mds")
    ds = wr.open(tmp_path / "out")
    batch = next(wr.Loader(ds.rows(), 6, shuffle=False))
    for i, row in enumerate(batch):
        assert (row["image"] == images[i]).all()
        assert row["raw"] == images[i].tobytes()
        row["image"] += 1
        # Not numpy's own memory, so it was not copied into it.
        assert row["image"].flags.writeable
        assert not row["image"].flags.owndata
    kept = batch[2]["image"]
    del batch
    assert (kept == images[2] + 1).all()
    assert not ds[0]["image"].flags.writeable


def test_views_of_rows_pickle_and_show_themselves(pages):
    view = pages.rows(["label"], stack=True)
    again = pickle.loads(pickle.dumps(view))
    assert again[5] == {"label": 5}
    assert next(wr.Loader(again, 3, seed=1))["label"].tolist() == next(wr.Loader(view, 3, seed=1))["label"].tolist()
    assert "rows" in repr(view)
    assert "label JSON" in repr(view)


def test_memory_is_bounded_by_prefetch(tmp_path):
    size = 1 << 20
    with (tmp_path / "a.jsonl").open("w") as file:
        for i in range(64):
            file.write(json.dumps({"i": i, "text": "x" * size}) + "\n")
    loader = wr.Loader(wr.open(tmp_path / "a.jsonl").rows(), 2, num_threads=2, prefetch=2)
    most = 0
    for batch in loader:
        assert len(batch[0]["text"]) == size
        del batch
        most = max(most, anonymous_bytes())
    first = anonymous_bytes()
    # Of 64 MiB of texts, the batches ahead and a few on their way.
    assert most - first < 40 * size
    stats = loader.stats()
    assert stats["samples"] == 64
    assert stats["bytes"] == 64 * (size + 8)


def anonymous_bytes():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon"))


def test_threads_of_python_share_a_loader_of_rows(pages):
    loader = wr.Loader(pages.rows(), 4, epochs=1)
    seen = []

    def take():
        for batch in loader.stream():
            seen.extend(row["label"] for row in batch)

    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(60))


class TestTorch:
    """What torch's loader and streams make of rows."""

    def test_stacked_arrays_are_tensors(self, pages):
        batch = next(wr.Loader(pages.rows(stack=True), 4, framework="torch", shuffle=False))
        assert batch["label"].dtype == torch.int64
        assert batch["box"].shape == (4, 3)
        assert batch["text"][3] == "page 3"
        # Rows stay as they are.
        assert next(wr.Loader(pages.rows(), 2, framework="torch", shuffle=False)) == pages[:2]

    @pytest.mark.parametrize("method", ["fork", "spawn"])
    def test_worker_processes(self, pages, method):
        loader = torch.utils.data.DataLoader(
            pages.rows(), batch_size=8, shuffle=True, num_workers=2, multiprocessing_context=method, collate_fn=list
        )
        rows = [row for batch in loader for row in batch]
        assert sorted(row["label"] for row in rows) == list(range(60))
        assert all(row == pages[row["label"]] for row in rows)

    def test_the_collate_function_of_torch(self, tmp_path):
        wr.write(tmp_path / "out", [{"image": np.full((2, 2), i, np.float32), "name": str(i)} for i in range(6)], to="mds")
        view = wr.open(tmp_path / "out").rows()
        for workers in (0, 1):
            batch = next(iter(torch.utils.data.DataLoader(view, batch_size=3, num_workers=workers)))
            assert batch["image"].shape == (3, 2, 2)
            assert batch["name"] == ["0", "1", "2"]

    def test_streams(self, pages):
        stream = wr.torch.Stream(pages.rows(), seed=9, rank=0, world_size=1)
        rows = list(stream)
        assert rows == all_rows(pages.rows(), batch_size=1, seed=9, epochs=1)
        batched = wr.torch.Stream(pages.rows(stack=True), 4, seed=9, rank=0, world_size=1)
        batch = next(iter(torch.utils.data.DataLoader(batched, batch_size=None)))
        assert batch["label"].tolist() == [row["label"] for row in rows[:4]]
        single = next(iter(wr.torch.Stream(pages.rows(stack=True), seed=9, rank=0, world_size=1)))
        assert (int(single["label"]), single["text"]) == (rows[0]["label"], rows[0]["text"])

    def test_a_forked_child_reads_on(self, pages):
        import multiprocessing

        loader = wr.Loader(pages.rows(), 4, seed=3, num_threads=2)
        next(loader)
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        child = context.Process(target=lambda: queue.put(next(loader)))
        child.start()
        assert queue.get() == next(loader)
        child.join()
