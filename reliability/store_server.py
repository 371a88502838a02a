"""A store on loopback that fails as it is told: files of a folder over HTTP, and listings as S3 gives them.

The first folder of a path is a bucket. A script says what becomes of each request, by its number among those for objects.
"""

from __future__ import annotations

import base64
import os
import random
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path

from loopback import Connection, Request, Server, head, listing

# What may become of a request, and goes away when it is asked again.
PASSING = (
    "503; 429; 500; 408; closed; reset; stall; stall in body; drip; cut; longer; shorter; other range; no range; whole"
).split("; ")
# What stays once it has begun.
LASTING = (
    "503; closed; reset; stall; drip; cut; 404; 403; replaced; truncated; other range; no range; whole; redirects; garbage"
).split("; ")
STALL_SECS = 30.0
# Between two bytes of a body that drips.
DRIP_SECS = 1.0

Answer = tuple[int, bytes, dict[str, str]]
"""Status, body and headers instead of the object."""


@dataclass
class Script:
    """Faults by chance, faults from a request on, and flipped bytes."""

    seed: int = 0
    share: float = 0.0
    """Of requests that fail and would not if they were sent again."""
    kinds: list[str] = field(default_factory=lambda: list(PASSING))
    lasting: str | None = None
    since: int = 0
    """The number of the first request that fails for good."""
    flips: float = 0.0
    """Of bodies in which a byte is another."""
    checksums: bool = False
    """As S3: of all bytes of an object, to whoever asks for it and for no range. Only what has one is flipped then."""
    versions: bool = True
    """Says by tag and time which version of an object it is."""
    lists: bool = True
    """To whoever may not list, what is not there is forbidden, too."""
    told: Callable[[Request, int], str | Answer | None] | None = None
    """What becomes of a request, whatever else is said here."""

    def fault(self, request: Request, number: int) -> tuple[str | Answer | None, random.Random]:
        draws = random.Random(self.seed * 1_000_003 + number)
        if self.told:
            return self.told(request, number), draws
        if self.lasting and number >= self.since:
            return self.lasting, draws
        return (draws.choice(self.kinds) if draws.random() < self.share else None), draws


class Store(Server):
    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder, self.script = folder.resolve(), Script()
        self.lock, self.number, self.met = threading.Lock(), 0, set[str]()
        self.asked: list[Request] = []
        """Since the script began."""
        super().__init__(Failing, port)

    def begin(self, script: Script) -> None:
        with self.lock:
            self.script, self.number, self.met, self.asked = script, 0, set(), []

    def next(self, request: Request) -> tuple[str | Answer | None, random.Random]:
        with self.lock:
            fault, draws = self.script.fault(request, self.number)
            self.number += 1
            if fault:
                self.met.add(str(fault))
        return fault, draws

    def handle_error(self, *_: object) -> None:
        """A client that goes away is not worth a word."""


class Failing(Connection):
    server: Store

    def answer(self, request: Request) -> bool:
        folder, path, method = self.server.folder, request.path, request.method
        lists = self.server.script.lists
        with self.server.lock:
            self.server.asked.append(request)
        if "list-type" in request.query and lists and (folder / path).is_dir():
            return self.send(200, listing(folder, path, request.query, about), {}, method)
        file = (folder / path).resolve()
        if "list-type" in request.query or not file.is_file() or folder not in file.parents:
            code = "NoSuchKey" if (folder / path.partition("/")[0]).is_dir() else "NoSuchBucket"
            status, code = (404, code) if lists else (403, "AccessDenied")
            return self.send(status, f"<Error><Code>{code}</Code></Error>".encode(), {}, method)
        return self.give(file, request)

    def give(self, file: Path, request: Request) -> bool:
        fault, draws = self.server.next(request)
        script, whole, (_, tag), method = self.server.script, file.read_bytes(), about(file), request.method
        if isinstance(fault, tuple):
            status, body, more = fault
            return self.send(status, body, more, method)
        if fault == "replaced":
            whole, tag = bytes(255 - byte for byte in whole), '"another"'
        elif fault == "truncated":
            whole = whole[: len(whole) // 2]
        elif fault in ("stall", "closed"):
            time.sleep(draws.uniform(0, STALL_SECS) if fault == "stall" else 0)
            return False
        elif fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            # Without the farewell that Python's server says.
            os.close(self.connection.detach())
            return False
        elif fault in ("503", "429", "500", "408", "404", "403"):
            more = {"Retry-After": str(draws.choice([0, 0, 1]))} if fault in ("429", "503") else {}
            return self.send(int(fault), b"<Error><Code>SlowDown</Code></Error>", more, method)
        elif fault == "redirects":
            return self.send(307, b"", {"Location": f"/{file.relative_to(self.server.folder)}"}, method)
        elif fault == "garbage":
            self.wfile.write(draws.randbytes(200))
            return False
        if script.versions and request.headers.get("if-match", tag) != tag:
            return self.send(412, b"", {}, method)
        status, more = 200, {"Accept-Ranges": "bytes"}
        if script.versions:
            more |= {"ETag": tag, "Last-Modified": formatdate(file.stat().st_mtime, usegmt=True)}
        start, end = 0, len(whole)
        if fault != "whole" and (span := request.span(len(whole))):
            start, end = span
            if start >= len(whole):
                return self.send(416, b"", {}, method)
            if fault == "other range":
                start = max(0, start - draws.randrange(1, 5000))
            status = 206
            if fault != "no range":
                more["Content-Range"] = f"bytes {start}-{end - 1}/{len(whole)}"
        elif script.checksums and request.headers.get("x-amz-checksum-mode") == "ENABLED":
            more["x-amz-checksum-crc32"] = base64.b64encode(zlib.crc32(whole).to_bytes(4, "big")).decode()
        return self.send(status, whole[start:end], more, method, fault, draws)

    def send(
        self, status: int, body: bytes, more: dict[str, str], method: str, fault: str | None = None, draws: random.Random | None = None
    ) -> bool:
        size = len(body)
        if fault in ("longer", "shorter") and draws:
            size = max(0, size + (1 if fault == "longer" else -1) * draws.randrange(1, 100))
        self.wfile.write(head(status, size, more))
        if method == "HEAD":
            return True
        script = self.server.script
        is_flipped = draws and body and draws.random() < script.flips
        if draws and is_flipped and (not script.checksums or "x-amz-checksum-crc32" in more):
            at = draws.randrange(len(body))
            body = body[:at] + bytes([body[at] ^ (1 << draws.randrange(8))]) + body[at + 1 :]
            self.server.met.add("flip")
        if fault in ("cut", "stall in body") and draws:
            self.wfile.write(body[: draws.randrange(len(body) + 1)])
            self.wfile.flush()
            if fault == "stall in body":
                time.sleep(draws.uniform(0, STALL_SECS))
            self.connection.shutdown(socket.SHUT_RDWR)
            return False
        if fault == "drip":
            for byte in body[: int(STALL_SECS / DRIP_SECS)]:
                time.sleep(DRIP_SECS)
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
            return False
        self.wfile.write(body)
        return fault not in ("longer", "shorter")


def about(file: Path) -> tuple[int, str]:
    """Its size and its tag."""
    found = file.stat()
    return found.st_size, f'"{found.st_mtime_ns:x}{found.st_size:x}"'
