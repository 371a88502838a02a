"""Pickles that would run something where Python loaded them, in every kind of file that may hold one.

What they would run writes the file `marker`. None of them is ever loaded by this program.
"""

from __future__ import annotations

import io
import json
import pickle
import random
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

import windrow as wr

# Functions that run what they are given, and what they are given: M is the marker's path.
GADGETS: list[tuple[str, str, tuple[Any, ...]]] = [
    ("os", "system", ("touch M",)),
    ("posix", "system", ("touch M",)),
    ("subprocess", "Popen", (["touch", "M"],)),
    ("subprocess", "check_output", (["touch", "M"],)),
    ("builtins", "eval", ("open('M', 'w')",)),
    ("builtins", "exec", ("open('M', 'w')",)),
    ("__builtin__", "eval", ("open('M', 'w')",)),
    ("builtins", "open", ("M", "w")),
    ("io", "open", ("M", "w")),
    ("pty", "spawn", (["touch", "M"],)),
    ("runpy", "_run_code", ("open('M', 'w')", {})),
    ("timeit", "timeit", ("open('M', 'w')",)),
    ("cProfile", "run", ("open('M', 'w')",)),
    ("numpy.testing._private.utils", "runstring", ("open('M', 'w')", {})),
    ("importlib", "import_module", ("antigravity",)),
    ("pathlib.Path", "touch", ("M",)),
    ("shutil", "copyfile", ("/etc/hostname", "M")),
    ("os", "mkdir", ("M",)),
]
CONTAINERS = ["pkl", "pkl.gz", "several", "npy", "npz", "pt", "old pt", "weights", "mds", "litdata", "tar"]


def call(draws: random.Random, marker: str) -> bytes:
    """The opcodes that call a function, without a frame around them, so that they fit into any pickle."""
    module, name, arguments = draws.choice(GADGETS)
    given = json.loads(json.dumps(list(arguments)).replace("M", marker) if "M" in str(arguments) else json.dumps(list(arguments)))
    values = [plain(value) for value in given]
    ways = {
        "reduce": lambda: glob(draws, module, name) + b"(" + b"".join(values) + b"tR",
        "inst": lambda: b"(" + b"".join(values) + f"i{module}\n{name}\n".encode(),
        "obj": lambda: b"(" + glob(draws, module, name) + b"".join(values) + b"o",
        "newobj": lambda: glob(draws, module, name) + b"(" + b"".join(values) + b"t\x81",
        "newobj_ex": lambda: glob(draws, module, name) + b"(" + b"".join(values) + b"t}\x92",
        # The function as the state of an object, and got by name from a module.
        "build": lambda: b"ccollections\nOrderedDict\n)R" + glob(draws, module, name) + b"(" + b"".join(values) + b"tR" + b"b",
        "getattr": lambda: (
            b"cbuiltins\ngetattr\n(" + b"cbuiltins\n__import__\n(" + plain(module) + b"tR" + plain(name) + b"tR(" + b"".join(values) + b"tR"
        ),
    }
    return draws.choice(list(ways.values()))()


def glob(draws: random.Random, module: str, name: str) -> bytes:
    if draws.random() < 0.5:
        return f"c{module}\n{name}\n".encode()
    return plain(module) + plain(name) + b"\x93"


def plain(value: Any) -> bytes:
    """Opcodes of a plain value."""
    if isinstance(value, str):
        return b"X" + struct.pack("<I", len(value.encode())) + value.encode()
    if isinstance(value, list):
        return b"]" + b"".join(plain(one) + b"a" for one in value)
    return b"}"


def gadget(draws: random.Random, marker: str) -> bytes:
    """A whole pickle with a call in it, alone or inside of series."""
    inner = call(draws, marker)
    series = b"](K\x01K\x02K\x03e"
    shapes = [
        inner,
        b"]" + series + b"a" + inner + b"a",
        b"]}(" + plain("sequence") + series + plain("x") + inner + b"ua",
        b"]}(" + plain("sequence") + inner + b"ua",
        b"](" + series + b"(" + inner + b"t" + b"e",
        b"](" + series + inner + b"0" + series + b"e",
        b"](" + series + inner + b"q\x05h\x05e",
    ]
    head = draws.choice([b"\x80\x02", b"\x80\x04", b"\x80\x05", b""])
    return head + draws.choice(shapes) + b"."


def put(draws: random.Random, folder: Path, marker: str) -> tuple[Path, dict[str, Any], str]:
    """A file or folder with such a pickle: what is opened, with which options, and what kind it is."""
    kind, bad = draws.choice(CONTAINERS), gadget(draws, marker)
    options: dict[str, Any] = {}
    if kind in ("pkl", "pkl.gz", "several"):
        path = folder / f"a.{draws.choice(['pkl', 'pickle'])}"
        data = pickle.dumps([[1, 2], [3, 4]]) + bad if kind == "several" else bad
        if kind == "pkl.gz":
            import gzip

            path, data = path.with_name(path.name + ".gz"), gzip.compress(data)
        path.write_bytes(data)
    elif kind == "npy":
        path = folder / "a.npy"
        path.write_bytes(npy(draws.choice(["'|O'", "[('x', '|O')]"]), "(2,)", bad))
    elif kind == "npz":
        path = folder / "a.npz"
        with zipfile.ZipFile(path, "w") as archive:
            good = io.BytesIO()
            np.save(good, np.arange(6).reshape(2, 3))
            archive.writestr("good.npy", good.getvalue())
            archive.writestr("bad.npy", npy("'|O'", "(2,)", bad))
            archive.writestr("bad.pkl", bad)
    elif kind in ("pt", "weights"):
        path = folder / ("a.pt" if kind == "pt" else "w.pth")
        torch_archive(path, draws, bad)
    elif kind == "old pt":
        path = folder / "a.pt"
        path.write_bytes(pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2) + pickle.dumps({}, 2) + bad)
    elif kind in ("mds", "litdata"):
        path = folder / kind
        wr.write(path, [{"n": n, "bad": bad} for n in range(3)], to=kind, fsync=False)  # type: ignore[arg-type]
        bare(path)
        index = path / "index.json"
        index.write_text(index.read_text().replace('"bytes"', '"pkl"' if kind == "mds" else '"pickle"'))
    else:
        path = folder / "a.tar"
        with tarfile.open(path, "w") as archive:
            for suffix in ("pkl", "pyd", "pickle", "pth", "npy", "pt", "json"):
                member = tarfile.TarInfo(f"000.{suffix}")
                data = npy("'|O'", "(2,)", bad) if suffix == "npy" else bad
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return path, options, kind


def bare(folder: Path) -> None:
    """Without what windrow says of it, as other programs leave it."""
    for path in [*folder.rglob("*windrow.json"), *folder.rglob("*windrow.sums")]:
        path.unlink()


def npy(descr: str, shape: str, data: bytes, version: int = 1) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


def torch_archive(path: Path, draws: random.Random, bad: bytes) -> None:
    """As torch.save writes it, with the pickle at its place, at another, or both."""
    tensor = (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((" + plain("storage") + b"ctorch\nShortStorage\n" + plain("0") + plain("cpu")
        + b"K\x06tQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89ccollections\nOrderedDict\n)RtR."
    )  # fmt: skip
    inside = tensor[:-2] + b"0" + bad.removeprefix(b"\x80\x02").removeprefix(b"\x80\x04").removeprefix(b"\x80\x05")[:-1] + b"."
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", draws.choice([bad, inside, tensor + bad]))
        archive.writestr("a/byteorder", "little")
        archive.writestr("a/data/0", bytes(12))
        archive.writestr("a/version", "3\n")
        if draws.random() < 0.5:
            archive.writestr("a/constants.pkl", bad)
            archive.writestr("a/code/__torch__.py", "import os\n")
