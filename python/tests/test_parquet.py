"""Parquet: golden cases of pyarrow, the cache of columns, and damage."""

import datetime
import json
import shutil

import numpy as np
import pytest

import windrow as wr
import foreign_cases
from foreign_cases import resumes_on_other_ranks, with_loaders

GOLDEN = foreign_cases.GOLDEN / "parquet"
CASES = foreign_cases.names("parquet")


def test_there_are_cases():
    assert len(CASES) >= 25


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    foreign_cases.holds(GOLDEN / name, "parquet")


# Rows of token IDs in files of all codecs, pages of both versions and several row groups; prints them.
MADE = """
import json, sys
import numpy as np
import pyarrow as pa, pyarrow.parquet as pq
folder = sys.argv[1]
rng = np.random.default_rng(2)
ids = [rng.integers(0, 60000, n).astype(np.uint16) for n in rng.integers(0, 400, 3000)]
table = pa.table({
    "input_ids": pa.array(ids, pa.list_(pa.uint16())),
    "text": [f"row {i}" for i in range(3000)],
    "n": pa.array([i if i % 7 else None for i in range(3000)], pa.int32()),
})
for codec in ("snappy", "gzip", "brotli", "zstd", "lz4", "none"):
    pq.write_table(table, f"{folder}/{codec}.parquet", compression=codec, row_group_size=700, data_page_version="1.0" if codec < "m" else "2.0",
                   write_page_index=codec == "zstd", data_page_size=20000)
pq.write_table(table.select(["input_ids"]), f"{folder}/one_group.parquet")
print(json.dumps([i.tolist() for i in ids]))
"""
CODECS = ["snappy", "gzip", "brotli", "zstd", "lz4", "none"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    return folder, with_loaders(MADE, folder)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_natively_and_from_the_cache(made, cache, codec):
    folder, ids = made
    path = folder / f"{codec}.parquet"
    ds = wr.open(path, column="input_ids")
    assert len(ds) == 3000 and ds[2999].dtype == "uint16"
    for record in (0, 1, 699, 700, 2999):
        assert ds[record].tolist() == ids[record]
        assert ds.extras(record) == {"text": f"row {record}", "n": record if record % 7 else None}
    # A look makes no copy; all records do, once, of this column alone.
    assert not cache.exists()
    order = np.random.default_rng(1).permutation(3000)
    assert all(ds[int(i)].tolist() == ids[i] for i in order)
    (kept,) = cache.iterdir()
    assert kept.stat().st_size < 2 * sum(2 * len(row) for row in ids) + 100_000
    again = wr.open(path, column="input_ids")
    assert all(again[int(i)].tolist() == ids[i] for i in order) and len(list(cache.iterdir())) == 1
    rows = wr.open(path)
    assert all(rows[int(i)]["text"] == f"row {i}" and rows[int(i)]["input_ids"].tolist() == ids[i] for i in order)


def test_a_view_is_that_of_the_same_raw_tokens(made, cache, tmp_path):
    folder, ids = made
    np.concatenate([np.array(row, np.uint16) for row in ids]).tofile(tmp_path / "t.bin")
    a = wr.open(folder / "one_group.parquet").pack(128)
    b = wr.open(tmp_path / "t.bin", dtype="uint16").pack(128)
    assert len(a) == len(b)
    assert all((a[i]["input_ids"] == b[i]["input_ids"]).all() for i in range(0, len(a), 17))


def test_a_cache_that_is_too_small_is_an_error_that_says_both_sizes(made, cache):
    folder, _ = made
    ds = wr.open(folder / "zstd.parquet", column="input_ids", cache_limit=10_000)
    with pytest.raises(wr.ConfigError, match="10000 bytes of cache.*") as error:
        [ds[int(i)] for i in np.random.default_rng(1).permutation(3000)]
    assert "convert" in str(error.value) and not list(cache.iterdir())


def test_files_of_a_folder_mixed_with_raw_tokens_and_resumed_on_other_ranks(made, cache, tmp_path):
    folder, ids = made
    data = tmp_path / "hub" / "data"
    data.mkdir(parents=True)
    for i, codec in enumerate(("snappy", "zstd")):
        shutil.copy(folder / f"{codec}.parquet", data / f"train-0000{i}-of-00002.parquet")
    shutil.copy(folder / "gzip.parquet", data / "test-00000-of-00001.parquet")
    np.arange(40000, dtype=np.uint16).tofile(tmp_path / "t.bin")
    hub = wr.open(tmp_path / "hub", split="train", column="input_ids")
    assert len(hub) == 6000 and hub[3001].tolist() == ids[1]
    view = wr.mix({"hub": (hub.pack(64), 0.6), "raw": (wr.open(tmp_path / "t.bin", dtype="uint16").pack(64), 0.4)})

    resumes_on_other_ranks(view)
    places = [read["locations"] for row in wr.trace(wr.Loader(view, 6, seed=5), 0) for read in row["reads"]]
    files = {place["file"] for some in places for place in some}
    assert any(name.endswith("-of-00002.parquet") for name in files) and any(name.endswith("t.bin") for name in files)
    with pytest.raises(wr.ConfigError, match="several splits"):
        wr.open(tmp_path / "hub")
    (data / "train-00000-of-00002.parquet").unlink()
    with pytest.raises(wr.NotFoundError, match="train-00000-of-00002"):
        wr.open(tmp_path / "hub", split="train")


def test_a_column_that_a_file_lacks_is_null_there(made, tmp_path):
    folder, _ = made
    shutil.copy(folder / "one_group.parquet", tmp_path / "a.parquet")
    shutil.copy(folder / "zstd.parquet", tmp_path / "b.parquet")
    ds = wr.open(tmp_path)
    alone = wr.open(tmp_path / "b.parquet")
    n_before = len(ds) - len(alone)
    assert set(ds[0]) == set(alone[0]) and [name for name, value in ds[0].items() if value is not None] == ["input_ids"]
    assert str(ds[n_before]) == str({name: alone[0][name] for name in ds[n_before]})
    # Records of numbers are never null.
    assert len(wr.open(tmp_path, column="input_ids")) == len(ds)
    assert len(wr.open(tmp_path, columns=["text"])) == len(ds)


@pytest.mark.parametrize("codec", CODECS)
def test_damage_is_an_error_or_another_value_but_no_crash(made, cache, tmp_path, codec):
    folder, _ = made
    content = bytearray((folder / f"{codec}.parquet").read_bytes())
    file = tmp_path / "t.parquet"
    rng = np.random.default_rng(4)
    places = [*rng.integers(0, len(content), 6), *rng.integers(len(content) - 3000, len(content), 20)]
    for at in places:
        changed = content.copy()
        changed[at] ^= 1 << int(rng.integers(8))
        file.write_bytes(changed)
        try:
            ds = wr.open(file)
            [ds[i] for i in range(0, len(ds), 500)]
        except wr.WindrowError as error:
            assert "t.parquet" in str(error)
    for cut in (0, 3, 4, 8, 100, len(content) // 2, len(content) - 1):
        file.write_bytes(content[:cut])
        with pytest.raises(wr.WindrowError):
            wr.open(file)


CONFIGS = """---
configs:
- config_name: default
  data_files:
  - split: train
    path: data/*.parquet
  - split: extra
    path: [held/three.parquet, "held/**/four.parquet"]
- config_name: other
  data_files: other/*.parquet
---
# A set
"""


def test_the_readme_of_the_hub_says_which_files_are_a_split(made, tmp_path):
    folder, ids = made
    for name in ("data/one", "data/two", "held/three", "held/deep/four", "other/five"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "one_group.parquet", tmp_path / f"{name}.parquet")
    (tmp_path / "README.md").write_text(CONFIGS)
    assert len(wr.open(tmp_path, split="train")) == len(wr.open(tmp_path, split="extra")) == 6000
    with pytest.raises(wr.ConfigError, match="several splits: train, extra"):
        wr.open(tmp_path)
    with pytest.raises(wr.NotFoundError, match="README.md lists train, extra"):
        wr.open(tmp_path, split="test")
    (tmp_path / "README.md").write_text(CONFIGS.replace("default", "first"))
    with pytest.raises(wr.ConfigError, match="several configs: first, other"):
        wr.open(tmp_path)
    assert len(wr.open(tmp_path / "other")) == 3000
    (tmp_path / "README.md").write_text("---\n: [broken\n---\n")
    assert len(wr.open(tmp_path)) == 15000


CONFIGS_OF_FOLDERS = """---
configs:
- config_name: en
  data_dir: en
- config_name: fr
  data_dir: ./fr/
  data_files:
  - split: train
    path: a/*.parquet
---
"""


def test_configs_of_a_readme_may_be_folders(made, tmp_path):
    folder, _ = made
    for name in ("en/train-0", "en/test-0", "fr/a/one", "fr/b/two"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "one_group.parquet", tmp_path / f"{name}.parquet")
    (tmp_path / "README.md").write_text(CONFIGS_OF_FOLDERS)
    with pytest.raises(wr.ConfigError, match="several configs: en, fr"):
        wr.open(tmp_path)
    (tmp_path / "README.md").write_text(CONFIGS_OF_FOLDERS.replace("config_name: fr", "config_name: default"))
    assert len(wr.open(tmp_path)) == 3000
    (tmp_path / "README.md").write_text(CONFIGS_OF_FOLDERS.replace("config_name: en", "config_name: default"))
    assert len(wr.open(tmp_path, split="train")) == len(wr.open(tmp_path, split="test")) == 3000


TIMES = [datetime.datetime(year, 12, 31, 23, 59, 59, 999999) for year in (1, 1969, 2024, 9999)]
INT96 = f"""
import datetime, sys
import pyarrow as pa, pyarrow.parquet as pq
times = {TIMES!r}
micros = pa.timestamp("us")
table = pa.table({{"t": pa.array(times, micros), "l": pa.array([[time] for time in times], pa.list_(micros))}})
pq.write_table(table, sys.argv[1], use_deprecated_int96_timestamps=True, store_schema=False)
assert pq.ParquetFile(sys.argv[1]).schema.column(0).physical_type == "INT96"
"""


def test_timestamps_of_96_bits_are_those_of_every_year(tmp_path):
    foreign_cases.printed_by_loaders(INT96, tmp_path / "t.parquet")
    ds = wr.open(tmp_path / "t.parquet")
    for i, time in enumerate(TIMES):
        assert str(ds[i]["t"]).replace("T", " ").rstrip("Z") == str(time)
        assert str(ds[i]["l"][0]).replace("T", " ").rstrip("Z") == str(time)
