"""Files that are small and ask for much: sizes without end, nesting without end, names that lead elsewhere, headers that are code."""

from __future__ import annotations

import functools
import gzip
import io
import json
import random
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from pickles import npy, plain

HUGE = [0, -1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**48, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30]
DEPTHS = [100, 127, 128, 129, 1000, 20_000, 200_000]


@functools.cache
def zeros(compress: Callable[[bytes], bytes]) -> bytes:
    return compress(bytes(1 << 27))


def zstd(data: bytes) -> bytes:
    from numcodecs import Zstd

    return bytes(Zstd(level=3).encode(data))


def deep(draws: random.Random) -> tuple[str, bytes]:
    n, (opens, closes) = draws.choice(DEPTHS), draws.choice([("[", "]"), ('{"a":', "}"), ('[{"sequence":', "}]")])
    inner = draws.choice(["1", "", "[1, 2]"])
    text = opens * n + inner + (closes * n if draws.random() < 0.8 else "")
    lead = draws.choice(["", '{"text": "x", "a": ', "[[1, 2], "])
    return draws.choice(["a.json", "a.jsonl", "a.yaml", "a.yml", "meta.json", "index.json", "a.jsonl.gz"]), (
        lead + text + "\n"
    ).encode() * draws.choice([1, 2])


def numbers(draws: random.Random) -> tuple[str, bytes]:
    number = draws.choice(
        ["1e999999999", "-1e400", "9" * 300_000, "0." + "1" * 300_000, "NaN", "1e-999999", "0x" + "f" * 99, "1" + "_0" * 9999, "." * 99]
    )
    text = draws.choice(
        [
            "[[1, N]]",
            '[{"sequence": [1, 2], "x": N}]',
            '{"sequence": [N]}\n' * 3,
            '{"start": "2020-01-01", "target": [N]}\n',
            "a,b\n1,N\n",
            "- [1, N]\n",
        ]
    )
    return draws.choice(["a.json", "a.jsonl", "a.yaml", "a.csv", "data.json"]), text.replace("N", number).encode()


def laughs(draws: random.Random) -> tuple[str, bytes]:
    width, depth = draws.choice([2, 9, 50]), draws.choice([5, 30, 200])
    lines = ["a0: &a0 [1, 2]"] + [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * width) + "]" for n in range(1, depth)]
    tags = [
        "- !!python/object/apply:os.system ['touch M']\n",
        "&a [*a]\n",
        "- &a {<<: *a, sequence: [1]}\n",
        "- !!binary " + "A" * 100_000,
        "%TAG ! tag:x:\n---\n- [1]\n",
    ]
    return "a.yaml", draws.choice(["\n".join(lines).encode(), *[tag.encode() for tag in tags]])


def expands(draws: random.Random) -> tuple[str, bytes]:
    """128 MiB or more from a few kilobytes."""
    name = draws.choice(["a.jsonl", "a.json", "a.npy", "a.bin", "a.csv", "a.yaml", "a.pkl", "a.tar", "a.tfrecord", "a.tsf"])
    ending, compress = draws.choice([(".gz", gzip.compress), (".zst", zstd)])
    body = zeros(compress) * draws.choice([1, 3])
    head = compress(draws.choice([b"", b"[[1, 2], ", b'{"text": "', npy("'<f4'", f"({1 << 25},)", b""), b"a,b\n1,2\n"]))
    return name + ending, head + body


def npz(draws: random.Random) -> tuple[str, bytes]:
    kind = draws.choice(["big", "big, true", "big, huge", "many", "nested", "names", "twice", "lies"])
    data = bytearray(archive(kind))
    if kind == "lies":
        for _ in range(3):
            at = draws.choice([place for place in range(len(data) - 4) if data[place : place + 2] == b"PK"])
            struct.pack_into("<I", data, min(at + draws.randrange(4, 46), len(data) - 4), draws.choice(HUGE) & 0xFFFFFFFF)
    return "a.npz", bytes(data)


@functools.cache
def archive(kind: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as members:
        if kind.startswith("big"):
            # 128 MiB of zeros behind a header of 8 values, of as many as there are, or of more than there can be.
            n = {"big": 8, "big, true": 1 << 25}.get(kind, 1 << 60)
            members.writestr("a.npy", npy("'<f4'", f"({n},)", bytes(1 << 27)))
        elif kind == "many":
            for n in range(70_000):
                members.writestr(f"{n}.npy", b"")
        elif kind == "nested":
            members.writestr("a.npz", zlib.compress(bytes(1 << 20)))
        else:
            names = {
                "names": ["../a.npy", "/tmp/a.npy", "a\0b.npy", "a.npy", "." * 3000 + ".npy", "..\\a.npy"],
                "twice": ["a.npy", "a.npy"],
            }
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for name in names.get(kind, ["a.npy", "b.npy"]):
                    members.writestr(name, npy("'<f4'", "(2,)", bytes(8)))
    return out.getvalue()


def headers(draws: random.Random) -> tuple[str, bytes]:
    """numpy's headers: shapes, types and lengths that cannot be, and code."""
    n = draws.choice(HUGE)
    shape = draws.choice(
        [
            f"({n},)",
            f"({n}, {n})",
            f"({n}, 0)",
            "(" + "1, " * 5000 + ")",
            "(" * 5000,
            "(1e9,)",
            "(True,)",
            "()",
            f"(2, {n}, 2)",
            "__import__('os').system('touch M')",
        ]
    )
    descr = draws.choice(
        [
            "'<f4'",
            "'<f4'",
            "'<u2'",
            f"'<U{abs(n)}'",
            f"'V{abs(n)}'",
            "[('a', '<f4')] * 9",
            "'>f8'",
            "'<f16'",
            "'|b1'",
            "'" + "x" * 9999 + "'",
            "[" * 9999,
        ]
    )
    data = npy(descr, shape, bytes(draws.choice([0, 8, 4096])), draws.choice([1, 2, 3]))
    if draws.random() < 0.3:
        data = data[:8] + struct.pack("<I", draws.choice(HUGE) & 0xFFFFFFFF) + data[12:]
    return "a.npy", data


def opcodes(draws: random.Random) -> tuple[str, bytes]:
    """Pickles of plain data that grow, nest, or claim."""
    n = draws.choice(HUGE) & (2**64 - 1)
    small = n & 0xFFFFFFFF
    shapes = [
        # A list of itself, twice the one before, again and again.
        b"](K\x01K\x02e"
        + b"".join(b"q" + bytes([k]) + b"0](h" + bytes([k]) + b"h" + bytes([k]) + b"e" for k in range(draws.choice([5, 60, 250]))),
        b"]" * draws.choice(DEPTHS) + b"a",
        b"(" * draws.choice(DEPTHS) + b"t",
        b"]" + b"]a" * draws.choice(DEPTHS),
        b"K\x01\x85" * draws.choice(DEPTHS),
        b"\x8e" + struct.pack("<Q", n) + b"xx",
        b"\x8d" + struct.pack("<Q", n) + b"xx",
        b"\x96" + struct.pack("<Q", n) + b"xx",
        b"\x8b" + struct.pack("<I", small) + b"\x01",
        b"B" + struct.pack("<I", small) + b"x",
        b"]r" + struct.pack("<I", small) + b"j" + struct.pack("<I", small),
        b"](" + plain("x" * 100_000) + b"2" * 1000 + b"e",
        b"]q\x00h\x00a",
        b"L" + b"9" * 300_000 + b"L\n",
    ]
    head = draws.choice([b"\x80\x04", b"\x80\x04\x95" + struct.pack("<Q", n), b"\x80\xff", b""])
    return "a.pkl", head + draws.choice(shapes) + b"."


def tar(draws: random.Random) -> tuple[str, bytes]:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=draws.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])) as archive:
        for name in ("a.txt", "../b.txt", "/etc/c.txt", "d/" * 60 + "x.txt", "e." + "s" * draws.choice([3, 70_000])):
            member = tarfile.TarInfo(name)
            member.size = 4
            if draws.random() < 0.3:
                member.type, member.linkname = draws.choice([tarfile.SYMTYPE, tarfile.LNKTYPE]), "/etc/passwd"
            archive.addfile(member, io.BytesIO(b"text"))
    data = bytearray(out.getvalue())
    if draws.random() < 0.6:
        # A wrong size, with a checksum that holds.
        size = draws.choice(
            [
                b"77777777777\0",
                b"\x80" + bytes(3) + struct.pack(">Q", draws.choice(HUGE) & (2**64 - 1)),
                b"\xff" * 12,
                b"-0000000001\0",
                b" " * 12,
            ]
        )
        data[124:136], data[148:156] = size, b" " * 8
        data[148:156] = f"{sum(data[:512]):06o}\0 ".encode()
    return "a.tar", bytes(data)


def sound(draws: random.Random) -> tuple[str, bytes]:
    n, m = draws.choice(HUGE) & 0xFFFFFFFF, draws.choice([0, 1, 2, 255, 65535])
    wav = (
        b"RIFF"
        + struct.pack("<I", n)
        + b"WAVEfmt "
        + struct.pack("<IHHIIHH", draws.choice([16, n]), draws.choice([1, 3, 65534, 85]), m, n, n, m, draws.choice([0, 1, 16, 64, 65535]))
        + b"data"
        + struct.pack("<I", n)
    )
    return "a.wav", wav + bytes(draws.choice([0, 10, 4000]))


def shards(draws: random.Random) -> tuple[str, bytes]:
    n = draws.choice(HUGE)
    meta = {
        "dtype": draws.choice(["float32", "uint8", "bfloat16", "x" * 999]),
        "num_sequences": draws.choice([1, n]),
        "files": {draws.choice(["data-1-of-1.bin", "../data-1-of-1.bin", f"data-1-of-{n}.bin", "/dev/zero"]): draws.choice([4, n])},
        "scales": [{"offset": draws.choice([0, n]), "length": draws.choice([4, n]), "mean": draws.choice([0, 1e308, None]), "std": 1}],
        "channels": draws.choice([1, n]),
    }
    return "meta.json", json.dumps(meta).encode()


# What expands takes a second each.
KINDS = [deep, numbers, laughs, npz, headers, opcodes, tar, sound, shards] * 3 + [expands]


def put(draws: random.Random, folder: Path, marker: str) -> tuple[Path, str]:
    """A file of some kind; what is opened, and its kind."""
    make = draws.choice(KINDS)
    name, data = make(draws)
    if len(data) < 1 << 16:
        data = data.replace(b"touch M", f"touch {marker}".encode())
    path = folder / name
    path.write_bytes(data)
    if make is shards:
        (folder / "data-1-of-1.bin").write_bytes(bytes(16))
        return folder, "shards"
    return draws.choice([path, folder]) if make is not sound else path, make.__name__
