"""Hostile files: pickles that run something, bombs, lying headers and indexes, names and links that lead elsewhere, pipes and devices.

Each is opened, read and verified by a process with little memory. An error is what is expected; a crash, a panic, much
memory, an error of another kind, a file that is read from outside of the folder, and above all anything that is run, is not.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import bombs
import foreign
import pickles
import sets
from tally import Part
from worker import Died, Hung, Worker, own_panic

KEPT = Path(__file__).resolve().parents[1] / "target" / "torture"
LIMIT_SECS = 30
MOST_GROWTH = 512 << 20
# What is kept of a case.
MOST_KEPT = 8 << 20
ROWS = {
    "pickles": "pickles",
    "bombs": "bombs and lying headers",
    "fields": "a field of a header or index changed",
    "links": "links, pipes and devices",
    "names": "names that lead outside",
}


def torture(part: Part) -> None:
    everything = sets.written(part.folder / "written") + foreign.foreign(part.folder / "foreign")
    marker, place = part.folder / "executed", part.folder / "case" / "data"
    worker = Worker("hostile_reader", "attempt", part.folder, LIMIT_SECS)
    try:
        for _ in part.rounds():
            kind = part.random.choice(["pickles", "pickles", "bombs", "bombs", "fields", "fields", "fields", "links", "names"])
            shutil.rmtree(place.parent, ignore_errors=True)
            place.mkdir(parents=True)
            case = build(part, kind, everything, place, marker)
            if case is None:
                continue
            part.tried(ROWS[kind])
            look(part, worker, kind, case, marker)
    finally:
        worker.stop()


def look(part: Part, worker: Worker, kind: str, case: dict[str, Any], marker: Path) -> None:
    """Has the worker try the case, and says what is wrong."""
    said = case.pop("said")

    def wrong(what: str, why: str) -> None:
        part.found(ROWS[kind], what, f"{said}: {why}; kept in {keep(part, case)}")

    asked = {name: case[name] for name in ("path", "options", "opener")}
    worker.ask(path="", options={}, opener="none")
    worker.forget_peak()
    _, before = worker.memory()
    try:
        answer = worker.ask(**asked)
    except Hung as error:
        wrong("hung", str(error))
        return
    except Died as error:
        wrong("wrong", f"the process died: {error}")
        return
    if marker.exists():
        shutil.rmtree(marker) if marker.is_dir() else marker.unlink()
        wrong("executed", "the file that only the pickle writes is there")
    if answer["ran"]:
        wrong("executed", f"{answer['ran']}")
    peak, _ = worker.memory()
    # Pages of what was expanded into the cache are the system's, which takes them back.
    expanded = sum(path.stat().st_size for path in Path(os.environ["WINDROW_CACHE"]).rglob("*") if path.is_file())
    if peak - before - expanded > MOST_GROWTH:
        wrong("wrong", f"took {(peak - before) >> 20} MiB")
    if answer["odd"]:
        wrong("wrong", f"{answer['odd']}")
    if kind == "names" and answer["content"] == case["whole"]:
        # Not every file that has a name is needed.
        Path(case["root"], "outside").rename(Path(case["root"], "gone"))
        if worker.ask(**asked)["content"] != case["whole"]:
            wrong("wrong", "a file outside of the folder was read")
    if own_panic(text := worker.said()):
        wrong("wrong", text[-600:])


def keep(part: Part, case: dict[str, Any]) -> str:
    """A copy of the case that outlives the run, if it is small; pipes and devices are left out."""
    root = Path(case["root"])
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    if sum(path.stat().st_size for path in files) > MOST_KEPT:
        return "no place: too large"
    kept = KEPT / f"hostile-{part.seed}-{part.random.randrange(1 << 32):08x}"
    for path in files:
        (kept / path.relative_to(root)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, kept / path.relative_to(root))
    return str(kept)


def build(part: Part, kind: str, everything: list[sets.Set], place: Path, marker: Path) -> dict[str, Any] | None:
    draws, root = part.random, str(place.parent)
    if kind == "pickles":
        path, options, what = pickles.put(draws, place, str(marker))
        opener = "codec" if what == "weights" else "open"
        return {"path": str(path), "options": options, "opener": opener, "said": f"pickle in {what}", "root": root}
    if kind == "bombs":
        path, what = bombs.put(draws, place, str(marker))
        return {"path": str(path), "options": {}, "opener": "sound" if what == "sound" else "open", "said": f"bomb: {what}", "root": root}
    one = draws.choice(everything)
    shutil.copytree(one.folder, place, dirs_exist_ok=True)
    if draws.random() < 0.6:
        pickles.bare(place)
    path = place / Path(one.path).relative_to(one.folder)
    files = sorted(file for file in place.rglob("*") if file.is_file() and file.stat().st_size)
    case = {"path": str(path), "options": one.options, "opener": "sound" if one.is_sound else "open", "root": root}
    if kind == "fields":
        return {**case, "said": f"{one.name}: {change(draws, draws.choice(files))}"}
    if kind == "links":
        return {**case, "said": f"{one.name}: {link(draws, draws.choice(files))}"}
    named = lead_outside(draws, files, place)
    if named is None:
        return None
    return {**case, "said": f"{one.name}: {named}", "whole": one.content()}


NUMBER = re.compile(rb"-?\d+(\.\d+)?")


def change(draws: Any, file: Path) -> str:
    """Fields of a file get values that cannot be: numbers of text, words of 1 to 8 bytes elsewhere."""
    data = bytearray(file.read_bytes())
    said = []
    for _ in range(draws.choice([1, 1, 2, 4])):
        places = [found.span() for found in NUMBER.finditer(data[:20_000])] if is_text(bytes(data)) else []
        value = draws.choice([*bombs.HUGE, len(data), len(data) + 1, 1, 2])
        if places and draws.random() < 0.8:
            start, end = draws.choice(places)
            new = draws.choice(
                [str(value), str(value), "1e999", "NaN", "null", '"x"', "[]", "-1", "0.5", "{}", "[" * 200_000, '"../../x"']
            ).encode()
        else:
            width = draws.choice([1, 2, 4, 8])
            # Headers are at the beginning, footers at the end.
            near = draws.choice([min(len(data), 600), len(data)])
            start = draws.choice([draws.randrange(near), len(data) - 1 - draws.randrange(near)]) // width * width
            end, new = start + width, (value & (2 ** (8 * width) - 1)).to_bytes(width, draws.choice(["little", "little", "big"]))
        data[start:end] = new
        said.append(f"{start}..{end} = {new[:24]!r}")
    if file.suffix == ".tfrecord":
        mend(data)
    file.write_bytes(data)
    return f"{file.name} {', '.join(said)}"


def is_text(data: bytes) -> bool:
    return b"\x00" not in data[:2000] and data[:1] not in (b"\x1f", b"\x28", b"\x80")


def mend(data: bytearray) -> None:
    """Checksums of the lengths of a TFRecord file that hold again, so that lengths are believed."""
    try:
        from google_crc32c import value as crc
    except ImportError:
        return
    at = 0
    while at + 12 <= len(data):
        found = crc(bytes(data[at : at + 8]))
        masked = (((found >> 15) | (found << 17)) + 0xA282EAD8) & 0xFFFFFFFF
        data[at + 8 : at + 12] = masked.to_bytes(4, "little")
        at += 16 + int.from_bytes(data[at : at + 8], "little")


def link(draws: Any, file: Path) -> str:
    """Something else in the place of a file."""
    size = file.stat().st_size
    file.unlink()
    what = draws.choice(
        ["fifo", "/dev/zero", "/dev/full", "/dev/stdin", "/proc/self/mem", "/proc/kmsg", "itself", "folder", "nowhere", "socket", "sparse"]
    )
    if what == "fifo":
        os.mkfifo(file)
    elif what == "folder":
        file.mkdir()
    elif what == "socket":
        os.mknod(file, 0o140644)
    elif what == "sparse":
        # Nothing but zeros, and more of them.
        with open(file, "wb") as out:
            out.truncate(size + draws.choice([0, 1 << 24]))
    else:
        file.symlink_to({"itself": file.name, "nowhere": "not/there"}.get(what, what))
    return f"{what} in the place of {file.name}"


def lead_outside(draws: Any, files: list[Path], place: Path) -> str | None:
    """Moves a file out of the folder, where what names it then leads."""
    pairs = [
        (index, data)
        for index in files
        for data in files
        if index != data and index.stat().st_size < 1 << 16 and data.name.encode() in index.read_bytes()
    ]
    if not pairs:
        return None
    index, data = draws.choice(pairs)
    out = place.parent / "outside"
    out.mkdir()
    shutil.move(data, out / data.name)
    below = "../" * (len(data.relative_to(place).parts))
    path = draws.choice(
        [
            f"{below}outside/{data.name}",
            str(out / data.name),
            f"x/{below}../outside/{data.name}",
            f"./{below}outside/{data.name}",
            f"file://{out / data.name}",
        ]
    )
    old = str(data.relative_to(place)).encode()
    text = index.read_bytes()
    index.write_bytes(text.replace(old if old in text else data.name.encode(), path.encode()))
    return f"{index.name} names {path}"
