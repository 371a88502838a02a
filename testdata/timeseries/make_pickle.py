"""Writes series.pkl: the series of bin_f32/ as a list of lists of floats."""

import json
import pickle
import struct
from pathlib import Path

here = Path(__file__).parent
meta = json.loads((here / "bin_f32/meta.json").read_text())
raw = b"".join((here / "bin_f32" / name).read_bytes() for name in meta["files"])
values = struct.unpack(f"<{len(raw) // 4}f", raw)
series = [list(values[s["offset"] : s["offset"] + s["length"]]) for s in meta["scales"]]
(here / "series.pkl").write_bytes(pickle.dumps(series, protocol=4))
