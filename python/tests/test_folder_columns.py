"""Folders `lang=en/year=2020` say columns of the rows in them, as pandas, pyarrow, polars, DuckDB and Spark have it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import windrow as wr
from foreign_cases import with_loaders

FOLDERS = [("en", 2020), ("de", 2020), ("en", 2021), ("d e/ü", 2021)]


def lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def array(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text(json.dumps(rows, indent=1))


def columns(path: Path, rows: list[dict[str, Any]]) -> None:
    wr.write(path, rows, to=path.suffix[1:])  # type: ignore[arg-type]


WRITERS: dict[str, Callable[[Path, list[dict[str, Any]]], None]] = {
    "parquet": columns,
    "arrow": columns,
    "jsonl": lines,
    "json": array,
}


def made(root: Path, suffix: str, folders: list[str], **more: Any) -> list[str]:
    texts = []
    for i, folder in enumerate(folders):
        (root / folder).mkdir(parents=True)
        rows = [{"text": f"{i}a", "n": i, **more}, {"text": f"{i}b", "n": i, **more}]
        WRITERS[suffix](root / folder / f"part-0.{suffix}", rows)
        texts += [row["text"] for row in rows]
    return texts


@pytest.mark.parametrize("suffix", WRITERS)
def test_columns_of_folders_are_columns(tmp_path: Path, suffix: str) -> None:
    names = [f"lang={lang.replace(' ', '%20').replace('/', '%2F')}/year={year}" for lang, year in FOLDERS]
    made(tmp_path / "t", suffix, names)
    want = sorted((f"{i}{end}", i, *FOLDERS[i]) for i in range(4) for end in "ab")
    pattern = f"{tmp_path}/t/*/*/*.{suffix}"
    for path in (tmp_path / "t", pattern, f"{tmp_path}/t/*"):
        ds = wr.open(path)
        got = sorted((row["text"], row["n"], row["lang"], row["year"]) for row in ds[:])
        assert got == want, path
        assert all(type(row["year"]) is int for row in ds[:])
        chosen = wr.open(path, columns=["year", "text", "lang"])
        assert [list(row) for row in chosen[:1]] == [["year", "text", "lang"]]
        assert sorted((row["text"], row["lang"], row["year"]) for row in chosen[:]) == [(t, la, y) for t, _, la, y in want]
        assert sorted(row["lang"] for row in wr.open(path, columns=["lang"])[:]) == sorted(la for _, _, la, _ in want)
        batches = list(wr.Loader(chosen.rows(), 4, seed=0))
        assert sorted(row["year"] for batch in batches for row in batch) == sorted(y for *_, y in want)
    with pytest.raises(wr.ConfigError, match="month"):
        wr.open(tmp_path / "t", columns=["text", "month"])


def test_they_are_those_of_pyarrow(tmp_path: Path) -> None:
    made(tmp_path, "parquet", ["a=1/b=x", "a=02/b=y%20z", "a=3/b=__HIVE_DEFAULT_PARTITION__"])
    for beside in tmp_path.glob("*/*/*.windrow.*"):
        beside.unlink()
    want = with_loaders(
        """
import json, sys, pyarrow.dataset as ds
print(json.dumps(ds.dataset(sys.argv[1], partitioning="hive").to_table().to_pylist()))
""",
        tmp_path,
    )

    def key(row: dict[str, Any]) -> str:
        return str(row["text"])

    assert sorted(wr.open(tmp_path)[:], key=key) == sorted(want, key=key)


def test_text_where_not_all_are_numbers_and_null_where_none_is_said(tmp_path: Path) -> None:
    made(tmp_path, "parquet", ["k=1/j=-5", "k=x/j=__HIVE_DEFAULT_PARTITION__", "other"])
    rows = {row["text"]: (row["k"], row["j"]) for row in wr.open(tmp_path)[:]}
    assert rows == {"0a": ("1", -5), "0b": ("1", -5), "1a": ("x", None), "1b": ("x", None), "2a": (None, None), "2b": (None, None)}


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_column_of_the_files_is_theirs(tmp_path: Path, suffix: str) -> None:
    made(tmp_path, suffix, ["lang=en/year=1", "lang=de/year=2"], lang="own")
    assert {row["lang"] for row in wr.open(tmp_path)[:]} == {"own"}
    rows = wr.open(tmp_path, columns=["lang", "year"])[:]
    assert {(row["lang"], row["year"]) for row in rows} == {("own", 1), ("own", 2)}


def test_numbers_of_one_column_get_none(tmp_path: Path) -> None:
    for lang in ("en", "de"):
        (tmp_path / f"lang={lang}").mkdir()
        wr.write(tmp_path / f"lang={lang}" / "a.parquet", [{"input_ids": [1, 2, 3], "text": "a"}], to="parquet")
    ds = wr.open(tmp_path, column="input_ids")
    assert ds[0].tolist() == [1, 2, 3]
    assert "lang" not in ds.extras(0)
    assert {row["lang"] for row in wr.open(tmp_path)[:]} == {"en", "de"}


def test_a_text_of_folders_is_tokenised(tmp_path: Path) -> None:
    made(tmp_path / "t", "parquet", ["lang=en", "lang=de"])
    wr.tokenize(tmp_path / "t", tmp_path / "out", tokenizer="bytes", text_field="lang", fsync=False)
    assert sorted(bytes(row.tolist()).decode() for row in wr.open(tmp_path / "out")[:]) == ["de", "de", "en", "en"]


def test_a_state_is_of_the_folders_it_was_taken_of(tmp_path: Path) -> None:
    made(tmp_path / "t", "parquet", ["lang=en", "lang=de"])
    loader = wr.Loader(wr.open(tmp_path / "t").rows(), 1, seed=0)
    next(iter(loader))
    state = loader.state_dict()
    (tmp_path / "t" / "lang=en").rename(tmp_path / "t" / "lang=fr")
    with pytest.raises(wr.MismatchError):
        wr.Loader(wr.open(tmp_path / "t").rows(), 1, seed=0).load_state_dict(state)
