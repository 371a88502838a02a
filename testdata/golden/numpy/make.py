"""Writes the arrays beside it, and what numpy reads back from them. numpy 2.4.6: python make.py"""

import gzip
import json
import pathlib
import zipfile

import numpy as np

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(7)
expected = {}


def rows(array):
    """Records as lists: floats as shortest decimals, so that they are read back bit for bit."""
    many = [array] if array.ndim == 1 else list(array)
    wide = np.float64 if array.dtype.kind == "f" else np.int64
    return [row.astype(wide).tolist() for row in many]


def note(name, array, records=None):
    kind = "=" if array.dtype.isnative else ">"
    expected[name] = {
        "dtype": array.dtype.name,
        "big_endian": kind == ">",
        "channels": array.shape[2] if array.ndim == 3 else None,
        "records": rows(array) if records is None else records,
    }


def save(name, array, **how):
    with open(here / name, "wb") as file:
        np.lib.format.write_array(file, array, allow_pickle=False, **how)
    note(name, array)


for code in ["?", "<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<f2", "<f4", "<f8", ">i2", ">i4", ">i8", ">u4", ">f4", ">f8"]:
    values = rng.normal(scale=40, size=(3, 5))
    values = np.abs(values) if "u" in code else values
    name = code.replace("<", "").replace(">", "big_").replace("?", "bool")
    save(f"{name}.npy", values.astype(code))
save("one_d.npy", rng.normal(size=11))
save("three_d.npy", rng.integers(0, 99, size=(4, 6, 3), dtype=np.int32))
save("three_d_fortran.npy", np.asfortranarray(rng.normal(size=(4, 6, 3)).astype(np.float32)))
save("two_d_fortran.npy", np.asfortranarray(rng.normal(size=(4, 6)).astype(">f8")))
save("one_row_fortran.npy", np.asfortranarray(rng.normal(size=(1, 6))))
save("no_rows.npy", np.zeros((0, 6), np.float32))
save("no_values.npy", np.zeros((3, 0), np.float32))
save("version_2.npy", rng.normal(size=(2, 3)), version=(2, 0))
save("version_3.npy", rng.normal(size=(2, 3)), version=(3, 0))

members = {"b": rng.normal(size=7), "a": rng.normal(size=(3, 4)), "none": np.zeros(0), "f": np.asfortranarray(rng.normal(size=(2, 5)))}
for name, write in [("stored.npz", np.savez), ("deflated.npz", np.savez_compressed)]:
    write(here / name, **members)
    note(name, members["b"], [row for array in members.values() for row in rows(array)])
both = {"x": rng.integers(0, 9, size=(2, 4, 2)), "y": rng.integers(0, 9, size=(1, 3, 2))}
with zipfile.ZipFile(here / "both_ways.npz", "w") as archive:
    for (name, array), how in zip(both.items(), [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED]):
        archive.compression = how
        with archive.open(f"{name}.npy", "w") as member:
            np.lib.format.write_array(member, array)
note("both_ways.npz", both["x"], [row for array in both.values() for row in rows(array)])
gz = gzip.GzipFile(here / "i4.npy.gz", "wb", mtime=0)
with gz:
    gz.write((here / "i4.npy").read_bytes())
expected["i4.npy.gz"] = expected["i4.npy"]

(here / "expected.json").write_text(json.dumps(expected) + "\n")
