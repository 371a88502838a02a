"""moto's server of S3 on loopback: boto3 puts data there, as its users do, and windrow reads it."""

from __future__ import annotations

import datetime
import ipaddress
import itertools
import json
import ssl
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import boto3
import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

KEYS = {"access_key_id": "AKEY", "secret_access_key": "ASECRET", "region": "us-east-1"}
BUCKETS = itertools.count()


Hook = Callable[[dict[str, Any]], "tuple[int, bytes] | None"]
"""Status and body of a request that is refused, by its WSGI environment."""


class KeepsConnections(WSGIRequestHandler):
    """As S3 does: a connection that a fork copied is used again."""

    protocol_version = "HTTP/1.1"
    # A body behind its head does not wait for a confirmation.
    disable_nagle_algorithm = True

    def log(self, type: str, message: str, *args: Any) -> None:
        pass


class S3Server:
    """Buckets in this process's memory."""

    def __init__(self, certificate: Certificate | None = None, hook: Hook | None = None) -> None:
        self.requests: list[tuple[str, str]] = []
        """Method and path of each request."""
        app = DomainDispatcherApplication(create_backend_app)

        def counted(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
            self.requests.append((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
            if refused := hook and hook(environ):
                status, body = refused
                start(f"{status} Refused", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
                return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]
            return app(environ, start)

        context = certificate and certificate.context()
        self.server = make_server("127.0.0.1", 0, counted, threaded=True, request_handler=KeepsConnections, ssl_context=context)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.server.server_port}"
        # For windrow's `store_options`.
        self.options = {**KEYS, "endpoint_url": self.url}
        self.client = boto3.client(
            "s3", endpoint_url=self.url, region_name=KEYS["region"], verify=certificate and str(certificate.path),
            aws_access_key_id=KEYS["access_key_id"], aws_secret_access_key=KEYS["secret_access_key"],
        )  # fmt: skip

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def bucket(self) -> str:
        """A new one, without objects."""
        name = f"bucket-{next(BUCKETS)}"
        self.client.create_bucket(Bucket=name)
        return name

    def put(self, path: Path) -> str:
        """Puts a file, or the files below a folder, into a new bucket; its URL."""
        bucket = self.bucket()
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file():
                self.client.put_object(Bucket=bucket, Key=str(file.relative_to(path.parent)), Body=file.read_bytes())
        return f"s3://{bucket}/{path.name}"

    def compare(self, cache: Path) -> int:
        """Compares what copies in a cache say that they hold with the store; how many granules of 4 KiB have something."""
        granules = 0
        for about in cache.glob("remote/*/about.json"):
            bucket, key = json.loads(about.read_text())["url"].removeprefix("s3://").split("/", 1)
            stored = np.frombuffer(self.client.get_object(Bucket=bucket, Key=key)["Body"].read(), dtype="u1")
            data = np.fromfile(about.parent / "data", dtype="u1")
            assert len(data) == len(stored), key
            # A bit for each 64 bytes that are there, and their checksum.
            marks = np.fromfile(about.parent / "sums", dtype="<u8").reshape(-1, 2)[:, 0].copy()
            is_there = np.unpackbits(marks.view("u1"), bitorder="little").repeat(64)[: len(data)].astype(bool)
            assert (data[is_there] == stored[is_there]).all(), key
            granules += int(np.count_nonzero(marks))
        return granules

    def gets(self, url: str) -> int:
        """How often bytes of an object, or of those below a folder, were asked for."""
        path = url.removeprefix("s3:/")
        return sum(method == "GET" and asked.startswith(path) for method, asked in self.requests)


class Certificate:
    """A certificate of 127.0.0.1 that signs itself."""

    def __init__(self, folder: Path) -> None:
        self.path, self.key = folder / "certificate.pem", folder / "key.pem"
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "windrow's tests")])
        now = datetime.datetime.now(datetime.timezone.utc)
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
            .sign(key, hashes.SHA256())
        )
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        form = serialization.PrivateFormat.PKCS8
        self.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path, self.key)
        return context
