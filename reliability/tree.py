"""All files of a folder, kept in memory: taken, put back, compared."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

# What a killed run leaves, and readers do not look at. Groups of zarr have hidden files of their own.
LEFT = re.compile(r"(^|/)\.(?!zattrs$|zgroup$|zarray$|zmetadata$)|\.tmp-[0-9a-f-]+$|\.tmp$")

# Bytes and time of each file; None for a folder.
Tree = dict[str, tuple[bytes, int] | None]


def take(folder: Path) -> Tree:
    found: Tree = {}
    for at, folders, files in os.walk(folder):
        below = Path(at).relative_to(folder)
        found.update({str(below / name): None for name in folders})
        for name in files:
            path = Path(at, name)
            found[str(below / name)] = path.read_bytes(), path.stat().st_mtime_ns
    return found


def put(tree: Tree, folder: Path) -> None:
    """Makes the folder hold this and nothing else; times are kept, since an index knows its inputs by them.

    What is there already stays: making and removing folders takes most of the time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    now = take(folder)
    for name in sorted(now.keys() - tree.keys(), reverse=True):
        (folder / name).rmdir() if now[name] is None else (folder / name).unlink()
    for name in sorted(tree):
        item, found = tree[name], now.get(name, ())
        if item == found:
            continue
        path = folder / name
        if item is None or found is None:
            # A file in the place of a folder or the other way round.
            if found:
                path.unlink()
            if found is None:
                shutil.rmtree(path)
        if item is None:
            path.mkdir()
            continue
        # A new file: the one that is there may have a second name.
        path.unlink(missing_ok=True)
        path.write_bytes(item[0])
        os.utime(path, ns=(item[1], item[1]))


def visible(tree: Tree) -> dict[str, bytes]:
    """The files that readers look at; manifests without the times of files, which no two runs share."""
    files = {name: item[0] for name, item in tree.items() if item is not None and not LEFT.search(name)}
    return {name: timeless(data) if name.endswith("index/windrow.json") else data for name, data in files.items()}


def timeless(manifest: bytes) -> bytes:
    """What an index of expanded files says, without when these were written; its hash goes with the times."""
    try:
        said = json.loads(manifest)
    except ValueError:
        return manifest
    if any(row["name"].startswith("index/expanded/") for row in said["files"]):
        said.pop("xxh3", None)
        for row in said["files"]:
            row.pop("modified_ns", None)
    return json.dumps(said, sort_keys=True).encode() if "xxh3" not in said else manifest


def left(tree: Tree) -> list[str]:
    """What a killed run left behind; a lock that no process holds is harmless."""
    return sorted(name for name in tree if LEFT.search(name) and not name.endswith(".lock"))


def difference(one: dict[str, bytes], other: dict[str, bytes]) -> str:
    """Which names have other bytes, in a few words."""
    names = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    how = {name: "missing" if name not in one else "added" if name not in other else "other bytes" for name in names}
    return ", ".join(f"{name} {how[name]}" for name in names[:6]) + (f" and {len(names) - 6} more" if names[6:] else "")
