# What verify says of each file: that a checksum covers it, that it was read with nothing to compare, or that it is bad.
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from foreign_cases import with_loaders

import windrow as wr


def states(path: Path) -> dict[str, str]:
    return {name: file["state"] for name, file in wr.verify(path)["files"].items()}


def command(*arguments: object, folder: Path) -> tuple[int, str, str]:
    ran = subprocess.run(
        [sys.executable, "-m", "windrow", *map(str, arguments)], capture_output=True, text=True, cwd=folder
    )
    return ran.returncode, ran.stdout, ran.stderr


def flip(path: Path, at: int) -> None:
    whole = bytearray(path.read_bytes())
    whole[at] ^= 4
    path.write_bytes(whole)


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    texts = (f"document {i} of some" for i in range(300))
    wr.tokenize(texts, tmp_path / "tokens", tokenizer="bytes")
    return tmp_path / "tokens"


WRITTEN = {
    "parquet": "d.parquet",
    "arrow": "d.arrow",
    "mds": "d",
    "litdata": "d",
    "webdataset": "d",
    "tfrecord": "d.tfrecord",
    "array_record": "d.array_record",
    "bagz": "d.bagz",
    "tokens": "d.bin",
    "llmc": "d.bin",
    "megatron": "d.bin",
    "datatrove": "d",
    "flat-tokens": "d.zarr",
    "shards": "d",
    "npy": "d.npy",
    "npz": "d.npz",
}


@pytest.mark.parametrize("to", WRITTEN)
def test_what_windrow_writes_is_checked_and_a_copy_without_side_files_only_where_the_format_has_checksums(
    tokens: Path, tmp_path: Path, to: str
) -> None:
    out = tmp_path / "out" / WRITTEN[to]
    out.parent.mkdir()
    if to in ("npy", "npz", "shards"):
        wr.write(out, [np.arange(50, dtype="int32")] * 3, to=to)
    else:
        wr.convert(tokens, out, to=to)
    for path in (out, out.parent):
        found = wr.verify(path)
        assert found["problems"] == [] and set(states(path).values()) == {"checked"}, found
        assert (found["checked_files"], found["read_files"], found["bad_files"]) == (len(found["files"]), 0, 0)
    for side in list(out.parent.rglob("windrow.*")) + list(out.parent.rglob("*.windrow.*")):
        side.unlink()
    if to == "shards":
        # meta.json holds the hashes of the shards, and nothing those of meta.json.
        assert states(out) == {"data-1-of-1.bin": "checked", "meta.json": "read"}
        return
    found = wr.verify(out)
    if to in ("mds", "litdata"):
        # It was read, and nothing says what it should be.
        assert found["files"].pop("index.json") == {"state": "read"}
    by = {file.get("by") for file in found["files"].values()}
    own = {
        "mds": "xxh64",
        "tfrecord": "CRC-32C of records",
        "array_record": "HighwayHash of chunks",
        "npz": "CRC-32 of zip",
    }
    found_states = {file["state"] for file in found["files"].values()}
    assert by == {own.get(to)} and found_states == {"checked" if to in own else "read"}, found


def test_the_command_says_it_of_each_file_and_never_good(tokens: Path, tmp_path: Path) -> None:
    wr.convert(tokens, tmp_path / "d.parquet", to="parquet")
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "d.parquet", tmp_path / "copy")
    size = f"{(tmp_path / 'd.parquet').stat().st_size / 1000:.1f} kB"
    assert command("verify", "d.parquet", folder=tmp_path) == (
        0,
        f"checked: d.parquet: xxh3\nd.parquet: 1 file checked; {size}\n",
        "",
    )
    code, out, _ = command("verify", "copy/d.parquet", folder=tmp_path)
    assert code == 0 and out.startswith("read: d.parquet: no checksum to compare\ncopy/d.parquet: 1 file read; ")
    assert "good" not in out
    code, out, _ = command("verify", "copy", "d.parquet", "--json", folder=tmp_path)
    found = json.loads(out)
    assert (code, found["state"], found["findings"]["checked_files"], found["findings"]["read_files"]) == (0, "read", 1, 1)
    flip(tmp_path / "d.parquet", 50)
    code, out, _ = command("verify", "copy", "d.parquet", folder=tmp_path)
    assert code == 3 and "bad: " in out and "1 problem; 1 file bad, 1 file read; " in out


def test_a_flip_in_mds_is_found_without_windrows_side_files(tokens: Path, tmp_path: Path) -> None:
    for options in ({}, {"compression": "zstd"}):
        shutil.rmtree(tmp_path / "m", ignore_errors=True)
        wr.convert(tokens, tmp_path / "m", to="mds", **options)
        for side in (tmp_path / "m").glob("windrow.*"):
            side.unlink()
        [shard] = (tmp_path / "m").glob("shard.*")
        index = json.loads((tmp_path / "m" / "index.json").read_text())["shards"][0]
        part = index["zip_data" if options else "raw_data"]
        assert (index["hashes"], list(part["hashes"])) == (["xxh64"], ["xxh64"])
        flip(shard, shard.stat().st_size - 60)
        found = wr.verify(tmp_path / "m")
        assert any(problem["what"] == "xxh64" for problem in found["problems"])
        assert states(tmp_path / "m") == {shard.name: "bad", "index.json": "read"}


# Files that pyarrow writes with checksums of their pages, and without; where a page of one column is.
PAGES = """
import json, sys
import pyarrow as pa, pyarrow.parquet as pq
folder = sys.argv[1]
lists = [[i, i + 1] for i in range(5000)]
rows = pa.table({"text": [f"row {i % 90}" for i in range(5000)], "n": list(range(5000)), "list": lists})
kinds = {"a": {}, "b": {"data_page_version": "2.0"}, "c": {"compression": "none", "use_dictionary": False}}
for name, options in kinds.items():
    options |= {"data_page_size": 4096, "row_group_size": 2000}
    pq.write_table(rows, f"{folder}/{name}.parquet", write_page_checksum=True, **options)
    pq.write_table(rows, f"{folder}/{name}-without.parquet", **options)
places = {name: pq.read_metadata(f"{folder}/{name}.parquet").row_group(1).column(1).data_page_offset for name in kinds}
print(json.dumps(places))
"""


def test_checksums_of_the_pages_of_other_writers_are_compared(tmp_path: Path) -> None:
    for name, page in with_loaders(PAGES, tmp_path).items():
        path, without = tmp_path / f"{name}.parquet", tmp_path / f"{name}-without.parquet"
        found = wr.verify(path)
        assert found["files"] == {path.name: {"state": "checked", "by": "CRC-32 of pages"}}
        [note] = found["notes"]
        assert "the footer, with names and types, and the headers of pages have no checksum" in note
        assert states(without) == {without.name: "read"}
        flip(path, page + 100)
        [problem] = wr.verify(path)["problems"]
        assert problem["what"].startswith("page at byte ") and problem["expected"].startswith("CRC-32 ")
        assert states(path) == {path.name: "bad"}
        with pytest.raises(wr.CorruptError):
            list(wr.open(path, columns=["n"]))
    # The other files of a folder are read all the same.
    assert states(tmp_path) == {f"{name}{rest}": state for name in "abc" for rest, state in ENDS.items()}


ENDS = {".parquet": "bad", "-without.parquet": "read"}


def test_a_damaged_parquet_is_one_error_and_no_panic_is_printed(tmp_path: Path) -> None:
    wr.write(tmp_path / "d.parquet", [np.arange(i % 7, 900, dtype="int32") for i in range(200)], to="parquet")
    whole = bytearray((tmp_path / "d.parquet").read_bytes())
    whole[5000:5004] = b"ZZZZ"
    (tmp_path / "d.parquet").write_bytes(whole)
    code, _, said = command("inspect", "d.parquet", "--verify-checksums", folder=tmp_path)
    assert code == 3 and "panicked" not in said and "External" not in said and "\\n" not in said
    assert said.count("error:") == 1 and said.count("hint:") == 1 and "bytes 4096 to 8192 are not those that were written" in said
    for side in tmp_path.glob("*.windrow.*"):
        side.unlink()
    for at in range(4, len(whole) - 1000, len(whole) // 40):
        copy = bytearray(whole)
        copy[at : at + 8] = b"\xff" * 8
        (tmp_path / "c.parquet").write_bytes(copy)
        _, out, said = command("verify", "c.parquet", folder=tmp_path)
        assert "panicked" not in said + out


def test_json_lines_are_read_and_those_in_gzip_checked(tmp_path: Path) -> None:
    import gzip

    lines = "".join(json.dumps({"text": f"{i}"}) + "\n" for i in range(50))
    (tmp_path / "a.jsonl").write_text(lines)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "raw.bin").write_bytes(bytes(64))
    found = wr.verify(tmp_path)
    assert states(tmp_path) == {"a.jsonl": "read", "b.jsonl.gz": "checked"}
    assert any("raw.bin" in note and "not looked at" in note for note in found["notes"])
    wr.index(tmp_path)
    assert states(tmp_path)["a.jsonl"] == "read"


def test_one_of_several_paths_that_is_missing_does_not_keep_the_others_from_being_checked(
    tokens: Path, tmp_path: Path
) -> None:
    wr.convert(tokens, tmp_path / "d.bin", to="tokens")
    code, out, _ = command("verify", "nosuch", "d.bin", folder=tmp_path)
    assert code == 3 and "nosuch" in out and "1 problem; 1 file bad, 1 file checked; " in out
    with pytest.raises(wr.NotFoundError):
        wr.verify(tmp_path / "nosuch")


def test_a_pair_is_the_same_by_each_of_its_names(tokens: Path, tmp_path: Path) -> None:
    wr.convert(tokens, tmp_path / "pair" / "m", to="megatron")
    names = [tmp_path / "pair" / name for name in ("m", "m.bin", "m.idx")]
    first = wr.verify(names[0])
    assert (first["checked_files"], set(first["files"])) == (2, {"m.bin", "m.idx"})
    for path in [*names, tmp_path / "pair"]:
        info = wr.open(path).info()
        assert (info["tokenizer"], info["records"]) == ("bytes", 300), path
        found = wr.verify(path)
        assert (found["files"], found["checked_bytes"]) == (first["files"], first["checked_bytes"]), path
        code, _, said = command("peek", path, "--tokenizer", "gpt2", folder=tmp_path)
        assert code == 4 and "another tokenizer" in said, path


@pytest.mark.parametrize("to", [to for to in WRITTEN if to not in ("npy", "npz", "shards")])
def test_a_folder_is_known_by_the_manifest_beside_its_file(tokens: Path, tmp_path: Path, to: str) -> None:
    out = tmp_path / "out" / WRITTEN[to]
    out.parent.mkdir()
    wr.convert(tokens, out, to=to)
    paths = [out, out.parent] if out.is_file() else [out]
    for path in paths:
        assert wr.open(path).info()["tokenizer"] == "bytes", path
    code, _, said = command("manifest", ".", folder=out.parent if out.is_file() else out)
    assert code == 1 and "has a manifest, which was written with it" in said


def test_a_manifest_is_refused_where_there_is_one_and_the_data_is_as_it_was(tokens: Path, tmp_path: Path) -> None:
    before = sorted(path.name for path in tokens.rglob("*"))
    code, _, said = command("manifest", "tokens", folder=tmp_path)
    assert code == 1 and "has a manifest, which was written with it" in said
    assert sorted(path.name for path in tokens.rglob("*")) == before


def test_what_a_listing_says_of_a_truncated_copy_is_said_once_with_what_to_do(tokens: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    np.save(tmp_path / "copy" / "d.npy", np.arange(900))
    assert command("manifest", "copy", folder=tmp_path)[0] == 0
    path = tmp_path / "copy" / "d.npy"
    path.write_bytes(path.read_bytes()[:-100])
    code, out, _ = command("verify", "copy", folder=tmp_path)
    assert code == 3 and "1 problem; 1 file bad; " in out and out.count("bad: ") == 1
    _, _, said = command("inspect", "copy", folder=tmp_path)
    assert "hint: the copy looks unfinished: fetch it again" in said


SINGLE = {"tokens": ".bin", "parquet": ".parquet", "tfrecord": ".tfrecord", "npy": ".npy", "arrow": ".arrow"}


def renamed(out: Path, name: str) -> Path:
    """Copies of a file and of what is beside it, under another name."""
    for path in out.parent.iterdir():
        if path.name.startswith(out.stem + "."):
            shutil.copy(path, path.with_name(name + path.name.removeprefix(out.stem)))
    return out.with_name(name + out.suffix)


@pytest.mark.parametrize("to", SINGLE)
@pytest.mark.parametrize("is_moved", [False, True], ids=["copied", "moved"])
def test_a_manifest_that_was_renamed_with_its_file_speaks_of_that_file(
    tokens: Path, tmp_path: Path, to: str, is_moved: bool
) -> None:
    out = tmp_path / "d" / f"a{SINGLE[to]}"
    out.parent.mkdir()
    if to == "npy":
        wr.write(out, [np.arange(2000, dtype="uint16")], to=to)
    else:
        wr.convert(tokens, out, to=to)
    info = wr.open(out).info()
    other = renamed(out, "b")
    if is_moved:
        for path in out.parent.glob("a.*"):
            path.unlink()
    assert states(other) == {other.name: "checked"}
    for path in (other, out.parent) if is_moved else (other,):
        found = wr.open(path).info()
        assert [found[key] for key in ("tokenizer", "records", "values")] == [
            info[key] for key in ("tokenizer", "records", "values")
        ]
        wr.open(path, verify_checksums=True)
    assert set(states(out.parent).values()) == {"checked"}
    flip(other, other.stat().st_size // 2)
    [problem] = wr.verify(other)["problems"]
    assert (problem["file"], problem["what"]) in ((str(other), "xxh3"), (other.name, "xxh3")), problem
    assert states(out.parent)[other.name] == "bad"
    other.write_bytes(other.read_bytes()[:-4])
    assert states(other) == {other.name: "bad"}
    with pytest.raises(wr.WindrowError, match="the manifest says"):
        wr.open(other)


def test_a_pair_that_was_renamed_with_its_manifest_is_compared_with_it(tokens: Path, tmp_path: Path) -> None:
    out = tmp_path / "d" / "m.bin"
    out.parent.mkdir()
    wr.convert(tokens, out, to="megatron")
    renamed(out, "n")
    for name in ("n", "n.bin", "n.idx"):
        assert states(tmp_path / "d" / name) == {"n.bin": "checked", "n.idx": "checked"}, name
        assert wr.open(tmp_path / "d" / name).info()["tokenizer"] == "bytes"
    flip(tmp_path / "d" / "n.bin", 50)
    for name in ("n", "n.bin", "n.idx"):
        assert states(tmp_path / "d" / name) == {"n.bin": "bad", "n.idx": "checked"}, name


def test_a_manifest_of_several_other_files_is_refused(tokens: Path, tmp_path: Path) -> None:
    wr.convert(tokens, tmp_path / "a.bin", to="tokens")
    manifest = json.loads((tmp_path / "a.bin.windrow.json").read_text())
    del manifest["xxh3"]
    manifest["files"].append({"name": "c.bin", "size": 4})
    (tmp_path / "x.bin").write_bytes((tmp_path / "a.bin").read_bytes())
    (tmp_path / "x.bin.windrow.json").write_text(json.dumps(manifest))
    with pytest.raises(wr.CorruptError, match='the manifest is of other files: "a.bin", "c.bin"'):
        wr.open(tmp_path / "x.bin")
    code, _, said = command("inspect", "x.bin", folder=tmp_path)
    assert code == 3 and "the manifest is of other files" in said and "hint: " in said
    for path in (tmp_path / "x.bin", tmp_path):
        [problem] = wr.verify(path)["problems"]
        assert problem["file"].endswith("x.bin.windrow.json") and "c.bin" in problem["found"], problem


# What is opened alone of a data set that tokenize or convert writes, and what its values are.
PARTS = {
    "forager": ("tokenized-samples/text-tokenized-samples.bin", "uint16"),
    "shards": ("data-1-of-1.bin", "uint16"),
}


def tokenized(folder: Path, to: str) -> Path:
    (folder / "text.jsonl").write_text("".join(json.dumps({"text": f"document {i} of some"}) + "\n" for i in range(300)))
    wr.tokenize(folder / "text.jsonl", folder / "t", tokenizer="bytes", to=to)
    return folder / "t"


@pytest.mark.parametrize("to", PARTS)
@pytest.mark.parametrize("by", ["its path", "a link", "a folder that is a link"])
def test_a_file_of_a_data_set_is_known_by_the_manifest_of_the_folder(tmp_path: Path, to: str, by: str) -> None:
    whole = tokenized(tmp_path, to)
    name, dtype = PARTS[to]
    path = whole / name
    if by == "a link":
        path = tmp_path / "link.bin"
        path.symlink_to(whole / name)
    elif by == "a folder that is a link":
        (tmp_path / "link").symlink_to((whole / name).parent)
        path = tmp_path / "link" / Path(name).name
    info = wr.open(path).info()
    assert (info["tokenizer"], info["dtype"], info["values"], info["records"]) == ("bytes", dtype, 5890, 1)
    assert wr.verify(path)["files"] == {path.name: {"state": "checked", "by": "xxh3"}}
    code, _, said = command("peek", path, "--tokenizer", "gpt2", folder=tmp_path)
    assert code == 4 and "another tokenizer" in said
    code, _, said = command("manifest", path, folder=tmp_path)
    assert code == 1 and "has a manifest, which was written with it" in said
    flip(whole / name, 100)
    assert states(path) == {path.name: "bad"}


def test_a_folder_of_a_data_set_is_known_by_the_manifest_above_it(tmp_path: Path) -> None:
    whole = tokenized(tmp_path, "forager")
    samples = whole / "tokenized-samples"
    (tmp_path / "link").symlink_to(samples)
    for path in (samples, tmp_path / "link"):
        info = wr.open(path).info()
        assert (info["tokenizer"], info["dtype"], info["values"]) == ("bytes", "uint16", 5890)
        found = wr.verify(path)
        assert set(states(path).values()) == {"checked"} and found["notes"] == [], found
        code, _, said = command("manifest", path, folder=tmp_path)
        assert code == 1 and "has a manifest, which was written with it" in said
    flip(next(samples.iterdir()), 100)
    assert set(states(samples).values()) == {"bad"}
    # A file that the manifest does not list may be of anything.
    (samples / "more.bin").write_bytes(bytes(64))
    assert wr.open(samples, split="all").info()["tokenizer"] is None


@pytest.mark.parametrize("to", ["mds", "litdata"])
def test_a_shard_alone_is_compared_and_opened_with_its_folder(tokens: Path, tmp_path: Path, to: str) -> None:
    wr.convert(tokens, tmp_path / "d", to=to)
    [shard] = [path for path in (tmp_path / "d").iterdir() if path.suffix in (".mds", ".bin")]
    found = wr.verify(shard)
    assert found["files"] == {shard.name: {"state": "checked", "by": "xxh3"}} and found["problems"] == []
    with pytest.raises(wr.UnrecognisedError, match=f"part of a data set of {to}.*\n.*\n.*open all of it: {tmp_path}/d"):
        wr.open(shard)
    flip(shard, 100)
    assert states(shard) == {shard.name: "bad"}


def test_one_of_several_shards_opens_and_is_compared_alone(tokens: Path, tmp_path: Path) -> None:
    wr.convert(tokens, tmp_path / "d", to="webdataset", size_limit=100_000)
    shards = sorted((tmp_path / "d").glob("*.tar"))
    assert len(shards) > 2 and sum(len(wr.open(shard)) for shard in shards) == 300
    for shard in shards:
        assert wr.open(shard).info()["tokenizer"] == "bytes" and states(shard) == {shard.name: "checked"}


def test_the_halves_of_a_pair_in_a_list_are_counted_once(tokens: Path, tmp_path: Path) -> None:
    wr.convert(tokens, tmp_path / "m.bin", to="megatron")
    once = wr.verify(tmp_path / "m.bin")
    for names in (["m.bin", "m.idx"], ["m.idx", "m.bin"], ["m", "m.bin", "m.idx"]):
        found = wr.verify([tmp_path / name for name in names])
        counted = ("checked_files", "checked_bytes", "checked_records", "notes")
        assert [found[key] for key in counted] == [once[key] for key in counted], names
    flip(tmp_path / "m.bin", 100)
    assert len(wr.verify([tmp_path / "m.bin", tmp_path / "m.idx"])["problems"]) == 1


@pytest.mark.parametrize("companion", [".index", ".loss", ".metadata"])
@pytest.mark.parametrize("described", [True, False])
def test_what_is_read_with_a_file_of_datatrove_is_verified_with_it(
    tokens: Path, tmp_path: Path, companion: str, described: bool
) -> None:
    wr.convert(tokens, tmp_path / "d", to="datatrove")
    [data] = (tmp_path / "d").glob("*.ds")
    manifest = json.loads((tmp_path / "d" / "windrow.json").read_text())
    loss = data.with_name(f"{data.name}.loss")
    wr.write(tmp_path / "loss.bin", [np.ones(wr.open(data).info()["values"], "uint8")], to="tokens")
    shutil.copy(tmp_path / "loss.bin", loss)
    [row] = json.loads((tmp_path / "loss.bin.windrow.json").read_text())["files"]
    del manifest["xxh3"]
    manifest["files"].append({**row, "name": loss.name})
    (tmp_path / "d" / "windrow.json").write_text(json.dumps(manifest))
    (tmp_path / "d" / "windrow.sums").unlink()
    if not described:
        (tmp_path / "d" / "windrow.json").unlink()
    names = {data.name + rest for rest in ("", ".index", ".loss", ".metadata")}
    for path in (data, tmp_path / "d"):
        assert states(path) == dict.fromkeys(names, "checked" if described else "read"), path
    changed = data.with_name(data.name + companion)
    if described:
        flip(changed, 0)
        for path in (data, tmp_path / "d"):
            assert states(path) == dict.fromkeys(names - {changed.name}, "checked") | {changed.name: "bad"}, path
        changed.unlink()
        with pytest.raises(wr.StaleError, match="it is gone"):
            wr.open(data)
        assert states(data)[changed.name] == "bad"
    else:
        changed.write_bytes(changed.read_bytes()[:-1] if companion != ".metadata" else b"x|3\n1\n")
        assert "bad" in states(data).values()


def test_the_documents_beside_a_file_of_olmo_are_verified_with_it(tokens: Path, tmp_path: Path) -> None:
    wr.convert(tokens, tmp_path / "d", to="olmo")
    [data] = (tmp_path / "d").glob("*.npy")
    table = data.with_suffix(".csv.gz")
    assert states(data) == {data.name: "checked", table.name: "checked"}
    flip(table, table.stat().st_size - 6)
    assert states(data) == {data.name: "checked", table.name: "bad"}


def test_the_index_of_chunks_is_among_the_files_that_were_read(tokens: Path, tmp_path: Path) -> None:
    for to in ("mds", "litdata"):
        wr.convert(tokens, tmp_path / to, to=to)
        assert states(tmp_path / to)["index.json"] == "checked"
        for side in (tmp_path / to).glob("windrow.*"):
            side.unlink()
        found = wr.verify(tmp_path / to)
        assert found["files"]["index.json"] == {"state": "read"} and found["problems"] == []
        assert states(tmp_path / to / "index.json")["index.json"] == "read"


def test_a_name_in_an_archive_that_is_not_that_of_its_member_is_found(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    np.savez(path, first=np.arange(30), second=np.arange(30, 60))
    whole = path.read_bytes()
    for at in [at for at in range(len(whole)) if whole[at:].startswith((b"first.npy", b"second.npy"))]:
        for byte in range(at, at + 9):
            path.write_bytes(whole)
            flip(path, byte)
            assert states(path) == {path.name: "bad"}, byte
            with pytest.raises(wr.CorruptError):
                wr.open(path)
