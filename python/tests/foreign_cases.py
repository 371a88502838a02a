"""What the cases of testdata/golden/6_foreign hold, that windrow reads the same, and the packages that wrote them."""

import atexit
import base64
import functools
import json
import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from prepared import Prepared

import windrow as wr

GOLDEN = Path(__file__).parents[2] / "testdata" / "golden" / "6_foreign"
# Other loaders, in a folder of their own beside the tests' other packages.
LOADERS = Path(sys.prefix) / "loaders"


def names(group):
    """The cases of a group."""
    return sorted(path.parent.name for path in (GOLDEN / group).glob("*/case.json"))


def holds(folder, format, says=""):
    """That windrow gives what a case expects, its error included, which `says` this."""
    case = json.loads((folder / "case.json").read_text())
    path = folder / case["open"]
    if case["records"] == "error":
        with pytest.raises(wr.WindrowError) as error:
            ds = wr.open(path, **case["options"])
            assert case["stage"] == "read"
            list(ds)
        assert says in str(error.value)
        return
    expected = json.loads((folder / "expected.json").read_text())
    ds = wr.open(path, **case["options"])
    assert ds.format == format
    assert same(list(ds), value(expected["records"]))
    for i, extras in enumerate(expected.get("extras", [])):
        assert {k: v for k, v in value(extras).items() if not same(v, ds.extras(i).get(k))} == {}


def resumes_on_other_ranks(view):
    """That two ranks stop and three go on with the same global batches."""

    def ranks(world):
        return [wr.Loader(view, 6 // world, seed=5, rank=rank, world_size=world) for rank in range(world)]

    two = ranks(2)
    for loader in two:
        for _ in range(5):
            next(loader)
    state = two[0].state_dict()
    three = ranks(3)
    for loader in three:
        loader.load_state_dict(state)
    for _ in range(4):
        a, b = (np.concatenate([next(loader)["input_ids"] for loader in loaders]) for loaders in (two, three))
        assert (a == b).all()


@functools.cache
def _loaders():
    """Other loaders, once for all tests of a process of pytest's."""
    path = f"{LOADERS}{os.pathsep}{Path(wr.__file__).parents[1]}"
    env = {"PYTHONPATH": path, "PATH": "", "HOME": "/nonexistent", "CUDA_VISIBLE_DEVICES": ""}
    prepared = Prepared(["torch", "datasets", "litdata", "streaming"], env)
    atexit.register(prepared.close)
    return prepared


def printed_by_loaders(code, *arguments):
    """Runs code with the packages of other loaders; the lines that it prints."""
    run = _loaders().run(code, *arguments)
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout.splitlines()


def with_loaders(code, *arguments):
    """Runs it; gives what it prints last, as JSON."""
    return json.loads(printed_by_loaders(code, *arguments)[-1])


def value(found):
    if isinstance(found, dict):
        if "$a" in found:
            dtype, shape, flat = found["$a"]
            return np.array([float(v) if isinstance(v, str) else v for v in flat], dtype=dtype).reshape(shape)
        if "$b" in found:
            return base64.b64decode(found["$b"])
        if "$f" in found:
            return float(found["$f"])
        return {key: value(one) for key, one in found.items()}
    return [value(one) for one in found] if isinstance(found, list) else found


def same(a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b
