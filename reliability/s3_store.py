"""S3 on loopback, from Python's standard library alone, for the Rust tests: folders below a root are buckets, their files objects.

    python3 reliability/s3_store.py ROOT KEY SECRET

Prints its URL and serves clients that sign with that key, until its input ends. The line `{"pattern": "^PUT ", "after": 1}` on its
input denies requests from then on: those whose `METHOD /path` matches, except the first; `{}` denies none. `{"lists": false}` serves
whoever may get objects but not list them: listings are denied, and so is what is not there. Each line is answered by the number of
requests that the line before denied. What the tests never ask for, such as multipart uploads, is not implemented.
"""

from __future__ import annotations

import calendar
import hashlib
import hmac
import json
import re
import sys
import threading
import time
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit
from xml.sax.saxutils import escape

from loopback import Connection, Request, Server, head, listing

STATUS = {
    "AccessDenied": 403,
    "InvalidAccessKeyId": 403,
    "RequestTimeTooSkewed": 403,
    "SignatureDoesNotMatch": 403,
    "NoSuchBucket": 404,
    "NoSuchKey": 404,
    "PreconditionFailed": 412,
    "InvalidRange": 416,
    "InternalError": 500,
    "NotImplemented": 501,
}
AUTHORIZATION = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/]+)/([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})")
LISTED_BY = {"list-type", "prefix", "start-after", "continuation-token"}
MOST_SKEW_SECS = 15 * 60

# Status, body and headers.
Answer = tuple[int, bytes, dict[str, str]]


class Refused(Exception):
    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


class Denied:
    """Which requests are denied: those that match the pattern, except the first ones; without a pattern, none. Where nothing may be
    listed, what is not there is denied, too."""

    def __init__(self, pattern: str | None = None, after: int = 0, lists: bool = True) -> None:
        self.pattern, self.left, self.count, self.lists = pattern, after, 0, lists
        self.lock = threading.Lock()

    def holds(self, request: Request) -> bool:
        if self.pattern is None or not re.search(self.pattern, f"{request.method} {urlsplit(request.target).path}"):
            return False
        with self.lock:
            self.left -= 1
            self.count += self.left < 0
            return self.left < 0

    def code_of(self, refused: Refused) -> str:
        """What is said of a request that is refused."""
        if self.lists or refused.code != "NoSuchKey":
            return refused.code
        with self.lock:
            self.count += 1
        return "AccessDenied"


class Store(Server):
    def __init__(self, root: Path, key: str, secret: str) -> None:
        self.root, self.key, self.secret = root.resolve(), key, secret
        self.denied = Denied()
        self.lock = threading.Lock()
        self.kept: dict[tuple[Path, str], dict[str, str]] = {}
        """Metadata of objects, by file and tag: bytes that a test writes into the folder itself have none."""
        super().__init__(Client)

    def answer(self, request: Request) -> Answer:
        self.check_signature(request)
        bucket, _, key = request.path.partition("/")
        if ".." in request.path.split("/") or not (self.root / bucket).is_dir():
            raise Refused("NoSuchBucket")
        query, file = request.query, self.root / bucket / key
        if request.method == "GET" and not key and query.get("list-type") == "2" and query.keys() <= LISTED_BY:
            if not self.denied.lists:
                raise Refused("NoSuchKey")
            return 200, listing(self.root, bucket, query, lambda file: about(file.read_bytes())), {}
        if key and not query and request.method in ("GET", "HEAD"):
            return self.get(file, request)
        if key and not query and request.method == "PUT":
            return self.put(file, request)
        if key and not query and request.method == "DELETE":
            # S3 answers alike whether it was there or not.
            file.unlink(missing_ok=True)
            return 204, b"", {}
        raise Refused("NotImplemented", request.target)

    def get(self, file: Path, request: Request) -> Answer:
        try:
            whole = file.read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise Refused("NoSuchKey") from None
        size, tag = about(whole)
        check_conditions(request, tag)
        more = {"ETag": tag, "Accept-Ranges": "bytes", **self.kept.get((file, tag), {})}
        if (span := request.span(size)) is None:
            return 200, whole, more
        start, end = span
        if start >= size:
            raise Refused("InvalidRange")
        return 206, whole[start:end], more | {"Content-Range": f"bytes {start}-{end - 1}/{size}"}

    def put(self, file: Path, request: Request) -> Answer:
        tag, part = about(request.body)[1], self.root / ".part"
        # One at a time: the condition still holds when the object is written.
        with self.lock:
            check_conditions(request, about(file.read_bytes())[1] if file.exists() else None)
            self.kept[file, tag] = {name: value for name, value in request.headers.items() if name.startswith("x-amz-meta-")}
            file.parent.mkdir(parents=True, exist_ok=True)
            # Readers see the old object or the new one.
            part.write_bytes(request.body)
            part.replace(file)
        return 200, b"", {"ETag": tag}

    def check_signature(self, request: Request) -> None:
        if not (signed := AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))):
            raise Refused("AccessDenied")
        key, scope, names, signature = signed.groups()
        if key != self.key:
            raise Refused("InvalidAccessKeyId")
        at = request.headers.get("x-amz-date", "")
        if scope[:8] != at[:8] or signature != signature_of(request, self.secret, scope, at, names):
            raise Refused("SignatureDoesNotMatch")
        if abs(time.time() - calendar.timegm(time.strptime(at, "%Y%m%dT%H%M%SZ"))) > MOST_SKEW_SECS:
            raise Refused("RequestTimeTooSkewed")


class Client(Connection):
    server: Store

    def answer(self, request: Request) -> bool:
        if self.server.denied.holds(request):
            status, body, more = 403, b"", dict[str, str]()
        else:
            try:
                status, body, more = self.server.answer(request)
            except (Refused, OSError) as error:
                refused = error if isinstance(error, Refused) else Refused("InternalError", str(error))
                code = self.server.denied.code_of(refused)
                said = f"<Error><Code>{code}</Code><Message>{escape(refused.message)}</Message></Error>"
                status, body, more = STATUS[code], said.encode(), {}
        self.wfile.write(head(status, len(body), more) + (b"" if request.method == "HEAD" else body))
        return True


def about(whole: bytes) -> tuple[int, str]:
    """Size and tag of an object."""
    return len(whole), f'"{hashlib.md5(whole, usedforsecurity=False).hexdigest()}"'


def check_conditions(request: Request, tag: str | None) -> None:
    """Those of a request about an object with this tag; None where there is no object."""
    if request.headers.get("if-match", tag) != tag or (request.headers.get("if-none-match") == "*" and tag):
        raise Refused("PreconditionFailed")


def signature_of(request: Request, secret: str, scope: str, at: str, names: str) -> str:
    """AWS's Signature Version 4 of a request, its body included."""
    url = urlsplit(request.target)
    query = sorted((quote(name, safe="~"), quote(value, safe="~")) for name, value in parse_qsl(url.query, keep_blank_values=True))
    headers = [f"{name}:{' '.join(request.headers.get(name, '').split())}" for name in names.split(";")]
    asked = [request.method, url.path, "&".join(f"{name}={value}" for name, value in query), *headers, "", names, sha256(request.body)]
    words = ["AWS4-HMAC-SHA256", at, scope, sha256("\n".join(asked).encode("latin-1"))]
    key = f"AWS4{secret}".encode()
    # Day, region, service and `aws4_request` derive the key, which then signs.
    for word in [*scope.split("/"), "\n".join(words)]:
        key = hmac.digest(key, word.encode(), "sha256")
    return key.hex()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def main() -> None:
    root, key, secret = sys.argv[1:]
    store = Store(Path(root), key, secret)
    print(store.url, flush=True)
    for line in sys.stdin:
        before, store.denied = store.denied, Denied(**json.loads(line))
        print(before.count, flush=True)


if __name__ == "__main__":
    main()
