"""HTTP on loopback, by hand, and listings as S3 gives them: what store_server and s3_store have in common."""

from __future__ import annotations

import contextlib
import os
import socketserver
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

# In one page of a listing, as S3 has it.
MOST_KEYS = 1000


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]
    """By names in lower case."""
    body: bytes

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path).strip("/")

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    def span(self, size: int) -> tuple[int, int] | None:
        """Start and end of the requested bytes of an object of this size; None where all are."""
        if not (asked := self.headers.get("range", "")).startswith("bytes="):
            return None
        low, _, high = asked[6:].partition("-")
        return int(low), min(int(high) + 1, size) if high else size


class Server(socketserver.ThreadingTCPServer):
    """Serves from the moment it is made, each connection in a thread."""

    daemon_threads, allow_reuse_address, request_queue_size = True, True, 256

    def __init__(self, connection: type[Connection], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), connection)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()


class Connection(socketserver.StreamRequestHandler):
    """The requests of a client, one after the other."""

    disable_nagle_algorithm = True

    def answer(self, request: Request) -> bool:
        """Whether the connection is kept."""
        raise NotImplementedError

    def handle(self) -> None:
        # A client that goes away is not worth a word.
        with contextlib.suppress(OSError):
            while (request := self.read()) and self.answer(request):
                pass

    def read(self) -> Request | None:
        method, target = (self.rfile.readline().decode("latin-1").split(" ") + [""])[:2]
        if not target:
            return None
        headers: dict[str, str] = {}
        while (line := self.rfile.readline().decode("latin-1").strip()) != "":
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return Request(method, target, headers, self.rfile.read(int(headers.get("content-length", 0))))


def head(status: int, size: int, more: dict[str, str]) -> bytes:
    # 204 has no body, and HTTP forbids to say how long it is.
    more = more if status == 204 else {"Content-Length": str(size), **more}
    lines = [f"HTTP/1.1 {status} -", *(f"{name}: {value}" for name, value in more.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def listing(root: Path, bucket: str, query: dict[str, str], about: Callable[[Path], tuple[int, str]]) -> bytes:
    """A page of the files below `root/bucket`, each with its size and tag, as S3 answers ListObjectsV2 without a delimiter."""
    prefix = query.get("prefix", "")
    after = max(query.get("continuation-token", ""), query.get("start-after", ""))
    keys, found = list[str](), []
    for folder, folders, names in os.walk(root / bucket):
        at = os.path.relpath(folder, root / bucket) + "/"
        at = "" if at == "./" else at
        # Folders without a key of this prefix are not entered.
        folders[:] = [name for name in folders if f"{at}{name}/"[: len(prefix)] == prefix[: len(f"{at}{name}/")]]
        keys += (at + name for name in names)
    keys = sorted(key for key in keys if key.startswith(prefix) and key > after)
    page = keys[:MOST_KEYS]
    for key in page:
        # It may have been removed meanwhile.
        with contextlib.suppress(FileNotFoundError):
            size, tag = about(root / bucket / key)
            found.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size>"
                f"<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>{escape(tag)}</ETag></Contents>"
            )
    more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if page != keys else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>{escape(bucket)}</Name><IsTruncated>{str(bool(more)).lower()}</IsTruncated><KeyCount>{len(found)}</KeyCount>"
        f"<MaxKeys>{MOST_KEYS}</MaxKeys><Prefix>{escape(prefix)}</Prefix>{more}{''.join(found)}</ListBucketResult>"
    ).encode()
