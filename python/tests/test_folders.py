"""What a folder, a pattern and a list mean: hidden names, tables with a log, parts of lines, splits, nothing at all."""

from __future__ import annotations

import gzip
import json
import threading
import wave
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from foreign_cases import with_loaders
from s3_server import S3Server

import windrow as wr
from windrow._native import _main


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.stop()


def lines(*texts: str) -> str:
    return "".join(json.dumps({"text": text}) + "\n" for text in texts)


def main(*args: Any) -> int:
    return int(_main(["windrow", *map(str, args)]))


def put(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def table(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """A file of Parquet or Arrow as another program leaves it, without windrow's description."""
    path.parent.mkdir(parents=True, exist_ok=True)
    wr.write(path, rows, to=path.suffix[1:])
    for beside in path.parent.glob(f"{path.name}.windrow*"):
        beside.unlink()


def texts(data: wr.Dataset) -> list[str]:
    return [row["text"] for row in data]


def tokenized(inputs: Any, out: Path, **options: Any) -> list[str]:
    wr.tokenize(inputs, out, tokenizer="bytes", **options)
    return [bytes(record.tolist()).decode() for record in wr.open(out)]


# Hidden names.

ROWS = [{"text": "one"}, {"text": "two"}]


def npy(path: Path) -> None:
    np.save(path, np.arange(12.0).reshape(2, 6))


def tokens(path: Path) -> None:
    np.arange(40, dtype=np.uint16).tofile(path)


# Each with what writes a file of two records, and the options of opening.
KINDS: dict[str, tuple[str, Callable[[Path], Any], dict[str, Any], int]] = {
    "jsonl": (".jsonl", lambda path: path.write_text(lines("one", "two")), {}, 2),
    "json": (".json", lambda path: path.write_text(lines("one", "two")), {}, 2),
    "parquet": (".parquet", lambda path: table(path, ROWS), {}, 2),
    "arrow": (".arrow", lambda path: table(path, ROWS), {}, 2),
    "csv": (".csv", lambda path: path.write_text("x\n1\n2\n"), {}, 1),
    "npy": (".npy", npy, {}, 2),
    "tokens": (".bin", tokens, {"dtype": "uint16"}, 1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_names_are_passed_over_where_a_folder_is_walked(tmp_path: Path, s3: S3Server, kind: str) -> None:
    suffix, make, options, n = KINDS[kind]
    folder = tmp_path / "d"
    for name in ("a", "_b", ".c", "_temporary/0/d", ".git/e", "_day=1/f"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        make(folder / f"{name}{suffix}")
    (folder / "_SUCCESS").write_text("")
    hidden = sorted([".c" + suffix, ".git", "_SUCCESS", "_b" + suffix, "_temporary"])
    of_s3 = {"store_options": s3.options, "cache": tmp_path / "cache", "timeout": 30}
    bucket = s3.put(folder)
    for at, more in ((folder, {}), (bucket, of_s3)):
        data = wr.open(at, **options, **more)
        # A folder of raw tokens is one without those below it.
        assert len(data) == (n if kind == "tokens" else 2 * n)
        assert data.info()["hidden"] == hidden
        # What is asked for by its name is read.
        for name, count in ((f"_b{suffix}", n), ("_temporary/0", n), ("_day=1", n)):
            assert len(wr.open(f"{at}/{name}", **options, **more)) == count
        found = wr.open(f"{at}/*{suffix}", **options, **more)
        assert len(found) == n
        assert found.info()["hidden"] == [f"{at}/{name}" for name in (f".c{suffix}", f"_b{suffix}")]
        assert len(wr.open(f"{at}/_*{suffix}", **options, **more)) == n
        assert len(wr.open([f"{at}/a{suffix}", f"{at}/_b{suffix}"], **options, **more)) == 2 * n
        with pytest.raises(wr.NotFoundError, match=r"only hidden names.*_b"):
            wr.open(f"{at}/[!a]*{suffix}", **options, **more)


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet", "arrow"])
def test_hidden_names_are_passed_over_by_tasks(tmp_path: Path, kind: str) -> None:
    suffix, make, _, _ = KINDS[kind]
    folder = tmp_path / "d"
    for name in ("a", "_b", "_temporary/0/d"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        make(folder / f"{name}{suffix}")
    assert tokenized(folder, tmp_path / "t") == ["one", "two"]
    assert tokenized(f"{folder}/*{suffix}", tmp_path / "u") == ["one", "two"]
    assert tokenized(folder / f"_b{suffix}", tmp_path / "v") == ["one", "two"]
    assert wr.convert(folder, tmp_path / "c.jsonl", to="jsonl")["records"] == 2
    job = wr.prep.plan("tokenize", folder, tmp_path / "p", tokenizer="bytes")
    assert len(json.loads(Path(job).read_text())["inputs"]) == 1
    if kind in ("jsonl", "json"):
        assert wr.index(folder)["records"] == 2


def test_nothing_but_hidden_names_is_told_of(tmp_path: Path, s3: S3Server) -> None:
    folder = tmp_path / "d"
    put(folder / "_temporary" / "0" / "a.jsonl", lines("one"))
    put(folder / "_b.jsonl", lines("one"))
    of_s3 = {"store_options": s3.options, "timeout": 30}
    for do in (
        lambda: wr.open(folder),
        lambda: wr.open(folder, format="parquet"),
        lambda: wr.open(folder, format="jsonl"),
        lambda: wr.open(s3.put(folder), **of_s3),
        lambda: wr.index(folder),
        lambda: wr.tokenize(folder, tmp_path / "out", tokenizer="bytes"),
        lambda: wr.convert(folder, tmp_path / "out", to="jsonl"),
    ):
        with pytest.raises(wr.NotFoundError, match=r"only hidden names are there: _b.jsonl, _temporary") as found:
            do()
        assert "begin with _ or ." in (found.value.hint or "")
    assert any("_temporary" in note for note in wr.verify(folder)["notes"])


def test_verify_of_hidden_names_alone_is_bad(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    put(folder / "_b.jsonl", lines("one"))
    for beside in ("", "readme.txt"):
        if beside:
            put(folder / beside, "x")
        found = wr.verify(folder)
        assert [problem["what"] for problem in found["problems"]] == ["data"]
        assert any("_b.jsonl" in note for note in found["notes"])
        assert main("verify", folder) == 3
    put(folder / "a.jsonl", lines("one"))
    assert wr.verify(folder)["problems"] == []
    assert main("verify", folder) == 0


def test_hidden_sound_is_not_encoded(tmp_path: Path) -> None:
    for name in ("a.wav", "_b.wav", ".c.wav"):
        with wave.open(str(tmp_path / name), "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(44_100)
            sound.writeframes(bytes(2000))
    wr.encode(tmp_path, tmp_path / "out" / "codes", wr.Codec(ROOT / "testdata" / "dac" / "small.pth"))
    assert len(wr.open(tmp_path / "out" / "codes")) == 1


def test_what_a_data_set_lists_itself_is_not_hidden(tmp_path: Path) -> None:
    folder = tmp_path / "codes"
    wr.write(folder, [{"name": "_intro", "sequence": np.zeros((4, 9), np.int16)}], to="codes")
    data = wr.open(folder)
    assert len(data) == 1
    assert data.info()["hidden"] == []
    # As another program describes it, without windrow's manifest.
    (folder / "windrow.json").unlink()
    (folder / "metadata.json").write_text(json.dumps({"_intro.pt": {"text": "a prompt"}}))
    for track in folder.rglob("_intro.pt"):
        track.rename(folder / "_intro.pt")
    for below in [path for path in folder.iterdir() if path.is_dir()]:
        below.rmdir()
    assert wr.open(folder, format="codes").extras(0)["text"] == "a prompt"


@pytest.mark.parametrize("to", ["mds", "litdata"])
@pytest.mark.parametrize("start", ["_", "."])
def test_hidden_names_that_an_index_lists_are_read_by_tasks_as_by_open(tmp_path: Path, to: str, start: str) -> None:
    folder, want = tmp_path / "d", [f"text {i}" for i in range(9)]
    wr.write(folder, [{"text": text} for text in want], to=to)
    for side in folder.glob("windrow.*"):
        side.unlink()
    index = (folder / "index.json").read_text()
    for path in [path for path in folder.iterdir() if path.name != "index.json"]:
        path.rename(path.with_name(start + path.name))
        index = index.replace(f'"{path.name}"', f'"{start}{path.name}"')
    (folder / "index.json").write_text(index)
    assert texts(wr.open(folder)) == want
    assert tokenized(folder, tmp_path / "out") == want
    assert tokenized([folder], tmp_path / "list", to="shards") == want
    assert main("tokenize", folder, "-o", tmp_path / "command", "--tokenizer", "bytes") == 0
    assert wr.convert(folder, tmp_path / "out.jsonl", to="jsonl")["records"] == 9
    found = wr.verify(folder)
    assert set(found["files"]) == {path.name for path in folder.iterdir()}
    assert not any("hidden" in note for note in found["notes"])


def test_caches_of_datasets_alone_are_named_as_hidden(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    table(folder / "cache-0123456789abcdef.arrow", [{"text": "T"}] * 6)
    said = r"only hidden names are there: cache-0123456789abcdef.arrow"
    for read in (wr.open, partial(wr.tokenize, out=tmp_path / "out", tokenizer="bytes")):
        with pytest.raises(wr.NotFoundError, match=said) as found:
            read(folder)
        assert found.value.path == str(folder)


def test_caches_of_datasets_are_hidden(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    want = [f"t{i}" for i in range(6)]
    table(folder / "json-train.arrow", [{"text": text} for text in want])
    table(folder / "cache-0123456789abcdef.arrow", [{"text": "T"}] * 6)
    table(folder / "cache-fedcba98_00000_of_00002.arrow", [{"indices": 0}])
    table(folder / "x.incomplete" / "json-train-00000-of-00002.arrow", [{"text": "half"}])
    data = wr.open(folder)
    assert texts(data) == want
    assert len(data.info()["hidden"]) == 3
    assert tokenized(folder, tmp_path / "out") == want
    assert texts(wr.open(f"{folder}/*.arrow")) == want
    assert texts(wr.open(folder / "cache-0123456789abcdef.arrow")) == ["T"] * 6
    assert texts(wr.open(f"{folder}/cache-01*.arrow")) == ["T"] * 6


def test_a_pattern_passes_over_an_unfinished_folder_of_datasets(tmp_path: Path, s3: S3Server) -> None:
    folder = tmp_path / "hc"
    table(folder / "done" / "x-train.arrow", [{"text": "whole"}])
    table(folder / "x.incomplete" / "x-train.arrow", [{"text": "half"}])
    bucket, of_s3 = s3.put(folder), {"store_options": s3.options, "timeout": 30, "cache": tmp_path / "cache"}
    for at, more in ((str(folder), {}), (bucket, of_s3)):
        for pattern in ("**/*.arrow", "*/*.arrow", "**/x-*", "*"):
            data = wr.open(f"{at}/{pattern}", **more)
            assert texts(data) == ["whole"], pattern
            assert any("x.incomplete" in name for name in data.info()["hidden"])
        for pattern in ("x.incomplete/*.arrow", "*.incomplete/*.arrow", "x.incomplete/x-train.arrow"):
            assert texts(wr.open(f"{at}/{pattern}", **more)) == ["half"], pattern
    assert tokenized(f"{folder}/**/*.arrow", tmp_path / "out") == ["whole"]


def test_compat_walks_as_its_original_does(tmp_path: Path) -> None:
    from windrow.compat.data_forager.datasets.jsonl import JsonlDataset
    from windrow.compat.data_forager.indexers.jsonl_indexer import create_default_jsonl_indexer

    for name in ("a.jsonl", "_b.jsonl", "_c/d.jsonl", ".e.jsonl"):
        put(tmp_path / name, lines(name))
    create_default_jsonl_indexer(tmp_path)()
    assert len(JsonlDataset.create_from_index_on_filesystem(tmp_path)) == 3


# Names that look like patterns.


def test_a_name_that_is_there_as_it_is_written_is_that_name(tmp_path: Path, s3: S3Server) -> None:
    folder = tmp_path / "d"
    for name in ("a?b", "aXb", "c*/d", "cX/d", "e[1]"):
        put(folder / f"{name}.jsonl", lines(name))
    bucket, of_s3 = s3.put(folder), {"store_options": s3.options, "timeout": 30}
    for at, more in ((folder, {}), (bucket, of_s3)):
        for name in ("a?b", "aXb", "c*/d", "e[1]"):
            assert texts(wr.open(f"{at}/{name}.jsonl", **more)) == [name]
        assert texts(wr.open(f"{at}/a*.jsonl", **more)) == ["a?b", "aXb"]


def test_a_web_server_has_names_that_look_like_patterns(tmp_path: Path) -> None:
    put(tmp_path / "a[1].jsonl", lines("one"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        assert texts(wr.open(f"{url}/a[1].jsonl", timeout=30)) == ["one"]
    finally:
        server.shutdown()
        server.server_close()


# Tables whose log says which files are live.

LAKES = {
    "Delta Lake": {"_delta_log/00000000000000000000.json": "{}\n"},
    "Apache Iceberg": {"metadata/v1.metadata.json": "{}", "metadata/snap-1.avro": "x"},
    "Apache Hudi": {".hoodie/hoodie.properties": "x"},
}


@pytest.mark.parametrize("lake", LAKES)
def test_a_table_with_a_log_is_refused_and_a_list_of_its_files_opens(tmp_path: Path, s3: S3Server, lake: str) -> None:
    root = tmp_path / "lake"
    lake_folder = root / "t"
    for name, content in LAKES[lake].items():
        put(lake_folder / name, content)
    for name in ("new", "old", "day=1/part", "data/part"):
        table(lake_folder / f"{name}.parquet", ROWS)
    table(root / "beside" / "a.parquet", ROWS)
    bucket, of_s3 = s3.put(root), {"store_options": s3.options, "timeout": 30, "cache": tmp_path / "cache"}
    for at, more in ((str(root), {}), (bucket, of_s3)):
        for path in ("t", "", "t/day=1", "t/data", "t/*.parquet", "t/**/*.parquet", "t/day=*"):
            with pytest.raises(wr.UnsupportedError, match=lake) as found:
                wr.open(f"{at}/{path}".rstrip("/"), **more)
            assert "list of live files" in (found.value.hint or "")
            assert found.value.path == f"{at}/t"
        assert len(wr.open(f"{at}/t/new.parquet", **more)) == 2
        assert len(wr.open([f"{at}/t/new.parquet", f"{at}/t/day=1/part.parquet"], **more)) == 4
        assert len(wr.open(f"{at}/beside", **more)) == 2
        assert len(wr.open(f"{at}/*/a.parquet", **more)) == 2
    for do in (
        lambda: wr.tokenize(lake_folder, tmp_path / "out", tokenizer="bytes"),
        lambda: wr.tokenize(f"{lake_folder}/*.parquet", tmp_path / "out", tokenizer="bytes"),
        lambda: wr.convert(lake_folder, tmp_path / "out.jsonl", to="jsonl"),
        lambda: wr.prep.plan("tokenize", lake_folder, tmp_path / "out", tokenizer="bytes"),
    ):
        with pytest.raises(wr.UnsupportedError, match=lake):
            do()


@pytest.mark.parametrize("lake", LAKES)
def test_a_table_whose_data_are_lines_is_refused_by_all_that_prepare(tmp_path: Path, s3: S3Server, lake: str) -> None:
    root = tmp_path / "d"
    for name, content in LAKES[lake].items():
        put(root / name, content)
    for name in ("a", "day=1/part", "data/part"):
        put(root / f"{name}.jsonl", lines("one"))
    bucket, of_s3 = s3.put(root), {"store_options": s3.options, "timeout": 30}
    for at, more in ((str(root), {}), (bucket, of_s3)):
        of_job = {name: value for name, value in more.items() if name == "store_options"}
        for path in (at, f"{at}/day=1", f"{at}/data"):
            for do in (
                lambda: wr.open(path, **more),
                lambda: wr.tokenize(path, tmp_path / "out", tokenizer="bytes", **more),
                lambda: wr.tokenize(path, tmp_path / "out", tokenizer="bytes", split="all", **more),
                lambda: wr.prep.plan("tokenize", path, tmp_path / "job", tokenizer="bytes", **of_job),
                lambda: wr.prep.plan("index", path, tmp_path / "job", **of_job),
            ):
                with pytest.raises(wr.UnsupportedError, match=lake) as found:
                    do()
                assert found.value.path == at
    for path in (root, root / "day=1", root / "data"):
        with pytest.raises(wr.UnsupportedError, match=lake):
            wr.index(path)
    assert tokenized(root / "a.jsonl", tmp_path / "one") == ["one"]


UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"


@pytest.mark.parametrize(
    ("name", "is_table"),
    [
        ("v1.metadata.json", True),
        ("v12.gz.metadata.json", True),
        ("v1.metadata.json.gz", True),
        (f"00000-{UUID}.metadata.json", True),
        (f"00000-{UUID}.gz.metadata.json", True),
        (f"00003-{UUID}.metadata.json.gz", True),
        ("song.metadata.json", False),
        ("verse.metadata.json", False),
        ("v1-live.metadata.json", False),
        ("01-intro.metadata.json", False),
    ],
)
def test_a_table_of_iceberg_is_known_by_its_metadata(tmp_path: Path, name: str, is_table: bool) -> None:
    folder = tmp_path / "d"
    put(folder / "metadata" / name, "{}")
    table(folder / "data" / "a.parquet", ROWS)
    for path in (folder, folder / "data", f"{folder}/data/*.parquet"):
        if is_table:
            with pytest.raises(wr.UnsupportedError, match="Apache Iceberg"):
                wr.open(path)
        else:
            assert texts(wr.open(path)) == ["one", "two"]


# Splits.


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet", "arrow"])
def test_tokenize_refuses_several_splits(tmp_path: Path, kind: str) -> None:
    suffix, make, _, _ = KINDS[kind]
    folder = tmp_path / "d"
    for split in ("train", "val"):
        (folder / split).mkdir(parents=True)
        make(folder / split / f"{split}-a{suffix}")
    for inputs in (folder, f"{folder}/*/*{suffix}"):
        with pytest.raises(wr.ConfigError, match=r"several splits: train .*, validation") as found:
            wr.tokenize(inputs, tmp_path / "out", tokenizer="bytes")
        assert 'split="all"' in (found.value.hint or "")
        with pytest.raises(wr.ConfigError, match="several splits"):
            wr.prep.plan("tokenize", inputs, tmp_path / "job", tokenizer="bytes")
        both = tokenized(inputs, tmp_path / f"both-{'*' in str(inputs)}", split="all")
        assert both == ["one", "two", "one", "two"]
        assert len(wr.open(inputs, split="all")) == 4
    assert tokenized(folder, tmp_path / "train", split="train") == ["one", "two"]
    assert tokenized([folder / "train", folder / "val"], tmp_path / "named") == ["one", "two", "one", "two"]
    program = ("tokenize", folder, "--tokenizer", "bytes", "--out", tmp_path / "cli")
    assert main(*program) == 2
    assert main(*program, "--split", "all") == 0


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet", "arrow"])
def test_tokenize_takes_a_split_of_files_as_open_does(tmp_path: Path, s3: S3Server, kind: str) -> None:
    suffix = KINDS[kind][0]
    folder = tmp_path / "sp"
    for split in ("train", "val"):
        for part in ("0", "1"):
            path = folder / f"{split}-{part}{suffix}"
            if suffix in (".jsonl", ".json"):
                put(path, lines(f"{split}{part}", f"{split}{part}"))
            else:
                table(path, [{"text": f"{split}{part}"}] * 2)
    names = [folder / f"{name}{suffix}" for name in ("train-0", "train-1", "val-0", "val-1")]
    bucket, of_s3 = s3.put(folder), {"store_options": s3.options, "timeout": 30}
    inputs = (f"{folder}/*{suffix}", f"{folder}/{{train,val}}-{{0,1}}{suffix}", names, f"{bucket}/*{suffix}")
    for number, paths in enumerate(inputs):
        more = of_s3 if str(paths).startswith("s3:") else {}
        out = tmp_path / f"t{number}"
        wr.tokenize(paths, out, tokenizer="bytes", split="train", **more)
        assert [bytes(record.tolist()).decode() for record in wr.open(out)] == ["train0"] * 2 + ["train1"] * 2
    assert tokenized(names[2], tmp_path / "v", split="val") == ["val0"] * 2
    with pytest.raises(wr.NotFoundError, match="test"):
        wr.tokenize(f"{folder}/*{suffix}", tmp_path / "n", tokenizer="bytes", split="test")
    with pytest.raises(wr.NotFoundError, match="val"):
        wr.tokenize(names[0], tmp_path / "n", tokenizer="bytes", split="val")


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_name_no_split_are_the_training_split(tmp_path: Path, s3: S3Server, kind: str) -> None:
    suffix, make, options, n = KINDS[kind]
    folder = tmp_path / "d"
    folder.mkdir()
    make(folder / f"a{suffix}")
    bucket, of_s3 = s3.put(folder), {"store_options": s3.options, "timeout": 30, "cache": tmp_path / "cache"}
    for at, more in ((str(folder), {}), (bucket, of_s3)):
        for path in (at, f"{at}/a{suffix}", f"{at}/*{suffix}"):
            assert len(wr.open(path, split="train", **options, **more)) == n
            with pytest.raises(wr.NotFoundError, match="val"):
                wr.open(path, split="val", **options, **more)
    if kind in ("jsonl", "json", "parquet", "arrow"):
        assert tokenized(folder, tmp_path / "out", split="train") == ["one", "two"]


# Parts of lines.

T = [json.dumps({"text": f"t{i}"}) + "\n" for i in range(4)]
PARTS = {
    "optional": [T[0], '{"text": "t1", "id": 1}\n' + T[2], '{"id": 3, "text": "t3"}\n'],
    "no key of the others": [T[0] + T[1], '{"other": 2}\n'],
    "all of one": [T[0], T[1]],
    "only one": [T[0]],
    "one first": [T[0], T[1] + T[2]],
    "an empty one": [T[0] + T[1], "", T[2] + T[3]],
    "an empty one first": ["", T[0], T[1]],
}


@pytest.mark.parametrize("case", PARTS)
def test_parts_of_lines_read_alike(tmp_path: Path, s3: S3Server, case: str) -> None:
    folder = tmp_path / "d"
    for i, part in enumerate(PARTS[case]):
        put(folder / f"part-{i:05}-3f2a-c000.json", part)
    put(folder / "_SUCCESS", "")
    want = [json.loads(line) for line in "".join(PARTS[case]).splitlines()]
    bucket, of_s3 = s3.put(folder), {"store_options": s3.options, "timeout": 30}
    names = sorted(path.name for path in folder.glob("part-*"))
    for at, more in ((str(folder), {}), (bucket, of_s3)):
        for paths in (at, f"{at}/part-*", f"{at}/part-{{00000..{len(names) - 1:05}}}-3f2a-c000.json", [f"{at}/{name}" for name in names]):
            if len(names) > 1 or paths in (at, f"{at}/part-*"):
                assert list(wr.open(paths, **more)) == want, paths
    if case != "no key of the others":
        assert tokenized(folder, tmp_path / "out") == [record["text"] for record in want]
    assert wr.index(folder)["records"] == len(want)


def test_documents_beside_lines_are_still_none(tmp_path: Path) -> None:
    put(tmp_path / "a.json", T[0] + T[1])
    put(tmp_path / "licence.json", '{"name": "MIT"}')
    put(tmp_path / "config.json", '{"freq": "H"}')
    assert len(wr.open(tmp_path)) == 2


# Nothing at all.


@pytest.mark.parametrize("names", [[], ["a.jsonl"], ["a.jsonl", "b.jsonl"], ["a.jsonl.gz"]])
def test_nothing_is_an_error_unless_it_is_meant(tmp_path: Path, capfd: pytest.CaptureFixture[str], names: list[str]) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    for name in names:
        put(folder / name, gzip.compress(b"") if name.endswith("gz") else "")
    for do in (
        lambda **more: wr.index(folder, **more),
        lambda **more: wr.tokenize(folder, tmp_path / "t", tokenizer="bytes", **more),
        lambda **more: wr.tokenize(iter([]), tmp_path / "i", tokenizer="bytes", **more),
    ):
        with pytest.raises(wr.NotFoundError) as found:
            do()
        assert "allow_empty" in (found.value.hint or "") or not names
        assert do(allow_empty=True)["records"] == 0
    capfd.readouterr()
    assert main("index", folder, "--index-folder", "i") == 1
    said = capfd.readouterr().err
    assert "allow_empty" not in said
    assert "--allow-empty" in said or not names
    assert main("index", folder, "--index-folder", "i", "--allow-empty") == 0
    assert main("tokenize", folder, "--tokenizer", "bytes", "--out", tmp_path / "c") == 1
    assert main("tokenize", folder, "--tokenizer", "bytes", "--out", tmp_path / "c", "--allow-empty") == 0
    if names:
        with pytest.raises(wr.NotFoundError):
            wr.prep.plan("tokenize", folder, tmp_path / "p", tokenizer="bytes")


def test_a_table_without_rows_is_nothing(tmp_path: Path) -> None:
    make = "import sys, pyarrow as pa, pyarrow.parquet as pq; pq.write_table(pa.table({'text': pa.array([], pa.string())}), sys.argv[1]); print('[]')"
    with_loaders(make, tmp_path / "a.parquet")
    with pytest.raises(wr.NotFoundError):
        wr.tokenize(tmp_path / "a.parquet", tmp_path / "t", tokenizer="bytes")
    assert wr.tokenize(tmp_path / "a.parquet", tmp_path / "t", tokenizer="bytes", allow_empty=True)["records"] == 0
    wr.write(tmp_path / "none", [], to="shards", dtype="float32")
    for name in ("a.parquet", "none"):
        with pytest.raises(wr.ConfigError, match="no records to convert"):
            wr.convert(tmp_path / name, tmp_path / "out", to="shards")
    with pytest.raises(wr.ConfigError, match="no records to convert"):
        wr.prep.plan("convert", tmp_path / "none", tmp_path / "job", to="shards")
    assert wr.convert(tmp_path / "none", tmp_path / "out", to="shards", allow_empty=True)["records"] == 0
    program = ("convert", tmp_path / "none", tmp_path / "cli", "--to", "shards")
    assert main(*program) == 2
    assert main(*program, "--allow-empty") == 0
    # No other program could open it.
    with pytest.raises(wr.ConfigError, match="no record to write"):
        wr.convert(tmp_path / "a.parquet", tmp_path / "d.jsonl", to="jsonl", allow_empty=True)


def test_an_empty_part_among_others_has_no_records(tmp_path: Path) -> None:
    for name, content in (("a.jsonl", ""), ("b.jsonl", T[0]), ("c.jsonl", "")):
        put(tmp_path / name, content)
    files = [tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl")]
    for paths in (tmp_path, f"{tmp_path}/*.jsonl", files):
        assert texts(wr.open(paths)) == ["t0"]
    with pytest.raises(wr.CorruptError, match="0 bytes"):
        wr.open([tmp_path / "a.jsonl", tmp_path / "c.jsonl"])


def bare(path: Path, rows: Sequence[Any], to: str) -> None:
    """A file as another program leaves it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    wr.write(path, rows, to=to)
    for beside in path.parent.glob(f"{path.name}.windrow*"):
        beside.unlink()


def parts_with_an_empty_one(folder: Path, kind: str, at: int) -> tuple[str, dict[str, Any]]:
    """Three parts in a folder, of which one is empty; their pattern, and how they are opened."""
    rows = [{"text": "a"}, {"text": "b"}]
    contents: dict[str, tuple[str, str | bytes, str | bytes, dict[str, Any]]] = {
        "csv": ("csv", "a,b\n1,2\n3,4\n", "", {}),
        "csv of a header": ("csv", "a,b\n1,2\n3,4\n", "a,b\n", {}),
        "csv.gz of a header": ("csv.gz", gzip.compress(b"a,b\n1,2\n"), gzip.compress(b"\xef\xbb\xbfa,b\r\n"), {}),
        "tsv": ("tsv", "a\tb\n1\t2\n", "", {}),
        "tsf": ("tsf", "@relation x\n@attribute series_name string\n@frequency daily\n@data\nT1:1,2,3\n", "", {}),
        "yaml": ("yaml", "- sequence: [1.0, 2.0]\n", "", {}),
        "json": ("json", '[{"sequence": [1.0, 2.0]}]', "", {}),
        "jsonl": ("jsonl", lines("a", "b"), "", {}),
        "bin": ("bin", np.array([5, 6, 7], "uint16").tobytes(), "", {"dtype": "uint16"}),
        "bin as tokens": ("bin", np.array([5, 6, 7], "uint16").tobytes(), "", {"dtype": "uint16", "format": "tokens"}),
        "bin.gz": ("bin.gz", gzip.compress(np.array([5, 6, 7], "uint16").tobytes()), gzip.compress(b""), {"dtype": "uint16"}),
        "bin of documents": ("bin", np.array([5, 0, 7, 0], "uint16").tobytes(), "", {"dtype": "uint16", "document_eos": 0}),
        "array_record": ("array_record", b"", "", {}),
        "array_record by column": ("array_record", b"", "", {"columns": ["text"]}),
        "tfrecord": ("tfrecord", b"", "", {}),
        "tfrecord by column": ("tfrecord", b"", "", {"columns": ["text"]}),
        "webdataset": ("tar", b"", bytes(10240), {}),
        "webdataset by column": ("tar", b"", bytes(10240), {"columns": ["txt"]}),
    }
    ending, full, empty, options = contents[kind]
    for number in range(3):
        path = folder / f"p{number}.{ending}"
        if number == at:
            put(path, empty)
        elif ending == "tar":
            wr.write(folder.parent / f"tar{number}", [{"txt": row["text"]} for row in rows], to="webdataset")
            put(path, next((folder.parent / f"tar{number}").glob("*.tar")).read_bytes())
        elif ending in ("array_record", "tfrecord"):
            bare(path, rows, ending)
        else:
            put(path, full)
    return f"*.{ending}", options


EMPTY_PARTS = [
    "csv", "csv of a header", "csv.gz of a header", "tsv", "tsf", "yaml", "json", "jsonl", "bin", "bin as tokens", "bin.gz", "bin of documents",
    "array_record", "array_record by column", "tfrecord", "tfrecord by column", "webdataset", "webdataset by column",
]  # fmt: skip


@pytest.mark.parametrize("kind", EMPTY_PARTS)
def test_an_empty_part_is_no_records_in_a_folder_a_pattern_and_a_list(tmp_path: Path, kind: str) -> None:
    for at in range(3):
        folder = tmp_path / f"of{at}" / "data"
        pattern, options = parts_with_an_empty_one(folder, kind, at)
        files = sorted(folder.iterdir())
        filled = [path for number, path in enumerate(files) if number != at]
        wanted = [str(record) for record in wr.open(filled, **options)]
        assert wanted
        for paths in (folder, f"{folder}/{pattern}", files):
            if kind == "json" and paths == folder:
                continue
            assert [str(record) for record in wr.open(paths, **options)] == wanted, (at, paths)
            is_numbers = "int" in str(wr.open(paths, **options).info()["dtype"])
            # JSON has no bytes.
            to = "tfrecord" if "record" in kind else "jsonl"
            out = tmp_path / f"of{at}" / f"out.{to}"
            wr.convert(wr.open(paths, **options), out, to=to, overwrite=True)
            assert len(wr.open(out)) == len(wanted) or is_numbers
        # Alone it is what it was.
        if files[at].stat().st_size < 100 and "tfrecord" not in kind:
            with pytest.raises(wr.CorruptError):
                list(wr.open(files[at], **options))
        # One whose manifest says something else was cut short.
        if kind in ("bin", "array_record"):
            put(files[at].with_name(files[at].name + ".windrow.json"), json.dumps(MANIFEST | {"format": "tokens" if kind == "bin" else kind, "files": [{"name": files[at].name, "size": 8}]}))
            for paths in (folder, f"{folder}/{pattern}", files):
                with pytest.raises(wr.WindrowError):
                    wr.open(paths, **options)


MANIFEST = {"version": 1, "windrow": "0.1.0", "format": "tokens", "dtype": "uint16", "records": 1}


@pytest.mark.parametrize("kind", ["jsonl", "array_record", "tfrecord", "webdataset"])
def test_an_empty_part_gives_no_texts_in_a_folder_a_pattern_and_a_list(tmp_path: Path, kind: str) -> None:
    for at in range(3):
        folder = tmp_path / f"of{at}" / "data"
        pattern, _ = parts_with_an_empty_one(folder, kind, at)
        options = {"text_field": "txt"} if kind == "webdataset" else {}
        given = {"folder": folder, "pattern": f"{folder}/{pattern}", "list": sorted(folder.iterdir())}
        found = {name: tokenized(paths, tmp_path / f"{name}{at}", **options) for name, paths in given.items()}
        assert found == dict.fromkeys(given, ["a", "b"] * 2), at


@pytest.mark.parametrize("names", [[], ["a.jsonl"], ["a.jsonl", "b.jsonl"]])
def test_a_job_of_nothing_is_planned_where_that_is_meant(tmp_path: Path, names: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in names:
        put(folder / name, "")
    for task, options in (("tokenize", {"tokenizer": "bytes"}), ("index", {})):
        with pytest.raises(wr.NotFoundError) as error:
            wr.prep.plan(task, folder, tmp_path / f"p-{task}", **options)
        assert "allow_empty=True" in (error.value.hint or "") or not names
        job = wr.prep.plan(task, folder, tmp_path / f"p-{task}", allow_empty=True, **options)
        wr.prep.run(job)
        assert wr.prep.status(job)["left"] == []
        out = folder if task == "index" else tmp_path / "joined"
        assert wr.prep.join(job, out)["records"] == 0
        program = ["prep", "plan", task, folder, "--out", tmp_path / f"c-{task}", *(["--tokenizer", "bytes"] if options else [])]
        capfd.readouterr()
        assert main(*program) == 1
        assert "--allow-empty" in capfd.readouterr().err or not names
        assert main(*program, "--allow-empty") == 0
    wr.write(tmp_path / "none", [], to="shards", dtype="float32")
    job = wr.prep.plan("convert", tmp_path / "none", tmp_path / "p-convert", to="shards", allow_empty=True)
    wr.prep.run(job)
    assert wr.prep.join(job, tmp_path / "shards")["records"] == 0
    program = ["prep", "plan", "convert", tmp_path / "none", "--out", tmp_path / "c-convert", "--to", "shards"]
    assert main(*program) == 2 and main(*program, "--allow-empty") == 0
