"""A small hub on loopback, for the programs of these tests and for the hub's own client.

It serves one data set under every name. Large files are redirected to a second port, as the real hub does.
"""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = 1000
PAGE = 3


def git_sha1(content: bytes) -> str:
    """The name that git gives to this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub:
    """A hub with these files; those of LARGE bytes and more are large.

    `log` holds (port's name, method, path); `cut_at` ends the next large body after that number of bytes.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.log: list[tuple[str, str, str]] = []
        self.cut_at: int | None = None
        self.servers = {name: self.start(name) for name in ("hub", "store")}
        self.endpoint = self.url("hub")

    def url(self, name: str) -> str:
        """The address of one of the two ports."""
        return "http://{}:{}".format(*self.servers[name].server_address)

    def start(self, name: str) -> ThreadingHTTPServer:
        """One of the two ports."""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_HEAD(self) -> None:
                hub.answer(self, name)

            def do_GET(self) -> None:
                hub.answer(self, name)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def stop(self) -> None:
        """Closes both ports."""
        for server in self.servers.values():
            server.shutdown()
            server.server_close()

    def answer(self, request: BaseHTTPRequestHandler, name: str) -> None:
        """Answers one request."""
        url = urlsplit(request.path)
        path = unquote(url.path)
        self.log.append((name, request.command, path))
        head, _, rest = path.removeprefix("/api").removeprefix("/datasets/").partition("/resolve/")
        _, _, file = rest.partition("/")
        if name == "store":
            content = next(c for c in self.files.values() if path == "/" + hashlib.sha256(c).hexdigest())
            self.send_content(request, content, "of-the-store")
        elif path.endswith(("/revision/main", "/revision/refs/convert/parquet", "/revision/refs/pr/3", f"/revision/{COMMIT}")):
            siblings = [{"rfilename": path} for path in self.files]
            self.send_json(request, {"id": head.partition("/revision")[0], "sha": COMMIT, "siblings": siblings})
        elif path.partition("/tree/")[2].partition("/")[0] == COMMIT:
            folder = path.partition(f"/tree/{COMMIT}")[2].lstrip("/")
            start = int(parse_qs(url.query).get("cursor", ["0"])[0])
            below = [name for name in sorted(self.files) if not folder or name.startswith(f"{folder}/")]
            entries = [self.entry(name) for name in below]
            more = start + PAGE < len(entries)
            link = f'<{self.endpoint}{url.path}?recursive=true&cursor={start + PAGE}>; rel="next"' if more else None
            self.send_json(request, entries[start : start + PAGE], link)
        elif file not in self.files:
            request.send_response(404)
            request.send_header("X-Error-Code", "EntryNotFound" if rest else "RepoNotFound")
            request.send_header("Content-Length", "0")
            request.end_headers()
        else:
            self.send_file(request, self.files[file])

    def entry(self, path: str) -> dict[str, Any]:
        """A file, as the tree lists it."""
        content = self.files[path]
        entry: dict[str, Any] = {"type": "file", "path": path, "size": len(content), "oid": git_sha1(content)}
        if len(content) >= LARGE:
            entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
        return entry

    def send_json(self, request: BaseHTTPRequestHandler, value: object, link: str | None = None) -> None:
        """An answer of the API."""
        body = json.dumps(value).encode()
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.send_header("Content-Type", "application/json")
        if link:
            request.send_header("Link", link)
        request.end_headers()
        request.wfile.write(body)

    def send_file(self, request: BaseHTTPRequestHandler, content: bytes) -> None:
        """A file's content, or where it is."""
        if len(content) < LARGE:
            self.send_content(request, content, git_sha1(content))
            return
        sha256 = hashlib.sha256(content).hexdigest()
        request.send_response(302)
        request.send_header("Location", f"{self.url('store')}/{sha256}")
        request.send_header("X-Repo-Commit", COMMIT)
        request.send_header("X-Linked-Etag", f'"{sha256}"')
        request.send_header("X-Linked-Size", str(len(content)))
        request.send_header("Content-Length", "0")
        request.end_headers()

    def send_content(self, request: BaseHTTPRequestHandler, content: bytes, tag: str) -> None:
        """Bytes, from where they are asked for."""
        asked = request.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        start, end = int(asked[0]), int(asked[2] or len(content) - 1)
        body = content[start : end + 1]
        is_range = "Range" in request.headers
        request.send_response(206 if is_range else 200)
        if is_range:
            request.send_header("Content-Range", f"bytes {start}-{end}/{len(content)}")
        request.send_header("Content-Length", str(len(body)))
        request.send_header("ETag", f'"{tag}"')
        request.send_header("X-Repo-Commit", COMMIT)
        request.end_headers()
        if request.command == "GET" and len(content) >= LARGE and self.cut_at is not None:
            body, self.cut_at = body[: self.cut_at], None
            request.close_connection = True
        if request.command == "GET":
            request.wfile.write(body)


def time_300b() -> Hub:
    """A hub whose data set looks like Time-300B: a folder of shards for each of a few sources."""
    files = {"README.md": b"# Time series\n"}
    sources = ["energy/solar", "nature/weather", "sales/dominick", "other/m4_daily", "healthcare/hospital"]
    for number, source in enumerate([*sources, "finance/stocks", "synthetic/waves", "web/visits"], 1):
        values = bytes(range(256)) * 4 * number
        n_values = len(values) // 4
        shard = "data-1-of-1.bin"
        scales = [{"offset": 0, "length": n_values}]
        meta = {"num_sequences": 1, "dtype": "uint32", "files": {shard: n_values}, "scales": scales}
        files |= {f"{source}/{shard}": values, f"{source}/meta.json": json.dumps(meta).encode()}
        files[f"{source}/meta.json.lock"] = b""
    return Hub(files)
