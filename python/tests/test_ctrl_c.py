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
import os, random, sys
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
    "a scaler": ('for _ in wr.Loader(wr.open("numbers").windows(8, scaler=lambda x: x - x[0]), 4, num_threads=0): pass', "nothing"),
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
    "an epoch": ('wr.open("numbers").windows(8).set_epoch(3)', "nothing"),
}


@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_is_never_taken_for_an_answer(tmp_path: Path, call: str) -> None:
    given = """
import numpy as np
import windrow as wr
for name in ("numbers", "more"):
    wr.write(name, [np.arange(100)], to="shards", dtype="int32", durable=False)
from pathlib import Path
Path("texts").mkdir()
Path("texts/a.jsonl").write_text('{"text": "one two"}\\n')
"""
    subprocess.run([sys.executable, "-c", given], cwd=tmp_path, check=True, timeout=120)
    code, expected = CALLS[call]
    program = PROGRAM.replace("CALL", code).replace("EXPECTED", repr(expected))
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
