"""A store on loopback that fails as it is told: files of a folder over HTTP, and listings as S3 gives them.

The first folder of a path is a bucket. A script says what becomes of each request, by its number among those for bytes.
"""

from __future__ import annotations

import random
import socket
import threading
import time
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path

from loopback import Connection, Request, Server, head, listing

# What may become of a request, and goes away when it is asked again.
PASSING = ["503", "429", "500", "408", "closed", "stall", "stall in body", "cut", "longer", "shorter", "other range", "whole"]
# What stays once it has begun.
LASTING = ["503", "closed", "stall", "cut", "404", "403", "replaced", "truncated", "other range", "redirects", "garbage"]
STALL_SECS = 30.0


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

    def fault(self, number: int) -> tuple[str | None, random.Random]:
        draws = random.Random(self.seed * 1_000_003 + number)
        if self.lasting and number >= self.since:
            return self.lasting, draws
        return (draws.choice(self.kinds) if draws.random() < self.share else None), draws


class Store(Server):
    def __init__(self, folder: Path) -> None:
        self.folder, self.script = folder.resolve(), Script()
        self.lock, self.number, self.met = threading.Lock(), 0, set[str]()
        super().__init__(Failing)

    def begin(self, script: Script) -> None:
        with self.lock:
            self.script, self.number, self.met = script, 0, set()

    def next(self) -> tuple[str | None, random.Random]:
        with self.lock:
            fault, draws = self.script.fault(self.number)
            self.number += 1
            if fault:
                self.met.add(fault)
        return fault, draws

    def handle_error(self, *_: object) -> None:
        """A client that goes away is not worth a word."""


class Failing(Connection):
    server: Store

    def answer(self, request: Request) -> bool:
        folder, path, method = self.server.folder, request.path, request.method
        if "list-type" in request.query:
            return self.send(200, listing(folder, path, request.query, about), {}, method)
        file = (folder / path).resolve()
        if not file.is_file() or folder not in file.parents:
            return self.send(404, b"<Error><Code>NoSuchKey</Code></Error>", {}, method)
        return self.give(file, request)

    def give(self, file: Path, request: Request) -> bool:
        fault, draws = self.server.next()
        whole, (_, tag), method = file.read_bytes(), about(file), request.method
        if fault == "replaced":
            whole, tag = bytes(255 - byte for byte in whole), '"another"'
        elif fault == "truncated":
            whole = whole[: len(whole) // 2]
        elif fault in ("stall", "closed"):
            time.sleep(draws.uniform(0, STALL_SECS) if fault == "stall" else 0)
            return False
        elif fault in ("503", "429", "500", "408", "404", "403"):
            more = {"Retry-After": str(draws.choice([0, 0, 1]))} if fault in ("429", "503") else {}
            return self.send(int(fault), b"<Error><Code>SlowDown</Code></Error>", more, method)
        elif fault == "redirects":
            return self.send(307, b"", {"Location": f"/{file.relative_to(self.server.folder)}"}, method)
        elif fault == "garbage":
            self.wfile.write(draws.randbytes(200))
            return False
        if request.headers.get("if-match", tag) != tag:
            return self.send(412, b"", {}, method)
        status, more = 200, {"ETag": tag, "Accept-Ranges": "bytes", "Last-Modified": formatdate(file.stat().st_mtime, usegmt=True)}
        start, end = 0, len(whole)
        if fault != "whole" and (span := request.span(len(whole))):
            start, end = span
            if start >= len(whole):
                return self.send(416, b"", {}, method)
            if fault == "other range":
                start = max(0, start - draws.randrange(1, 5000))
            status, more["Content-Range"] = 206, f"bytes {start}-{end - 1}/{len(whole)}"
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
        if draws and body and draws.random() < self.server.script.flips:
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
        self.wfile.write(body)
        return fault not in ("longer", "shorter")


def about(file: Path) -> tuple[int, str]:
    """Its size and its tag."""
    found = file.stat()
    return found.st_size, f'"{found.st_mtime_ns:x}{found.st_size:x}"'
