"""What the cases of testdata/golden/6_foreign hold: values as they are written in JSON, and whether two are the same."""

import base64
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np

# Other loaders, in a folder of their own beside the tests' other packages.
LOADERS = Path(sys.prefix) / "loaders"


def with_loaders(code, *arguments):
    """Runs code with the packages of other loaders; what it prints last, as JSON."""
    run = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={"PYTHONPATH": str(LOADERS), "PATH": "", "HOME": "/nonexistent", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


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
