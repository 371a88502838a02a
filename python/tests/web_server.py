"""A web server on loopback that gives ranges of files and counts what it is asked."""

from __future__ import annotations

import gzip
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Rounds:
    """Answers requests in rounds, each once no other request has come for a while: `count` is how often a caller waited."""

    QUIET = 0.3

    def __init__(self) -> None:
        self.count = 0
        self.changed = threading.Condition()
        self.waiting = 0
        self.arrived = 0.0
        self.is_over = False
        threading.Thread(target=self.answer, daemon=True).start()

    def wait(self) -> None:
        """Returns when the round is over that the request belongs to."""
        with self.changed:
            this = self.count
            self.waiting += 1
            self.arrived = time.monotonic()
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.count > this or self.is_over)

    def stop(self) -> None:
        with self.changed:
            self.is_over = True
            self.changed.notify_all()

    def answer(self) -> None:
        while not self.is_over:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting > 0 or self.is_over)
                left = self.arrived + self.QUIET - time.monotonic()
                if left <= 0:
                    self.count, self.waiting = self.count + 1, 0
                    self.changed.notify_all()
            time.sleep(max(left, 0))


class Listening(ThreadingHTTPServer):
    # 64 that come at once are not left to knock again a second later.
    request_queue_size = 128


class WebServer:
    """The files of a folder, each with its size and time as a tag."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[tuple[str, str, str | None]] = []
        """Method, path and range of each request."""
        self.fails: set[int] = set()
        """Numbers of requests that are answered with 503."""
        self.refused: dict[str, int] = {}
        """Names of files, and the status with which each is refused."""
        self.is_chunked = False
        """Whole files in chunks, without their length, whatever range is asked for."""
        self.encodings: dict[str, str] = {}
        """Names of files, and the Content-Encoding that each is said to have."""
        self.packs = False
        """Packs with gzip what it sends, though it says how large it is unpacked."""
        self.rounds: Rounds | None = None
        """Holds requests back."""
        self.holds_back: tuple[int, threading.Event] | None = None
        """Ranges of more bytes are answered once the event is set."""
        handler = self.handler()
        self.server = Listening(("127.0.0.1", 0), handler)
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
                if rounds := outer.rounds:
                    rounds.wait()
                path = outer.folder / self.path.partition("?")[0].lstrip("/")
                if number in outer.fails:
                    self.say(503, b"busy", {"Retry-After": "0"})
                elif path.name in outer.refused:
                    self.say(outer.refused[path.name], b"", {})
                elif not path.is_file():
                    self.say(404, b"nothing", {})
                else:
                    about = path.stat()
                    tag = f'"{about.st_size:x}-{about.st_mtime_ns:x}"'
                    if self.headers.get("If-Match", tag) != tag:
                        self.say(412, b"", {})
                        return
                    headers = {"ETag": tag}
                    if encoding := outer.encodings.get(path.name):
                        headers["Content-Encoding"] = encoding
                    if outer.packs and self.command == "GET":
                        self.say(200, gzip.compress(path.read_bytes()), {**headers, "Content-Encoding": "gzip"})
                        return
                    with path.open("rb") as file:
                        if asked and not outer.is_chunked:
                            start, last = (int(n) for n in asked.removeprefix("bytes=").split("-"))
                            if (held := outer.holds_back) and last - start >= held[0]:
                                held[1].wait(60)
                            file.seek(start)
                            part = file.read(last + 1 - start)
                            headers["Content-Range"] = f"bytes {start}-{start + len(part) - 1}/{about.st_size}"
                            self.say(206, part, headers)
                        else:
                            self.say(200, file.read(), headers)

            def say(self, status: int, body: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if outer.is_chunked and status == 200:
                    self.send_header("Transfer-Encoding", "chunked")
                    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
                else:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler
