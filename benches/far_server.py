"""A slow object store on loopback: files of a folder as S3 serves them, each answer after a wait, each connection at its speed.

    python benches/far_server.py FOLDER MILLISECONDS MEGABYTES_A_SECOND

The folders below FOLDER are its buckets; signatures are not looked at. Prints its port, and ends with its standard input.
GET /-/counts gives the requests and bytes since the last time, as JSON.
"""

import json
import os
import socketserver
import sys
import threading
import time
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PART = 1 << 18


class Store(socketserver.ThreadingTCPServer):
    daemon_threads, allow_reuse_address, request_queue_size = True, True, 1000

    def __init__(self, folder, wait, speed):
        super().__init__(("127.0.0.1", 0), Connection)
        self.folder, self.wait, self.speed = Path(folder).resolve(), wait, speed
        self.lock, self.requests, self.bytes = threading.Lock(), 0, 0

    def count(self, requests=0, size=0):
        with self.lock:
            self.requests, self.bytes = self.requests + requests, self.bytes + size

    def counts(self):
        with self.lock:
            found = {"requests": self.requests, "bytes": self.bytes}
            self.requests = self.bytes = 0
        return json.dumps(found).encode()

    def listing(self, bucket, query):
        prefix = query.get("prefix", [""])[0]
        root = self.folder / bucket
        keys = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
        found = []
        for key in keys:
            if key.startswith(prefix):
                about = (root / key).stat()
                found.append(
                    f"<Contents><Key>{escape(key)}</Key><Size>{about.st_size}</Size>"
                    f"<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>{escape(tag_of(about))}</ETag></Contents>"
                )
        return (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{escape(bucket)}</Name><IsTruncated>false</IsTruncated><KeyCount>{len(found)}</KeyCount>"
            f"<MaxKeys>1000</MaxKeys><Prefix>{escape(prefix)}</Prefix>{''.join(found)}</ListBucketResult>"
        ).encode()


def tag_of(about):
    return f'"{about.st_mtime_ns:x}{about.st_size:x}"'


class Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        try:
            while self.answer():
                pass
        except ConnectionError:
            pass

    def answer(self):
        method, target = (self.rfile.readline().decode("latin-1").split(" ") + [""])[:2]
        if not target:
            return False
        asked = {}
        while (line := self.rfile.readline().decode("latin-1").strip()) != "":
            name, _, value = line.partition(":")
            asked[name.lower()] = value.strip()
        self.rfile.read(int(asked.get("content-length", 0)))
        if target == "/-/counts":
            return self.text(200, self.server.counts(), method)
        self.server.count(requests=1)
        time.sleep(self.server.wait)
        url = urlsplit(target)
        query, path = parse_qs(url.query), unquote(url.path).strip("/")
        if "list-type" in query or "/" not in path:
            return self.text(200, self.server.listing(path, query), method)
        file = (self.server.folder / path).resolve()
        if not file.is_file() or self.server.folder not in file.parents:
            return self.text(404, b"<Error><Code>NoSuchKey</Code></Error>", method)
        return self.file(file, asked.get("range", ""), method)

    def head(self, status, size, more):
        lines = [f"HTTP/1.1 {status} -", f"Content-Length: {size}", *(f"{name}: {value}" for name, value in more.items())]
        self.wfile.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    def text(self, status, body, method):
        self.head(status, len(body), {})
        if method != "HEAD":
            self.wfile.write(body)
        return True

    def file(self, file, wanted, method):
        about = file.stat()
        more = {"ETag": tag_of(about), "Accept-Ranges": "bytes", "Last-Modified": formatdate(about.st_mtime, usegmt=True)}
        status, start, end = 200, 0, about.st_size
        if wanted.startswith("bytes="):
            low, _, high = wanted[6:].partition("-")
            start, end = int(low), min(int(high) + 1, end) if high else end
            status, more["Content-Range"] = 206, f"bytes {start}-{end - 1}/{about.st_size}"
        self.head(status, end - start, more)
        if method == "HEAD":
            return True
        began, at = time.perf_counter(), start
        with open(file, "rb", buffering=0) as f:
            while at < end:
                # The system copies, and no other connection waits for that.
                at += os.sendfile(self.connection.fileno(), f.fileno(), at, min(PART, end - at))
                ahead = (at - start) / self.server.speed - (time.perf_counter() - began)
                if ahead > 0 and at < end:
                    time.sleep(ahead)
        self.server.count(size=end - start)
        return True


def main():
    server = Store(sys.argv[1], float(sys.argv[2]) / 1e3, float(sys.argv[3]) * 1e6)
    print(server.server_address[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
