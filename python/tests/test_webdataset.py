"""WebDataset: golden cases, read beside the package itself, splits of Megatron-Energon, and damage."""

import gzip
import io
import json
import shutil
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import windrow as wr
import foreign_cases
from foreign_cases import printed_by_loaders, same

GOLDEN = foreign_cases.GOLDEN / "webdataset"
CASES = foreign_cases.names("webdataset")


def archive(path, members, mode="w", form=tarfile.PAX_FORMAT):
    with tarfile.open(path, mode, format=form) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def npy(array, **how):
    file = io.BytesIO()
    np.save(file, array, **how)
    return file.getvalue()


def checksummed(block):
    block = bytearray(block)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block[:512])
    return bytes(block)


def test_there_are_cases():
    assert len(CASES) >= 20


# Numbers that are in the tar as they are have their place there; of others the whole member is read.
@pytest.mark.parametrize(
    ("suffix", "stored"),
    [
        ("npy", npy(np.arange(8, dtype="<i4"))),
        ("npy", npy(np.arange(8, dtype=">i4"))),
        ("npy.gz", gzip.compress(npy(np.arange(8, dtype="<i4")), mtime=0)),
    ],
    ids=["plain", "big-endian", "packed"],
)
def test_trace_names_the_numbers_or_their_member(tmp_path, suffix, stored):
    path = archive(tmp_path / "a.tar", [("x.txt", b"x"), (f"x.{suffix}", stored)])
    ds = wr.open(path, column=suffix)
    assert ds[0].tolist() == list(range(8))
    (row,) = wr.trace(wr.Loader(ds.pack(4), batch_size=1, shuffle=False), 0)
    (place,) = row["reads"][0]["locations"]
    found = path.read_bytes()[place["start"] : place["start"] + place["size"]]
    is_plain = stored == npy(np.arange(8, dtype="<i4"))
    assert place["file"] == str(path) and found == (np.arange(5, dtype="<i4").tobytes() if is_plain else stored)


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    foreign_cases.holds(GOLDEN / name, "webdataset", says=".tar")


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("broken")])
def test_good_ones_verify_and_damage_is_found(name, tmp_path):
    shutil.copytree(GOLDEN / name, tmp_path / "copy")
    for made in ("case.json", "expected.json"):
        (tmp_path / "copy" / made).unlink()
    found = wr.verify(tmp_path / "copy")
    assert found["problems"] == [] and found["checked_records"] > 0
    data = max((tmp_path / "copy").glob("*.tar*"), key=lambda path: path.stat().st_size)
    whole = data.read_bytes()
    data.write_bytes(whole[: min(600, len(whole) - 9)])
    assert wr.verify(tmp_path / "copy")["problems"]


def test_an_index_of_energon_that_points_elsewhere_is_found():
    found = wr.verify(GOLDEN / "broken_energon_index")["problems"]
    assert [Path(problem["file"]).name for problem in found] == ["shard_000.tar.idx"]


def test_keys_that_are_not_utf8_stay_different(tmp_path):
    members = [("f\udcfc.txt", b"first"), ("f\udcf6.json", b'{"second": 1}'), ("f\udce4.cls", b"3")]
    archive(tmp_path / "a.tar", members, form=tarfile.GNU_FORMAT)
    keys = ["f\\xfc", "f\\xf6", "f\\xe4"]
    assert [row["__key__"] for row in wr.open(tmp_path / "a.tar")] == keys
    wr.convert(tmp_path / "a.tar", tmp_path / "again", to="webdataset")
    again = [row["__key__"] for row in wr.open(tmp_path / "again")]
    assert again == keys


def package(*paths):
    """Samples as the package gives them, each value as it is printed."""
    code = """
import sys, json, webdataset
found = webdataset.WebDataset(sys.argv[1:], shardshuffle=False, empty_check=False).decode()
for sample in found:
    print(json.dumps({k: repr(v) for k, v in sample.items() if k not in ("__url__", "__local_path__")}))
"""
    return [json.loads(line) for line in printed_by_loaders(code, *paths)]


def test_the_package_gives_the_same(tmp_path):
    rng = np.random.default_rng(3)
    paths = []
    for shard in range(3):
        members = []
        for i in range(5):
            key = f"deep/{'x' * (30 * i)}ä{shard}.d/{i}"
            members += [
                (f"{key}.txt", f"größe {i}".encode()),
                (f"{key}.JSON", b'{"a": [1, null, "x"]}'),
                (f"{key}.n.id", b" -12\n"),
                (f"{key}.left.npy", npy(rng.normal(size=(i, 3)).astype(">f4" if i % 2 else "f4"))),
                (f"{key}.cls.gz", gzip.compress(b"1_000")),
                (f"{key}.bin", bytes(range(i))),
            ]
        form = [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT][shard % 2]
        paths.append(archive(tmp_path / f"x-{shard}.tar", members, form=form))
    theirs = package(*paths)
    ours = list(wr.open(tmp_path))
    assert len(ours) == 15 and ours[0]["n.id"] == -12 and ours[3]["cls.gz"] == 1000

    def shown(found):
        # Of arrays of big-endian numbers, the package keeps the order.
        return {k: repr(v).replace(", dtype='>f4'", ", dtype=float32") for k, v in found.items()}

    assert [shown(found) for found in ours] == [
        {k: v.replace(", dtype='>f4'", ", dtype=float32") for k, v in found.items()} for found in theirs
    ]


def test_values(tmp_path):
    fortran = np.asfortranarray(np.arange(24, dtype="int16").reshape(2, 3, 4))
    packed = io.BytesIO()
    np.savez_compressed(packed, a=np.arange(1000), b=np.float32(2.5))
    path = archive(
        tmp_path / "a.tar",
        [
            ("0.npy", npy(fortran)),
            ("0.scalar.npy", npy(np.float64(1.5))),
            ("0.big.npy", npy(np.arange(3, dtype=">u4"))),
            ("0.npz", packed.getvalue()),
            ("0.index", b"18446744073709551615"),
            ("0.jsn", b"\xef\xbb\xbf[1, NULL]".replace(b"NULL", b"null")),
            ("0.pkl", b"cos\nsystem\n(S'false'\ntR."),
            ("0.pth", b"pk"),
            ("0.transcript", b""),
            ("0.txt.gz", gzip.compress(b"a") + gzip.compress(b"b")),
        ],
    )
    found = wr.open(path)[0]
    assert (found["npy"] == fortran).all() and found["npy"].dtype == "int16"
    assert found["scalar.npy"].shape == () and found["scalar.npy"] == 1.5
    assert found["big.npy"].tolist() == [0, 1, 2] and found["big.npy"].dtype == "uint32"
    assert (found["npz"]["a"] == np.arange(1000)).all() and found["npz"]["b"] == np.float32(2.5)
    assert found["index"] == 2**64 - 1 and found["jsn"] == [1, None]
    assert found["pkl"].startswith(b"cos") and found["pth"] == b"pk"
    assert found["transcript"] == "" and found["txt.gz"] == "ab"


BAD = {
    "a.txt": b"\xff",
    "a.cls": b"1.5",
    "a.json": b'{"a": NaN}',
    "a.jsn": b"",
    "a.npy": npy(np.array([1, None], dtype=object)),
    "a.left.npy": npy(np.arange(9))[:-1],
    "a.words.npy": npy(np.array(["x"])),
    "a.npz": b"PK\x03\x04",
    "a.txt.gz": gzip.compress(b"straw" * 100)[:-9],
    "a.cls.gz": b"7",
    "a.gz": gzip.compress(bytes(64 << 20)),
}


@pytest.mark.parametrize("member", BAD)
def test_a_member_that_cannot_be_read_is_named(member, tmp_path):
    path = archive(tmp_path / "a.tar", [("ok.x", b""), (member, BAD[member]), ("last.x", b"")])
    ds = wr.open(path)
    assert ds[0]["__key__"] == "ok" and ds[2]["__key__"] == "last"
    with pytest.raises(wr.CorruptError) as failed:
        ds[1]
    text = str(failed.value)
    assert "a.tar" in text and "record 1" in text and f'"{member}"' in text and "byte" in text
    assert "every line" not in text
    assert wr.open(path, columns=["__key__", "x"])[1] == {"__key__": "a", "x": None}
    assert [problem["record"] for problem in wr.verify(path)["problems"]] == [1]


def header(name, **fields):
    info = tarfile.TarInfo(name)
    for field, what in fields.items():
        setattr(info, field, what)
    return info.tobuf(tarfile.GNU_FORMAT)


def pax(records):
    return header("p", type=b"x", size=len(records)) + records + bytes(-len(records) % 512)


END = bytes(1024)
ONE = header("a.txt", size=1) + b"1" + bytes(511)
REFUSED = {
    "no end mark": (ONE, "end mark"),
    "an empty file": (b"", "end mark"),
    "cut in the padding": (ONE[:-3], "end mark"),
    "cut in a header": (ONE + ONE[:200], "end mark"),
    "a checksum": (b"b" + ONE[1:] + END, "checksum"),
    "not an archive": (b"no archive" * 200, "checksum"),
    "a size beyond the file": (header("a.txt", size=8 << 30) + END, "bytes"),
    "a size below zero": (checksummed(ONE[:124] + b"\xff" * 12 + ONE[136:]) + END, "size"),
    "a size of 96 bits": (checksummed(ONE[:124] + b"\x80" + b"\x7f" * 11 + ONE[136:]) + END, "size"),
    "a record of PAX without its line end": (pax(b"11 path=a.bb") + ONE + END, "PAX"),
    "a record of PAX beyond the others": (pax(b"99 path=a.b\n") + ONE + END, "PAX"),
    "a record of PAX without a length": (pax(b"path=a.b\n") + ONE + END, "PAX"),
    "a PAX size beyond the file": (pax(b"20 size=99999999999\n") + ONE + END, "bytes"),
    "records of PAX without a member": (ONE + pax(b"9 path=a\n") + END, "without"),
    "a long name of 65 KiB": (header("l", type=b"L", size=65 << 10) + bytes(65 << 10) + ONE + END, "name"),
    "a path of 65 KiB": (pax(b"66572 path=" + b"a" * 66560 + b"\n") + ONE + END, "name"),
    "a sparse file of GNU": (header("a.txt", type=b"S") + END, "sparse"),
    "a sparse file of PAX": (pax(b"22 GNU.sparse.major=1\n") + ONE + END, "sparse"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_archive_that_is_not_whole_is_refused_at_opening(what, tmp_path):
    data, word = REFUSED[what]
    path = tmp_path / "a.tar"
    path.write_bytes(data)
    with pytest.raises((wr.CorruptError, wr.UnsupportedError), match=word) as failed:
        wr.open(path)
    assert "a.tar" in str(failed.value)


def test_a_compressed_archive_that_ends_early_is_refused(tmp_path):
    path = archive(tmp_path / "a.tar.gz", [(f"{i}.bin", np.random.default_rng(i).bytes(99)) for i in range(50)], "w:gz")
    assert len(wr.open(path)) == 50
    whole = path.read_bytes()
    for name in ("b.tar.gz", "b.tgz", "b.tar"):
        path = tmp_path / name
        path.write_bytes(whole)
        assert wr.open(path)[49]["__key__"] == "49"
        path.write_bytes(whole[:-20])
        with pytest.raises(wr.CorruptError, match="stream"):
            wr.open(path)


def test_names_with_dots_in_their_keys_are_refused_when_there_are_very_many(tmp_path):
    path = archive(tmp_path / "a.tar", [(f"image.{i}.jpg", b"") for i in range(10_001)])
    with pytest.raises(wr.UnsupportedError, match="suffixes"):
        wr.open(path)


def test_a_column_of_numbers(tmp_path):
    rng = np.random.default_rng(0)
    documents = [rng.integers(0, 50_000, n).astype("uint16") for n in rng.integers(1, 60, 200)]
    for shard in range(4):
        members = []
        for i in range(shard * 50, shard * 50 + 50):
            # Stored, the other way round, compressed, and as a list.
            ids = documents[i].astype(">u2") if i % 2 else documents[i]
            listed = json.dumps(documents[i].tolist()).encode()
            members += [(f"{i}.npy", npy(ids)), (f"{i}.json", listed), (f"{i}.txt", b"t%d" % i)]
            members += [(f"{i}.ids.npy.gz", gzip.compress(npy(ids))), (f"{i}.raw", documents[i].tobytes())]
        archive(tmp_path / f"s-{shard}.tar", members)
    plain = tmp_path / "b.bin"
    wr.write(plain, [np.concatenate(documents)], to="tokens")
    for options in (
        {"column": "npy"},
        {"column": "ids.npy.gz"},
        {"column": "json"},
        {"column": "raw", "dtype": "uint16"},
    ):
        ds = wr.open(tmp_path, format="webdataset", **options)
        assert all((record == want).all() for record, want in zip(ds, documents, strict=True)), options
        assert ds.extras(7)["txt"] == "t7" and ds.extras(7)["__key__"] == "7"
        assert options["column"] not in ds.extras(7)
        loader = wr.Loader(ds.pack(32), batch_size=4, seed=1)
        other = wr.Loader(wr.open(plain).pack(32), batch_size=4, seed=1)
        for _ in range(5):
            assert (next(loader)["input_ids"] == next(other)["input_ids"]).all()
        again = wr.Loader(ds.pack(32), batch_size=4, seed=1)
        again.load_state_dict(loader.state_dict())
        assert (next(again)["labels"] == next(other)["labels"]).all()
    with pytest.raises(wr.ConfigError, match="text"):
        wr.open(tmp_path / "s-0.tar", column="txt")
    with pytest.raises(wr.ConfigError, match="no column"):
        wr.open(tmp_path / "s-0.tar", column="mp3")


def test_a_sample_without_the_column_is_an_error_of_that_sample(tmp_path):
    path = archive(tmp_path / "a.tar", [("0.npy", npy(np.arange(3))), ("1.txt", b""), ("2.npy", npy(np.arange(2)))])
    ds = wr.open(path, column="npy")
    assert ds[2].tolist() == [0, 1]
    with pytest.raises(wr.CorruptError, match='"1" has no member "npy"'):
        ds[1]


def test_many_samples_are_found_by_a_table_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))
    path = archive(tmp_path / "a.tar", [(f"{i:05}.txt", b"%d" % i + bytes(900)) for i in range(6000)])
    first = wr.open(path)
    (table,) = (tmp_path / "cache").iterdir()
    assert 6000 * 8 < table.stat().st_size < 6000 * 8 + 4096
    before = table.stat().st_ino
    again = wr.open(path)
    assert len(again) == 6000 and again[5999] == first[5999] and again[5999]["txt"].startswith("5999\0")
    assert table.stat().st_ino == before
    archive(path, [("x.txt", bytes(5 << 20))])
    assert wr.open(path)[0]["__key__"] == "x"


def energon(folder, splits, shards=4, samples=3):
    (folder / ".nv-meta").mkdir(parents=True)
    (folder / ".nv-meta" / "split.yaml").write_text(splits)
    for shard in range(shards):
        archive(folder / f"s-{shard:02}.tar", [(f"{shard}-{i}.cls", b"%d" % i) for i in range(samples)])
    return folder


def keys(*args, **options):
    return [record["__key__"] for record in wr.open(*args, **options)]


def test_splits_of_energon(tmp_path):
    folder = energon(
        tmp_path / "d",
        "split_parts:\n  train: ['s-{02..01}.tar']\n  val:\n  - s-00.tar\n  - s-03.tar\n  test: []\n"
        "exclude: ['s-{03..03}.tar', s-01.tar/1]\n",
    )
    assert keys(folder, split="train") == ["2-0", "2-1", "2-2", "1-0", "1-2"]
    for word in ("val", "validation", "VAL"):
        assert keys(folder, split=word) == ["0-0", "0-1", "0-2"]
    with pytest.raises(wr.ConfigError, match="several splits: train .*val"):
        wr.open(folder)
    for split in ("test", "other"):
        with pytest.raises(FileNotFoundError, match="split"):
            wr.open(folder, split=split)
    assert keys(folder / "s-03.tar") == ["3-0", "3-1", "3-2"]
    found = wr.verify(folder)
    assert found["problems"] == [] and found["checked_records"] == 12
    (folder / "s-03.tar").write_bytes(ONE)
    assert wr.verify(folder)["problems"]


@pytest.mark.parametrize(
    "splits",
    [
        "split_parts: {train: ['s-{00..09}.tar']}",
        "split_parts: {train: ['s-{0..9999999999999}.tar']}",
        "split_parts: {train: [s-00.tar, 's-{00..01}.tar']}",
        "split_parts: {train: ['" + "{a,b}" * 40 + "']}",
        "split_parts: {train: ['../d/s-00.tar']}",
        "split_parts: {train: [s-00.tar]}\nexclude: [s-00.tar/3]",
        "split_parts: {train: [s-00.tar]}\nexclude: [s-09.tar]",
        "split_parts: [train]",
        "split_parts: {train: [s-00.tar",
        "a: &a [1]\nsplit_parts: {train: *a}",
        "{}",
    ],
)
def test_splits_that_are_not_there_are_refused(splits, tmp_path):
    folder = energon(tmp_path / "d", splits)
    with pytest.raises(wr.CorruptError):
        wr.open(folder, split="train")


def test_splits_told_by_names(tmp_path):
    for split in ("train", "val"):
        archive(tmp_path / f"{split}-0.tar", [(f"{split}.txt", b"")])
    with pytest.raises(wr.ConfigError, match="several splits"):
        wr.open(tmp_path)
    assert keys(tmp_path, split="val") == ["val"]
    assert wr.verify(tmp_path)["problems"] == []


def test_an_archive_beside_other_data_leaves_it_what_it_is(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    archive(tmp_path / "old.tar", [("a.txt", b"1")])
    assert wr.open(tmp_path).format == "jsonl"
    # img2dataset writes these beside each archive.
    (tmp_path / "x").mkdir()
    archive(tmp_path / "x" / "00000.tar", [("a.txt", b"1")])
    (tmp_path / "x" / "00000.parquet").write_bytes(b"PAR1")
    (tmp_path / "x" / "00000_stats.json").write_text("{}")
    assert keys(tmp_path / "x") == ["a"]


def rows_to_write():
    return [
        {
            "__key__": f"shelf/{'x' * (20 * i)}ü{i}",
            "text": f"größe {i}",
            "source": "field",
            "tags": ["a", None, i],
            "count": 2**64 - 1 if i else -5,
            "share": i / 4,
            "jpg": bytes([i, 255]),
            "sound.wav": b"",
            "picture": bytes(3),
            "npy": np.arange(i * 6, dtype="float16").reshape(i, 1, 3, 2),
            "left.npy": np.array([i > 3]),
            "deep": np.zeros((1,) * 40, dtype="uint16"),
        }
        for i in range(8)
    ]


def test_the_package_reads_what_is_written(tmp_path):
    rows = rows_to_write()
    written = wr.write(tmp_path / "out", rows, to="webdataset", size_limit=60_000)
    shards = sorted((tmp_path / "out").glob("shard-*.tar"))
    assert len(shards) > 2 and all(path.stat().st_size <= 60_000 for path in shards) and written is not None
    named = {
        "source": "source.txt",
        "tags": "tags.json",
        "count": "count.cls",
        "share": "share.json",
        "deep": "deep.npy",
    }
    expected = [{named.get(k, k): v for k, v in row.items()} for row in rows]
    found = list(wr.open(tmp_path / "out"))
    assert same(found, expected)
    assert package(*shards) == [{k: repr(v) for k, v in row.items()} for row in found]
    for path in shards:
        with tarfile.open(path) as tar:
            assert all(member.isreg() and member.mode == 0o644 for member in tar)
    assert wr.verify(tmp_path / "out")["problems"] == []
    # Once more, with the names that it has now.
    wr.convert(wr.open(tmp_path / "out"), tmp_path / "again", to="webdataset")
    assert same(list(wr.open(tmp_path / "again")), found)


def test_numbers_are_written_and_read_as_numbers(tmp_path):
    rng = np.random.default_rng(0)
    documents = [rng.integers(0, 50_000, n).astype("uint16") for n in rng.integers(0, 60, 50)]
    wr.write(tmp_path / "a", documents, to="webdataset", size_limit=9_000)
    ds = wr.open(tmp_path / "a")
    assert all((record == want).all() for record, want in zip(ds, documents, strict=True)) and ds[0].dtype == "uint16"
    assert ds.extras(7) == {"__key__": "000000007"}
    shards = sorted((tmp_path / "a").glob("*.tar"))
    assert package(*shards)[7] == {"__key__": "'000000007'", "npy": repr(documents[7])}
    assert wr.open(shards[0])[0].tolist() == documents[0].tolist()
    assert wr.open(tmp_path / "a", columns=["__key__"])[3] == {"__key__": "000000003"}
    shards[1].unlink()
    with pytest.raises(wr.WindrowError):
        wr.open(tmp_path / "a")


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ([{"__key__": "a.b", "txt": "x"}], "key"),
        ([{"__key__": "__a__/b", "txt": "x"}], "key"),
        ([{"__key__": "", "txt": "x"}], "key"),
        ([{"__key__": "a", "txt": "x"}, {"__key__": "a", "txt": "y"}], "same|two samples"),
        ([{"__key__": 5, "txt": "x"}], "__key__"),
        ([{"a/b": "x"}], "suffix"),
        ([{"a": "x", "A": "y"}], "case"),
        ([{"a": None}], "without values"),
        ([{"a": float("nan")}], "JSON"),
        ([{"a": [b"x"]}], "JSON"),
        ([{"x" * 70_000: "x"}], "name"),
    ],
)
def test_rows_that_no_archive_holds_are_refused(rows, word, tmp_path):
    with pytest.raises(wr.ConfigError, match=word):
        wr.write(tmp_path / "out", rows, to="webdataset")
    assert not (tmp_path / "out").exists()


def test_rows_of_other_formats_and_back(tmp_path):
    rows = [{"id": i, "text": f"row {i}", "tokens": np.arange(i + 1, dtype="uint32")} for i in range(20)]
    wr.write(tmp_path / "mds", rows, to="mds")
    wr.convert(wr.open(tmp_path / "mds"), tmp_path / "tar", to="webdataset")
    found = wr.open(tmp_path / "tar")
    assert found[3]["tokens.npy"].tolist() == [0, 1, 2, 3] and found[3]["text"] == "row 3" and found[3]["id"] == 3
    wr.convert(found, tmp_path / "back", to="mds")
    assert wr.open(tmp_path / "back")[19]["tokens.npy"].dtype == "uint32"
    assert len(wr.open(tmp_path / "tar", column="tokens.npy").pack(8)) > 0
