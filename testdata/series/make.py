"""Writes the pickles beside it with Python, numpy and torch, and what they hold into expected.json.

Run once, with Python 3.11.7, numpy 2.4.6 and torch 2.15.0; the files are kept.
"""

import collections
import json
import math
import pickle
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
expected = {}


def plain(value):
    if isinstance(value, dict):
        value = value["sequence"]
    if isinstance(value, torch.Tensor):
        value = value.double().tolist() if value.dtype == torch.bfloat16 else value.tolist()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return int(value) if isinstance(value, bool) else value


def write(name, *values, protocol):
    with open(HERE / name, "wb") as file:
        for value in values:
            pickle.dump(value, file, protocol=protocol)
    value = list(values) if len(values) > 1 else values[0]
    expected[name] = plain(value)


DTYPES = "? b B h H i I q Q e f d >i2 >u4 >i8 >f4 >f8".split()
shared = [1.5, -2.5]
for protocol in range(6):
    records = [
        [1, -2, 3.25],
        (0, 255, 65535, -129, 2**31, -(2**63), 2**63 - 1),
        [True, False, math.nan, math.inf, -math.inf, 1e-300],
        [],
        {"id": "s\u00e9rie \u2603", "sequence": shared, "tags": [None, {"a": (1, 2)}], "big": 2**70, 7: "seven"},
        collections.OrderedDict(sequence=shared),
        [np.float32(0.5), np.int16(-3), np.bool_(True), np.float64(2.0)],
    ]
    records += [{"sequence": np.array([0, 1, 100]).astype(dtype), "dtype": dtype} for dtype in DTYPES]
    records += [np.arange(6.0)[::2], np.arange(0.0)]
    write(f"numbers-p{protocol}.pkl", records, protocol=protocol)

cube = np.arange(12, dtype="i4").reshape(2, 3, 2)
objects = np.empty(3, dtype=object)
objects[:] = [np.array([1, 2]), [3], np.array([], dtype="i8")]
for protocol in (2, 5):
    write(f"cube-p{protocol}.pkl", cube, protocol=protocol)
    write(f"rows-fortran-p{protocol}.pickle", np.asfortranarray(cube[0].astype(">f4")), protocol=protocol)
    write(f"flat-p{protocol}.pkl", np.arange(4, dtype="u2"), protocol=protocol)
    write(f"objects-p{protocol}.pkl", objects, protocol=protocol)
    write(f"several-p{protocol}.pickle", [1, 2], np.arange(3), {"sequence": (4,)}, protocol=protocol)
    t = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    tensors = [t, t.T, t[:, 1:], t.to(torch.bfloat16), t.half(), t.double(), t.long(), t.int() > 2]
    tensors = [{"sequence": tensor.T if tensor.shape[1] == 3 else tensor} for tensor in tensors]
    write(f"torch-p{protocol}.pkl", tensors, protocol=protocol)

(HERE / "expected.json").write_text(json.dumps(expected, indent=0) + "\n")
