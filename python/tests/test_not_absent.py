"""What cannot be asked for is an error, never absent: data would be read as what it is not, or left out."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from web_server import WebServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebServer]:
    running = WebServer(tmp_path)
    yield running
    running.stop()


def pair(folder: Path) -> str:
    wr.write(folder / "pair", [np.array([1, 2, 3]), np.array([4, 5])], to="megatron", dtype="int32")
    for beside in folder.glob("*.windrow.*"):
        beside.unlink()
    return "pair.bin"


def track(folder: Path) -> str:
    record = {"sequence": np.arange(45, dtype=np.int16).reshape(5, 9), "text": "hello"}
    wr.write(folder / "codes", [record], to="codes")
    shutil.copy(folder / "codes" / "encoded_audio" / "000000.pt", folder / "track.pt")
    (folder / "track.txt").write_text("hello")
    return "track.pt"


def part(folder: Path) -> str:
    (folder / "in.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    wr.prep.run(wr.prep.plan("tokenize", [folder / "in.jsonl"], folder / "out", tokenizer="bytes", eos="none"))
    return "out/parts/000000.bin"


def prompt(data: wr.Dataset) -> Any:
    return data.extras(0)["text"]


def records(data: wr.Dataset) -> list[Any]:
    return [record.tolist() for record in data]


@pytest.mark.parametrize(
    ("make", "beside", "read", "expected"),
    [
        (pair, "pair.idx", records, [[1, 2, 3], [4, 5]]),
        (track, "track.txt", prompt, "hello"),
        (part, "000000.json", records, [list(b"one"), list(b"two")]),
    ],
)
def test_a_file_beside_it_that_is_refused(server: WebServer, tmp_path: Path, make: Any, beside: str, read: Any, expected: Any) -> None:
    url = f"{server.url}/{make(tmp_path)}"

    def opened() -> wr.Dataset:
        return wr.open(url, cache_limit=0, timeout=1)

    assert read(opened()) == expected
    for status in (403, 503):
        server.refused = {beside: status}
        with pytest.raises(wr.IoError, match=str(status)) as raised:
            opened()
        assert str(raised.value.path).endswith(beside)
    server.refused = {beside: 404}
    assert read(opened()) != expected


# Whoever runs the tests may be root, who is refused nothing.
NOBODY = """
import json, os, sys
import numpy as np
import windrow as wr
wr.formats()
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
os.chdir(sys.argv[1])
os.environ["WINDROW_CACHE"] = sys.argv[1] + "/cache"

def tried(work):
    try:
        return work()
    except wr.WindrowError as error:
        return f"{type(error).__name__} {error.path}"

for name in ("p0", "p1", "p2"):
    os.mkdir(name)
    np.arange(10, dtype=np.uint16).tofile(f"{name}/train.bin")
os.mkdir("out.bin")
open("out.bin/thesis.txt", "w").close()
patterns = ("*/train.bin", "p*/*.bin", "p*/**/train.bin")
answers = {}
for step, mode in (("open", 0o700), ("closed", 0o600)):
    os.chmod("p1", mode)
    answers[step] = [tried(lambda: len(wr.open(pattern, dtype="uint16"))) for pattern in patterns]
os.chmod("out.bin", 0o300)
answers["write"] = tried(lambda: wr.write("out.bin", [[1, 2, 3]], to="tokens", dtype="uint16", overwrite=True))
os.chmod("out.bin", 0o700)
answers["left"] = os.listdir("out.bin")
os.chmod("p1", 0o700)
print(json.dumps(answers))
"""


def test_what_this_user_may_not_look_into() -> None:
    # Where everybody may go.
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        folder.chmod(0o777)
        ran = subprocess.run([sys.executable, "-c", NOBODY, str(folder)], capture_output=True, text=True, timeout=120)
        assert ran.returncode == 0, ran.stderr
        answers = json.loads(ran.stdout)
    finally:
        shutil.rmtree(folder)
    assert answers["open"] == [3, 3, 3]
    assert all(str(answer).startswith("IoError ") and "/p1/" in answer for answer in answers["closed"]), answers
    assert answers["write"].startswith("ExistsError") and answers["left"] == ["thesis.txt"], answers
