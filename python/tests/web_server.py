"""A web server on loopback that gives ranges of files and counts what it is asked."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class WebServer:
    """The files of a folder, each with its size and time as a tag."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[tuple[str, str, str | None]] = []
        """Method, path and range of each request."""
        self.fails: set[int] = set()
        """Numbers of requests that are answered with 503."""
        handler = self.handler()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self.answer()

            def do_GET(self) -> None:
                self.answer()

            def answer(self) -> None:
                asked = self.headers.get("Range")
                number = len(outer.requests)
                outer.requests.append((self.command, self.path, asked))
                path = outer.folder / self.path.lstrip("/")
                if number in outer.fails:
                    self.say(503, b"busy", {"Retry-After": "0"})
                elif not path.is_file():
                    self.say(404, b"nothing", {})
                else:
                    about = path.stat()
                    tag = f'"{about.st_size:x}-{about.st_mtime_ns:x}"'
                    if self.headers.get("If-Match", tag) != tag:
                        self.say(412, b"", {})
                        return
                    content = path.read_bytes()
                    headers = {"ETag": tag}
                    if asked:
                        start, last = (int(n) for n in asked.removeprefix("bytes=").split("-"))
                        part = content[start : last + 1]
                        headers["Content-Range"] = f"bytes {start}-{start + len(part) - 1}/{len(content)}"
                        self.say(206, part, headers)
                    else:
                        self.say(200, content, headers)

            def say(self, status: int, body: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler
