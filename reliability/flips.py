"""Damage to files: a flipped bit, a cut, blocks swapped, zeroed or overwritten, bytes appended, a file lost or another's in its place.

The file keeps its time. Then everything is read, and `verify` asked. Of data with checksums each case is harmless (the same
comes out), refused (an error), or told (other data comes out, and `verify` says so); anything else is silent. So is a
`verify` that calls good what cannot be read. Data without checksums may be other data, but never a crash.
"""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import Any

import foreign
import sets
from tally import Part
from worker import Died, Hung, Worker, own_panic

import windrow as wr

BLOCK = 4096
LIMIT_SECS = 60
KINDS = ["flip"] * 8 + ["cut", "swap", "zero", "overwrite", "append", "lose", "replace"]


def torture(part: Part) -> None:
    here, kept = part.folder / "sets", part.folder / "kept"
    summed = sets.written(here / "written")
    everything = summed + foreign.foreign(here / "foreign")
    shutil.copytree(here, kept)
    whole = {one.name: one.content() for one in everything}
    for one in summed:
        if one.is_always and one.content(verify_checksums=True) != whole[one.name] or wr.verify(one.folder)["n_problems"]:
            part.found("sets", "wrong", f"{one.name}: undamaged data is not verified")
    worker = Worker("flips", "case", part.folder, LIMIT_SECS)
    try:
        for number in part.rounds():
            # Half of the cases are for data whose damage must be found.
            which = part.random.choice(everything if number % 2 else summed)
            one = damage(part, which)
            if one is None:
                continue
            of = part.random.choice([which.path, which.folder])
            row = name_of(which, one["kind"], False)
            try:
                answer = worker.ask(which=which.plain(), whole=whole[which.name], of=of, kept=str(kept), here=str(here), **one)
            except (Died, Hung) as error:
                part.tried(row)
                part.found(row, "hung" if isinstance(error, Hung) else "wrong", f"{which.name}: {place(which, one)}: {error}")
                restore(here, kept)
                continue
            for always, (what, said) in zip((False, True), answer, strict=False):
                row = name_of(which, one["kind"], always)
                part.tried(row)
                if what:
                    part.found(row, what, f"{which.name}: {place(which, one)}; verify of {Path(of).name}: {said}")
            if own_panic(said := worker.said()):
                part.found(row, "wrong", f"{which.name}: {place(which, one)}: {said[-500:]}")
    finally:
        worker.stop()


def name_of(which: sets.Set, kind: str, always: bool) -> str:
    if not which.is_summed:
        return "any damage, no checksums"
    return ("a flipped bit" if kind == "flip" else "cut, swapped, zeroed, lost …") + (", verify=always" if always else ", verify")


def place(which: sets.Set, one: dict[str, Any]) -> str:
    return f"{one['kind']} {Path(one['file']).relative_to(which.folder)} at {one['at']}, {one['value']}"


def damage(part: Part, which: sets.Set) -> dict[str, Any] | None:
    """A file of the set, what is done to it, and where."""
    files = which.files()
    file, kind = part.random.choice(files), part.random.choice(KINDS)
    size = file.stat().st_size
    at, value = part.random.randrange(size), part.random.randrange(8)
    if kind in ("swap", "zero", "overwrite"):
        at = part.random.randrange(-(-size // BLOCK)) * BLOCK
        value = part.random.randrange(-(-size // BLOCK)) * BLOCK
    if kind == "append":
        value = part.random.choice([1, 2, 8, 100, 512, 4096])
    if kind == "replace":
        others = [i for i, other in enumerate(files) if other != file and other.suffix == file.suffix]
        if not others:
            return None
        value = part.random.choice(others)
    return {"kind": kind, "file": str(file), "at": at, "value": value}


def restore(here: Path, kept: Path) -> None:
    shutil.rmtree(here)
    shutil.copytree(kept, here)


# What follows runs in the worker.


def case(which: dict[str, Any], whole: str, of: str, kind: str, file: str, at: int, value: int, kept: str, here: str) -> list[list[str]]:
    """Damages a file, looks, and puts it back: what is wrong, without and with `verify_checksums=True`."""
    logging.disable()
    one = sets.Set(**which)
    path = Path(file)
    data, times = path.read_bytes(), path.stat()
    other = (Path(kept) / one.files()[value].relative_to(here)).read_bytes() if kind == "replace" else b""
    damaged = damage_of(data, kind, at, value, other)
    try:
        if damaged is None:
            path.unlink()
        else:
            put(path, damaged, times)
        return looked(one, of, whole)
    finally:
        put(path, data, times)


def looked(one: sets.Set, of: str, whole: str) -> list[list[str]]:
    found, error = read(one)
    if not one.is_summed:
        if not one.is_sound:
            verified(of)
        return [crashed(error)]
    first = crashed(error)
    if first[0] == "" and found != whole and verified(of):
        first = ["silent", "verify finds nothing; reading gives " + (f"{error!r}" if error else "other data")]
    if not one.is_always:
        return [first]
    found, error = read(one, verify_checksums=True)
    second = crashed(error) if error is not None else ["silent" if found != whole else "", "other data"]
    return [first, second]


def read(one: sets.Set, **more: Any) -> tuple[str | None, BaseException | None]:
    try:
        return one.content(**more), None
    except BaseException as error:
        return None, error


def verified(of: str) -> bool:
    """Whether `verify` finds nothing; an error of it is a finding too."""
    try:
        return bool(wr.verify(of)["n_problems"] == 0)
    except (wr.WindrowError, OSError):
        return False


def crashed(error: BaseException | None) -> list[str]:
    """An error that is not one of those that say what is wrong with the data."""
    known = error is None or isinstance(error, wr.WindrowError | OSError)
    return ["" if known else "wrong", f"{type(error).__name__}: {error}"]


def damage_of(data: bytes, kind: str, at: int, value: int, other: bytes) -> bytes | None:
    """The bytes after the damage; None for a file that is gone."""
    if kind == "flip":
        return data[:at] + bytes([data[at] ^ (1 << value)]) + data[at + 1 :]
    if kind == "cut":
        return data[:at]
    if kind == "append":
        return data + (data * (value // len(data) + 1))[-value:]
    if kind == "lose":
        return None
    if kind == "replace":
        # As long as it was: what is longer is cut, what is shorter ends as before.
        return other[: len(data)] + data[len(other) :]
    block = data[at : at + BLOCK]
    if kind == "zero":
        return data[:at] + bytes(len(block)) + data[at + len(block) :]
    there = data[value : value + BLOCK][: len(block)]
    if kind == "overwrite":
        return data[:at] + there + data[at + len(there) :]
    changed = bytearray(data)
    changed[at : at + len(there)], changed[value : value + len(there)] = there, block[: len(there)]
    return bytes(changed)


def put(path: Path, data: bytes, times: os.stat_result) -> None:
    with open(path, "r+b" if path.exists() else "wb") as file:
        file.write(data)
        file.truncate()
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
