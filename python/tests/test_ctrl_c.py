"""Ctrl-C that comes while a call of windrow's runs Python code, as an import or a function of the user's: it leaves the call.

Each call is made again and again in forks of one program, and is interrupted at another event each time.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# As a profiler sees them: calls of Python functions and of built-in ones.
PROGRAM = """
import collections.abc, os, random, sys
from pathlib import Path
import numpy as np
import windrow as wr

class Named(type(Path())):
    pass

def tokenizer(text):
    return [len(word) for word in text.split()]

def texts():
    yield from ("one two", "three")

class Row(dict):
    def keys(self):
        return list(super().keys())

def call():
    CALL

def is_lost_by_python(frame):
    # The callback of a weak reference, in the import of a module.
    is_callback = lambda frame: frame and frame.f_code.co_name == "cb" and "importlib" in frame.f_code.co_filename
    return is_callback(frame) or is_callback(frame.f_back)

class Mapping(collections.abc.Mapping):
    def __init__(self, given):
        self.given = given
    def __getitem__(self, key):
        return self.given[key]
    def __iter__(self):
        return iter(self.given)
    def __len__(self):
        return len(self.given)

class Number:
    def __index__(self):
        return 3

class Listed:
    def __init__(self, ids):
        self.ids = ids
    def __len__(self):
        return len(self.ids)
    def __getitem__(self, at):
        return self.ids[at]

collections.abc.Sequence.register(Listed)

def listed(text):
    return Listed(tokenizer(text))

def begun(at):
    seen = 0
    this = sys._getframe()
    def see(frame, event, _):
        nonlocal seen
        if event in ("call", "c_call") and frame is not this and not is_lost_by_python(frame):
            seen += 1
            if seen == at:
                sys.setprofile(None)
                raise KeyboardInterrupt
    sys.setprofile(see)
    try:
        call()
        ended = "nothing"
    except KeyboardInterrupt:
        ended = "Ctrl-C"
    except BaseException as error:
        ended = f"{type(error).__name__}: {error}"
    sys.setprofile(None)
    return seen, ended

def forked(at):
    readable, writable = os.pipe()
    if os.fork() == 0:
        os.write(writable, repr(begun(at)).encode())
        os._exit(0)
    os.close(writable)
    said = b""
    while part := os.read(readable, 1 << 16):
        said += part
    os.close(readable)
    os.wait()
    return eval(said)

events, ended = forked(0)
expected = EXPECTED
assert ended.startswith(expected), ended
places = range(1, events + 1)
if events > 120:
    places = sorted(random.Random(1).sample(places, 120))
wrong = [(at, ended) for at in places for _, ended in [forked(at)] if ended != "Ctrl-C"]
print(f"{events} events")
for at, ended in wrong:
    print(f"at event {at}: {ended}")
sys.exit(len(wrong) > 0 or events < 3)
"""
CALLS = {
    "a scaler": ('for _ in wr.Loader(wr.open("numbers").windows(8, scaler=lambda x: x - x[0], scaler_name="first"), 4, num_threads=0): pass', "nothing"),
    "bfloat16": ('next(wr.open("numbers").pack(4, dtype="bfloat16").loader(batch_size=1, num_threads=0))["labels"]', "nothing"),
    "a path": ('len(wr.open(Named("numbers")))', "nothing"),
    "paths": ('len(wr.open([Named("numbers"), Named("more")]))', "nothing"),
    "a tokenizer of files": ('wr.tokenize(Named("texts"), Named("out"), tokenizer=tokenizer, vocab_size=9, eos=0, overwrite=True)', "nothing"),
    "a tokenizer of texts": ('wr.tokenize(texts(), "out", tokenizer=tokenizer, vocab_size=9, eos=0, overwrite=True)', "nothing"),
    "a dict without the text": ('wr.tokenize(iter([Row(a=1)]), "out", tokenizer="bytes", overwrite=True)', "CorruptError"),
    "records": ('wr.write("out.npz", (np.arange(n) for n in (2, 3)), to="npz", dtype="float32", overwrite=True)', "nothing"),
    "what is converted": ('wr.convert(Named("numbers"), "out", to="shards", overwrite=True)', "nothing"),
    "a plan": ("wr.trace(Named('none'), 0)", "NotFoundError"),
    "no number": ('wr.open("numbers")[10 ** 30]', "OutOfRangeError"),
    "a number": ('wr.open("numbers").windows(8)[Number()]', "nothing"),
    "an option": ('wr.write("out", [[1, 2]], to="shards", dtype="int32", max_shard_bytes=Number(), overwrite=True)', "nothing"),
    "a fit": ('wr.open("numbers").windows(8, scaler="max", fit=0.5)', "TypeError"),
    "sizes": ("assert wr.temperature(Mapping({1: 900, 2: 100}), 1.0)[1] > 0.8", "nothing"),
    "parts": ('wr.mix(Mapping({"a": (wr.open("numbers").windows(8), 1.0)}))', "nothing"),
    "IDs that are listed": (
        'wr.tokenize("texts", "out", tokenizer=listed, vocab_size=9, eos=0, overwrite=True)',
        "nothing",
    ),
    "an epoch": ('wr.open("numbers").windows(8).set_epoch(3)', "nothing"),
}


@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_is_never_taken_for_an_answer(tmp_path: Path, call: str) -> None:
    given = """
import numpy as np
import windrow as wr
for name in ("numbers", "more"):
    wr.write(name, [np.arange(100)], to="shards", dtype="int32", fsync=False)
from pathlib import Path
Path("texts").mkdir()
Path("texts/a.jsonl").write_text('{"text": "one two"}\\n')
"""
    subprocess.run([sys.executable, "-c", given], cwd=tmp_path, check=True, timeout=120)
    code, expected = CALLS[call]
    program = PROGRAM.replace("CALL", code).replace("EXPECTED", repr(expected))
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]


LOGGED = """
import logging, os, signal, sys
import numpy as np
import windrow as wr

class Pressed(Exception):
    pass

calls = []

def handler(*_):
    calls.append(1)
    raise {"exit": SystemExit, "error": Pressed, "Ctrl-C": KeyboardInterrupt}[sys.argv[1]]

class Handler(logging.Handler):
    def emit(self, record):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(10):
            pass

signal.signal(signal.SIGTERM, handler)
np.arange(10, dtype=np.uint16).tofile("t.bin")
logging.getLogger("windrow").addHandler(Handler())
try:
    wr.open("t.bin")
    ended = "nothing"
except BaseException as raised:
    ended = type(raised).__name__
print(ended, len(calls))
"""


@pytest.mark.parametrize(("kind", "expected"), [("exit", "SystemExit 1"), ("error", "Pressed 1"), ("Ctrl-C", "KeyboardInterrupt 1")])
def test_what_a_signal_raises_while_a_record_is_logged(tmp_path: Path, kind: str, expected: str) -> None:
    ran = subprocess.run([sys.executable, "-c", LOGGED, kind], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ran.stdout.strip(), ran.stderr) == (expected, "")
