"""What reads a hostile file: with little memory, and with an eye on everything that Python starts."""

from __future__ import annotations

import logging
import os
import resource
import sys
from pathlib import Path
from typing import Any

import sets

import windrow as wr

ADDRESSES = 6 << 30
# What may be written into one file, and what the cache may hold.
MOST_WRITTEN = 1 << 30

RAN: list[str] = []
WATCHED = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "os.spawn",
    "subprocess.Popen",
    "pickle.find_class",
    "pty.spawn",
    "socket.connect",
    "ctypes.dlopen",
)


def attempt(path: str, options: dict[str, Any], opener: str) -> dict[str, Any]:
    """Opens, reads and verifies: what was run, errors of kinds that are not windrow's, and what came out."""
    if not RAN and resource.getrlimit(resource.RLIMIT_AS)[0] != ADDRESSES:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_WRITTEN, MOST_WRITTEN))
        os.environ["WINDROW_CACHE_LIMIT"] = str(MOST_WRITTEN)
        sys.addaudithook(lambda event, _: RAN.append(event) if event in WATCHED else None)
        logging.disable()
    RAN.clear()
    odd: list[str] = []
    content: Any = None
    for what in (lambda: read(path, options, opener), lambda: wr.verify(path), lambda: wr.verify(str(Path(path).parent))):
        if opener == "none":
            break
        try:
            content = what() if content is None else what() and content
        except (wr.WindrowError, OSError, ValueError, MemoryError):
            pass
        except BaseException as error:
            odd.append(f"{type(error).__name__}: {error}"[:500])
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    ran = RAN + (children.read_text().split() if children.exists() else [])
    return {"ran": ran, "odd": odd, "content": content if isinstance(content, str) else None}


def read(path: str, options: dict[str, Any], opener: str) -> str | None:
    if opener == "sound":
        samples, _ = wr.read_audio(path, sample_rate=None)
        return sets.digest(sets.feed(samples))
    if opener == "codec":
        wr.Codec(path)
        return None
    ds = wr.open(path, **options)
    for i in range(min(len(ds), 2000)):
        ds[i]
    return sets.content(ds) if len(ds) < 2000 else None
