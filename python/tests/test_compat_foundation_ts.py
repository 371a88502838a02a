"""windrow.compat.foundation_ts: the recorded cases, the document's examples, and what the original left open."""

from __future__ import annotations

import doctest
import gzip
import importlib
import json
import math
import pickle
import pkgutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import windrow as wr
import windrow.compat.foundation_ts as compat
from windrow.compat.foundation_ts.dataset import (
    BinarySequenceDataset,
    ConcatSequenceDataset,
    GeneralSequenceDataset,
    SequenceDataset,
    WindowedDataset,
    build_ts_dataset,
)
from windrow.compat.foundation_ts.dataset.sources import discover_sequence_datasets

GOLDEN = Path(__file__).parents[2] / "testdata" / "golden" / "0_foundation_ts"
CASES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())

# What windrow decided to do instead, by case: an error, or the windows of each sequence.
REFUSED = {
    "06_negative_stride",
    "10_length_runs_past_end",
    "21_file_dict_without_sequence_json",
    "21_file_null_value_json",
    "21_file_object_top_level_json",
    "26_empty_dir",
}
READ: dict[str, list[int]] = {
    "21_file_arch_npz": [],
    "22_build_file_arch_npz": [],
    "21_file_flat_scalars_json": [1],
    "22_build_file_flat_scalars_json": [1],
    "21_file_one_d_npy": [],
    "22_build_file_one_d_npy": [],
    "21_file_nested_2d_json": [1],
    "22_build_file_nested_2d_json": [1],
    "22_build_file_rect_npy_gz": [],
    "29_bad_shard_name": [2, 1],
    "36_meta_unknown_dtype": [2, 1],
    "37_big_endian_dtype": [2, 1],
}
# Its second half stands in the file of another case, or below a folder of shards, which is a leaf here.
LEAF = {"23_directory_walk": 4, "25_json_beside_meta_in_subfolder_is_also_loaded": 3}
# 1000 ± 1e-3 in float32: what is left of the deviation is noise.
ILL_CONDITIONED = "14_dtype_float64_zero"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics are kept apart."""
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))


def told(name: str) -> dict[str, Any]:
    case: dict[str, Any] = json.loads((GOLDEN / name / "case.json").read_text())
    return case


def build(name: str) -> tuple[SequenceDataset, WindowedDataset]:
    """The case's data set and its windows, by the call it was recorded with."""
    case = told(name)
    path, args = GOLDEN / name / case["data_path"], dict(case["args"])
    if case["call"] == "build_ts_dataset":
        windows = build_ts_dataset(path, **args)
        return windows.dataset, windows
    if "pack_sequences=True" in case["call"]:
        args |= {"pack_sequences": True}
    kind = GeneralSequenceDataset if case["call"].startswith("General") else BinarySequenceDataset
    options = {key: args.pop(key) for key in ("transform", "use_mmap") if key in args}
    sequences = kind(path, **options)
    return sequences, WindowedDataset(sequences, **args)


def numbers(values: Any) -> np.ndarray[Any, Any]:
    """Recorded numbers; nan and inf are strings."""
    return np.array(values, np.float64)


def check_window(sample: dict[str, torch.Tensor], expected: dict[str, Any], tolerance: float) -> None:
    names = {"input_ids", "labels", "loss_masks"} | ({"segment_ids", "pack_bucket"} & set(expected))
    assert set(sample) == names
    for field in ("input_ids", "labels"):
        assert sample[field].dtype == torch.float32
        found, wanted = sample[field].numpy().astype(np.float64), numbers(expected[field])
        np.testing.assert_allclose(found, wanted, rtol=2**-23 if tolerance else 1e-7, atol=tolerance)
    for field in names - {"input_ids", "labels"}:
        assert sample[field].dtype == torch.int32
        assert sample[field].tolist() == expected[field]


@pytest.mark.parametrize("name", [n for n in CASES if n not in {*REFUSED, *READ, *LEAF} and "ok" in told(n)["expected"]])
def test_windows_are_the_recorded_ones(name: str) -> None:
    case = told(name)
    sequences, windows = build(name)
    expected = case["expected"]["ok"]
    if "sequences" in expected:
        assert len(sequences) == expected["num_sequences"]
        assert sequences.get_num_tokens() == expected["num_tokens"]["ok"]
        for i, wanted in enumerate(expected["sequences"]["ok"]):
            assert sequences.get_sequence_length_by_idx(i) == wanted["length_by_idx"]
        expected = expected["windowed"]["ok"]
        expected["windows"] = expected["windows"]["ok"]
    elif "num_tokens" in expected:
        assert len(sequences) == expected["num_sequences"]
        assert sequences.get_num_tokens() == expected["num_tokens"]
    assert len(windows) == expected["num_windows"]
    if "window_counts" in expected:
        # Empty data sets are left out, their sequences too.
        assert windows.window_counts == expected["window_counts"]
    if "pack_plan" in expected:
        assert windows.pack_plan == expected["pack_plan"]
    if "pack_bucket_indices" in expected:
        assert {str(k): v for k, v in windows.pack_bucket_indices.items()} == expected["pack_bucket_indices"]
    method = str(case["args"].get("normalization_method")).lower()
    for window in expected["windows"]:
        finite = [abs(float(x)) for x in [*window["input_ids"], *window["labels"]] if math.isfinite(float(x))]
        tolerance = {"zero": 1e-5 + 2**-21 * max(finite, default=0.0), "max": 2**-23}.get(method, 0.0)
        tolerance = 2.0 if name == ILL_CONDITIONED else tolerance
        check_window(windows[window["i"]], window, tolerance)


def recorded_sequences(name: str) -> list[dict[str, Any]]:
    recorded = told(name)["expected"].get("ok", {}).get("sequences", {})
    sequences: list[dict[str, Any]] = recorded.get("ok", [])
    return sequences


@pytest.mark.parametrize("name", [n for n in CASES if n not in REFUSED and recorded_sequences(n)])
def test_sequences_are_the_recorded_ones(name: str) -> None:
    sequences, _ = build(name)
    recorded = recorded_sequences(name)
    assert len(sequences) == len(recorded)
    for i, wanted in enumerate(recorded):
        expected = torch.tensor(numbers(wanted["values"]))
        assert sequences[i].dtype == getattr(torch, wanted["dtype"])
        # Not rounded on the way, so all of them are equal; NaN is where it was.
        assert torch.equal(sequences[i].to(torch.float64).nan_to_num(), expected.nan_to_num())


@pytest.mark.parametrize("name", [n for n in CASES if n not in READ and (n in REFUSED or "error" in told(n)["expected"])])
def test_what_cannot_be_right_is_an_error(name: str) -> None:
    with pytest.raises(wr.WindrowError):
        build(name)


@pytest.mark.parametrize("name", READ)
def test_what_the_original_could_not_read(name: str) -> None:
    _, windows = build(name)
    counts = READ[name]
    assert sum(windows.window_counts) == len(windows)
    assert windows.window_counts == counts or not counts
    assert len(windows) > 0
    for sample in windows:
        assert sample["input_ids"].shape[0] == windows.width and sample["loss_masks"].sum() > 0


@pytest.mark.parametrize("name", LEAF)
def test_a_folder_of_shards_is_a_leaf(name: str) -> None:
    _, windows = build(name)
    expected = told(name)["expected"]["ok"]["windows"]
    found = [sample["input_ids"] for sample in windows]
    recorded = [torch.tensor(window["input_ids"]) for window in expected]
    assert all(any(torch.allclose(row, other) for other in recorded) for row in found)
    assert len(found) == len(expected) - 1 or len(found) == LEAF[name]


def test_what_windrow_tells_of_a_file_beside_it_is_no_series(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(12, dtype=np.float32).reshape(2, 6))
    (tmp_path / "out").mkdir()
    wr.convert(tmp_path / "a.npy", tmp_path / "out" / "a.npy", to="npy")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "a.npy",
        "a.npy.windrow.json",
        "a.npy.windrow.sums",
    ]
    windows = build_ts_dataset(str(tmp_path / "out"), max_length=4, stride=4, normalization_method=None)
    assert len(windows) == len(wr.open(tmp_path / "out")) == 2


def test_an_unknown_method_is_refused_before_the_path_is_looked_at() -> None:
    with pytest.raises(ValueError, match="Unknown normalization method: minmax"):
        build_ts_dataset("nowhere", max_length=8, stride=4, normalization_method="minmax")
    with pytest.raises(FileNotFoundError):
        build_ts_dataset("nowhere", max_length=8, stride=4, normalization_method="MAX")


def shards(folder: Path, sequences: list[list[float]], dtype: str = "float32") -> Path:
    """A folder of one shard, written as the document says."""
    folder.mkdir(parents=True)
    np.concatenate([np.array(s, dtype) for s in sequences]).tofile(folder / "data-1-of-1.bin")
    offsets = np.cumsum([0, *map(len, sequences)]).tolist()
    scales = [{"offset": o, "length": len(s)} for o, s in zip(offsets, sequences, strict=False)]
    meta = {"num_sequences": len(scales), "dtype": dtype, "files": {"data-1-of-1.bin": offsets[-1]}, "scales": scales}
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder


def scale_to_01(seq: torch.Tensor) -> torch.Tensor:
    """The document's custom scaler."""
    seq = seq.to(torch.float32)
    min_val = seq.min()
    max_val = seq.max()
    denom = (max_val - min_val) if max_val != min_val else 1.0
    return (seq - min_val) / denom


def test_the_documents_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shards(tmp_path / "my_dataset", [[10, 11, 12], [20, 21, 22, 23]])
    shards(tmp_path / "data/my_sequences_bin", [list(range(300)), [4.0, 4.0, 4.0]])
    shards(tmp_path / "time300b_selected/sales/m5", [np.sin(np.arange(700)).tolist()])
    (tmp_path / "data/sequences.json").write_text('[{"sequence": [0.1, 0.2, 0.3]}, {"sequence": [1.0, 1.1, 1.2, 1.3]}]')

    ds = build_ts_dataset("my_dataset", max_length=8, stride=4, normalization_method="max")
    assert list(ds[0].keys()) == ["input_ids", "labels", "loss_masks"]
    assert ds[0]["loss_masks"].tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    seq_ds = GeneralSequenceDataset("data/sequences.json")
    win_ds = WindowedDataset(seq_ds, context_length=8, prediction_length=0, stride=4)
    assert len(win_ds) == 2 and seq_ds[0].dtype == torch.float32
    ds = build_ts_dataset(data_path="time300b_selected", max_length=256, stride=64, normalization_method="zero")
    assert len(ds) == 1 + (700 - 257) // 64
    bin_ds = BinarySequenceDataset("data/my_sequences_bin", transform=scale_to_01)
    win_ds = WindowedDataset(bin_ds, context_length=128, prediction_length=0, stride=64)
    assert len(win_ds) == 1 + (300 - 129) // 64 + 1
    assert torch.equal(win_ds[1]["labels"], scale_to_01(torch.arange(300.0))[65:193])
    assert win_ds[-1]["loss_masks"].tolist() == [1, 1] + [0] * 126


def test_python_and_core_cut_the_same(tmp_path: Path) -> None:
    sequences = [np.random.default_rng(n).normal(size=n).round(3).tolist() for n in (40, 1, 7, 2, 19, 8)]
    stored = BinarySequenceDataset(shards(tmp_path / "s", sequences))

    class Mine:
        """Sequences of the user's own."""

        def __len__(self) -> int:
            return len(stored)

        def __getitem__(self, index: int) -> torch.Tensor:
            return stored[index]

        def get_sequence_length_by_idx(self, index: int) -> int:
            return stored.get_sequence_length_by_idx(index)

        def get_num_tokens(self) -> int:
            return stored.get_num_tokens()

    for options in (
        {"stride": 3},
        {"prediction_length": 2},
        {"pack_sequences": True},
        {"pack_sequences": True, "pack_buckets": [3, 7]},
    ):
        core, python = (WindowedDataset(d, 7, **options) for d in (stored, Mine()))  # type: ignore[arg-type]
        assert len(core) == len(python) > 6
        assert len(core.views) == 1
        with pytest.raises(wr.ConfigError):
            _ = python.views
        for one, other in zip(core, python, strict=True):
            assert one.keys() == other.keys()
            assert all(torch.equal(one[k], other[k]) and one[k].dtype == other[k].dtype for k in one)


def differences(seq: torch.Tensor) -> torch.Tensor:
    """One value less."""
    return seq[1:] - seq[:-1]


def test_a_files_sequences_are_as_long_as_the_transform_makes_them(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text("[[0, 1, 2, 3, 4, 5]]")
    sequences = GeneralSequenceDataset(path, transform=differences)
    assert (len(sequences[0]), sequences.get_sequence_length_by_idx(0), sequences.get_num_tokens()) == (5, 5, 5)
    windows = WindowedDataset(sequences, context_length=4, stride=1)
    assert len(windows) == 1 and windows.window_counts == [1]
    assert windows[0]["labels"].tolist() == [1, 1, 1, 1] and windows[0]["loss_masks"].tolist() == [1, 1, 1, 1]
    longer = WindowedDataset(GeneralSequenceDataset(path, transform=lambda seq: seq.repeat(2)), 4, stride=4)
    assert [w["input_ids"].tolist() for w in longer] == [[0, 1, 2, 3], [4, 5, 0, 1]]
    packed = WindowedDataset(sequences, 4, pack_sequences=True)
    assert packed.pack_plan == [[4, [[0, 0, 4]]]]

    class Short(GeneralSequenceDataset):
        """Other values than are stored."""

        def __getitem__(self, index: Any) -> Any:
            return super().__getitem__(index)[:3]

    assert WindowedDataset(Short(path), 2, stride=1).window_counts == [1]
    for scaler in (None, "zero"):
        assert len(build_ts_dataset(path, 2, 2, scaler).views) == 1


def test_windows_of_shards_are_counted_before_the_transform(tmp_path: Path) -> None:
    sequences = BinarySequenceDataset(shards(tmp_path / "s", [list(range(20))]), lambda seq: seq[::2])
    assert len(sequences[0]) == 10 and sequences.get_sequence_length_by_idx(0) == 20
    windows = WindowedDataset(sequences, 4)
    assert [w["loss_masks"].tolist() for w in windows] == [[1] * 4, [1] * 4, [1, 0, 0, 0], [0] * 4]
    assert windows[2]["input_ids"].tolist() == [16, 18, 0, 0]
    assert windows[3]["input_ids"].tolist() == windows[3]["labels"].tolist() == [0] * 4
    # What is not there is masked in packed rows too, and what follows stands where it was planned.
    both = ConcatSequenceDataset([sequences, BinarySequenceDataset(shards(tmp_path / "t", [[5, 6]]))])
    packed = WindowedDataset(both, 20, pack_sequences=True)[0]
    assert packed["loss_masks"].tolist() == [1] * 9 + [0] * 10 + [1]
    assert packed["segment_ids"].tolist() == [0] * 19 + [1] and packed["labels"][19] == 6


@pytest.mark.parametrize("pack", [False, True])
def test_whole_numbers_are_rounded_to_float32_as_the_original_rounds_them(tmp_path: Path, pack: bool) -> None:
    path = shards(tmp_path / "whole", [[1, 2, 3, 16_777_217, 5], [7, 8]], dtype="int64")
    made = WindowedDataset(BinarySequenceDataset(str(path)), 4, 0, pack_sequences=pack)
    assert made[0]["input_ids"].tolist() == [1, 2, 3, 16_777_216]
    again = pickle.loads(pickle.dumps(made))
    assert again[1]["input_ids"].tolist()[0] == 7 and again[0]["labels"].tolist() == [2, 3, 16_777_216, 5]


def test_indices_count_from_either_end(tmp_path: Path) -> None:
    windows = WindowedDataset(BinarySequenceDataset(shards(tmp_path / "s", [list(range(20))])), 4, stride=4)
    assert len(windows) == 4
    assert windows[-1]["input_ids"].tolist() == windows[np.int64(3)]["input_ids"].tolist() == [12, 13, 14, 15]
    assert [w["input_ids"][0].item() for w in windows[1:3]] == [w["input_ids"][0].item() for w in windows[[1, 2]]]
    for i in (4, -5):
        with pytest.raises(IndexError):
            windows[i]
    both = ConcatSequenceDataset([windows.dataset, windows.dataset])
    assert len(both) == 2 and torch.equal(both[-1], both[0]) and both.get_num_tokens() == 40
    with pytest.raises(IndexError):
        both[2]


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("method", ["zero", scale_to_01])
def test_a_data_loader_with_workers(tmp_path: Path, start: str, method: Any) -> None:
    shards(tmp_path / "d/a", [list(range(50))])
    shards(tmp_path / "d/b", [list(range(30, 0, -1))])
    windows = build_ts_dataset(tmp_path / "d", max_length=6, stride=2, normalization_method=method)
    again = pickle.loads(pickle.dumps(windows))
    loader = DataLoader(windows, batch_size=4, num_workers=2, multiprocessing_context=start)  # type: ignore[arg-type]
    found = torch.cat([batch["labels"] for batch in loader])
    assert torch.equal(found, torch.stack([w["labels"] for w in again]))


def test_what_is_found_is_sorted_and_chosen(tmp_path: Path) -> None:
    for name in ("b10", "b9", "a/c"):
        shards(tmp_path / name, [[1.0, 2.0]])
    (tmp_path / "notes.txt").write_text("none")
    found = discover_sequence_datasets(tmp_path)
    assert [Path(d.data_path).relative_to(tmp_path).as_posix() for d in found] == ["a/c", "b9", "b10"]  # type: ignore[attr-defined]
    chosen = build_ts_dataset(tmp_path, 4, 4, include_patterns=["b*"])
    assert len(chosen.dataset) == 2
    with pytest.raises(wr.UnrecognisedError):
        build_ts_dataset(tmp_path, 4, 4, include_patterns=["z*"])


# As torch makes tensors of them: whole numbers int64, others float32, what has a dtype keeps it.
MIXED = [[16777217, 2**53 + 1], [0.1, 2.5], [True, False], [True, 7], [3, 4.5], [], [-(2**63)], [math.nan, 1]]
MIXED_DTYPES = ["int64", "float32", "bool", "int64", "float32", "float32", "int64", "float32"]


def mixed_file(folder: Path, name: str) -> Path:
    """Sequences in a file of that name."""
    text = json.dumps(MIXED)
    content = {
        ".json": text.encode(),
        ".jsonl": "\n".join(map(json.dumps, MIXED)).encode(),
        ".json.gz": gzip.compress(text.encode()),
        ".yaml": text.replace("NaN", ".nan").encode(),
        ".pkl": pickle.dumps([{"sequence": sequence} for sequence in MIXED]),
        ".pickle": b"".join(map(pickle.dumps, MIXED)),
    }
    path = folder / f"mixed{name}"
    path.write_bytes(content[name])
    return path


@pytest.mark.parametrize("name", [".json", ".jsonl", ".json.gz", ".yaml", ".pkl", ".pickle"])
def test_each_sequence_of_a_file_has_its_own_dtype(tmp_path: Path, name: str) -> None:
    path = mixed_file(tmp_path, name)
    sequences = GeneralSequenceDataset(path)
    made = [torch.tensor(sequence) for sequence in MIXED]
    assert [str(sequence.dtype).removeprefix("torch.") for sequence in made] == MIXED_DTYPES
    for found in (sequences[:], sequences[np.arange(len(made))], [sequences[i] for i in range(-len(made), 0)]):
        assert [sequence.dtype for sequence in found] == [sequence.dtype for sequence in made]
        assert all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(found, made, strict=True))
    # A transform sees them so, and windrow itself reads the file as one dtype.
    seen: list[torch.dtype] = []
    transformed = GeneralSequenceDataset(path, lambda sequence: seen.append(sequence.dtype) or sequence)  # type: ignore[func-returns-value]
    assert len(transformed[:]) == len(made) and seen == [sequence.dtype for sequence in made]
    native = wr.open(path, format="series-jsonl" if name == ".jsonl" else None)
    assert {record.dtype.name for record in native} == {"float32"} == {native.info()["dtype"]}
    # Windows are float32 either way.
    windows, plain = build_ts_dataset(path, 2, 1), build_ts_dataset(path, 2, 1, lambda sequence: sequence)
    assert len(windows.views) == 1 and len(windows) == len(plain) == 6
    for a, b in zip(windows, plain, strict=True):
        assert all(torch.equal(a[k].nan_to_num(), b[k].nan_to_num()) and a[k].dtype == b[k].dtype for k in a)


def test_windrow_reads_a_file_of_whole_numbers_as_int64(tmp_path: Path) -> None:
    path = tmp_path / "whole.json"
    path.write_text("[[true, true], [], [2, 3]]")
    assert [s.dtype for s in GeneralSequenceDataset(path)[:]] == [torch.bool, torch.float32, torch.int64]
    native = wr.open(path)
    assert [record.dtype.name for record in native] == ["int64"] * 3
    assert native.windows(1)[0]["input_ids"].tolist() == [1] and len(native.windows(1)) == 2
    assert native.records(2)[1]["input_ids"].tolist() == [0, 0]


def as_torch_makes_it(record: Any) -> torch.Tensor:
    sequence = record["sequence"] if isinstance(record, dict) else record
    if isinstance(sequence, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(sequence, sequence.dtype.newbyteorder("=")))
    return torch.as_tensor(sequence)


@pytest.mark.parametrize("path", sorted(GOLDEN.parents[1].glob("series/*.p*kl*")), ids=lambda path: path.name)
def test_pickled_arrays_keep_their_dtype(path: Path) -> None:
    with path.open("rb") as file:
        records = [pickle.load(file) for _ in range(3 if path.name.startswith("several") else 1)]
    whole = records if len(records) > 1 else records[0]
    # Numbers at the top are one sequence.
    made = [as_torch_makes_it(record) for record in ([whole] if path.name.startswith("flat") else whole)]
    found = GeneralSequenceDataset(path)[:]
    assert [sequence.dtype for sequence in found] == [sequence.dtype for sequence in made]
    for a, b in zip(found, made, strict=True):
        assert torch.equal(a.to(torch.float64).nan_to_num(), b.to(torch.float64).nan_to_num())


def test_arrays_of_objects_hold_arrays_of_any_dtype(tmp_path: Path) -> None:
    whole = np.empty(4, object)
    whole[:] = [np.array([0.1, 2**-40]), np.array([2**40 + 1]), np.array([1, 255], np.uint8), [16777217]]
    np.save(tmp_path / "o.npy", whole, allow_pickle=True)
    found = GeneralSequenceDataset(tmp_path / "o.npy")[:]
    assert [s.dtype for s in found] == [torch.float64, torch.int64, torch.uint8, torch.int64]
    assert [s.tolist() for s in found] == [[0.1, 2**-40], [2**40 + 1], [1, 255], [16777217]]


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float16", "float64"])
def test_shards_without_a_scale_keep_the_stored_dtype(tmp_path: Path, dtype: str) -> None:
    most = 2**53 + 1 if dtype == "int64" else 100
    folder = shards(tmp_path / "s", [[1, 2, 3], [4, 5, most], [6, 7]], dtype)
    meta = json.loads((folder / "meta.json").read_text())
    meta["scales"][0] |= {"mean": 1.5, "std": 2.0}
    meta["scales"][2] |= {"mean": 0.0, "std": 1.0}
    (folder / "meta.json").write_text(json.dumps(meta))
    found = BinarySequenceDataset(folder)[:]
    scaled = getattr(torch, dtype if dtype.startswith("float") else "float32")
    assert [s.dtype for s in found] == [scaled, getattr(torch, dtype), scaled]
    assert [s.tolist() for s in found] == [[3.5, 5.5, 7.5], [4, 5, most], [6, 7]]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_members_of_an_archive_may_differ_in_kind(tmp_path: Path, save: Any) -> None:
    path = tmp_path / "m.npz"
    save(path, b=np.arange(5.0), a=np.arange(6), c=np.arange(8, dtype=">i2").reshape(2, 4), d=np.zeros(0, np.uint8))
    sequences = GeneralSequenceDataset(path)
    expected = [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3], [4, 5, 6, 7], []]
    assert [seq.tolist() for seq in sequences[:]] == expected == [s.tolist() for s in sequences[[0, 1, 2, 3, -1]]]
    assert [seq.dtype for seq in sequences[:2]] == [torch.float64, torch.int64]
    assert [sequences.get_sequence_length_by_idx(i) for i in range(-5, 0)] == [5, 6, 4, 4, 0]
    assert sequences.get_num_tokens() == 19
    windows = pickle.loads(pickle.dumps(build_ts_dataset(path, 3, 1)))
    assert windows.window_counts == [2, 3, 1, 1, 0]
    assert [w["labels"].tolist() for w in windows][-2:] == [[1, 2, 3], [5, 6, 7]]
    for method in ("max", "zero"):
        # The same as each member in a file of its own.
        np.save(tmp_path / "b.npy", np.arange(5.0))
        alone, together = (build_ts_dataset(tmp_path / name, 3, 1, method) for name in ("b.npy", "m.npz"))
        assert all(torch.allclose(x[k], y[k]) for x, y in zip(alone, together, strict=False) for k in x)
    np.savez(path, b=np.arange(5.0), a=np.arange(6.0))
    assert len(build_ts_dataset(path, 3, 1).views) == 1


def test_members_that_are_no_numbers_are_errors(tmp_path: Path) -> None:
    bad: dict[str, Any] = {"text": np.array(["x", "y"]), "point": np.float32(1), "object": np.array([[1], [2, 3]], object)}
    for name, member in bad.items():
        path = tmp_path / f"{name}.npz"
        np.savez(path, b=np.arange(5.0), a=np.arange(6), **{name: member})
        with pytest.raises(wr.WindrowError, match=name):
            GeneralSequenceDataset(path)
    whole = tmp_path / "whole.npz"
    np.savez_compressed(whole, b=np.arange(500.0), a=np.arange(600))
    content = bytearray(whole.read_bytes())
    for at in range(60, 600, 20):
        content[at] ^= 0xFF
    whole.write_bytes(content)
    with pytest.raises(wr.WindrowError, match=r"whole\.npz"):
        GeneralSequenceDataset(whole)


def test_a_file_without_lines_has_no_sequences(tmp_path: Path) -> None:
    shards(tmp_path / "d/full", [list(range(9))])
    (tmp_path / "d/empty.jsonl").touch()
    (tmp_path / "d/empty.jsonl.gz").write_bytes(gzip.compress(b""))
    for name in ("empty.jsonl", "empty.jsonl.gz"):
        for method in (None, "max", scale_to_01):
            assert len(build_ts_dataset(tmp_path / "d" / name, 4, 4, method)) == 0
        sequences = pickle.loads(pickle.dumps(GeneralSequenceDataset(tmp_path / "d" / name)))
        assert (len(sequences), sequences.get_num_tokens(), sequences[:]) == (0, 0, [])
        with pytest.raises(IndexError):
            sequences[0]
    both = build_ts_dataset(tmp_path / "d", 4, 4)
    assert len(both.dataset) == 1 and len(both) == 2 and len(both.views) == 1
    # A blank line is not a sequence, and a stream that was cut off is not a stream.
    for name, content in {"blank.jsonl": b"\n", "cut.jsonl.gz": b""}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(wr.CorruptError, match=name):
            GeneralSequenceDataset(tmp_path / name)


def test_lines_without_a_value_are_sequences_too(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    cases = {"[]": [0], '{"sequence": []}\n': [0], '[]\n{"sequence": []}\n': [0, 0], "[]\n[1, 2]\n": [0, 2]}
    for text, lengths in cases.items():
        path.write_text(text)
        found = GeneralSequenceDataset(path)
        assert [len(found[i]) for i in range(len(found))] == lengths
        assert len(build_ts_dataset(path, 4, 4)) == lengths.count(2)
    path.write_text('{"sequence": []}\n{"text": "a"}\n')
    with pytest.raises(wr.CorruptError, match="expected the key `sequence`") as failed:
        GeneralSequenceDataset(path)
    assert (failed.value.record, failed.value.path) == (1, str(path))


def test_wrong_options_are_errors(tmp_path: Path) -> None:
    stored = BinarySequenceDataset(shards(tmp_path / "s", [[1.0, 2.0, 3.0]]))
    for args in ((0,), (4, 0, -1), (4, 0, None, True, [5]), (4, 0, None, True, [0, 4])):
        with pytest.raises(ValueError):
            WindowedDataset(stored, *args)  # type: ignore[arg-type]
    with pytest.raises(wr.ConfigError, match="folder"):
        GeneralSequenceDataset(tmp_path)


def modules() -> list[str]:
    return [compat.__name__] + [m.name for m in pkgutil.walk_packages(compat.__path__, f"{compat.__name__}.")]


@pytest.mark.parametrize("name", modules())
def test_docstrings_hold(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    assert doctest.testmod(module).failed == 0
