"""What the cases of testdata/golden/6_foreign hold: values as they are written in JSON, and whether two are the same."""

import base64
import math

import numpy as np


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
