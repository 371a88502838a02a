"""Data sets in parts, written without windrow, and the records that they hold.

Run it here: python make.py (numpy 2.4.6, xxhash 4.1.0).
"""

import json
from pathlib import Path

import numpy as np
import xxhash

HERE = Path(__file__).parent
BLOCK = 4096


def hex_of(data: bytes) -> str:
    return xxhash.xxh3_64(data).hexdigest()


def sums_of(data: bytes) -> bytes:
    blocks = [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]
    return b"".join((xxhash.xxh3_64(block).intdigest() & 0xFFFFFFFF).to_bytes(4, "little") for block in blocks)


def write(name: str, parts: list[list[np.ndarray]], task: str, more: dict) -> None:
    folder = HERE / name
    (folder / "parts").mkdir(parents=True, exist_ok=True)
    (folder / "prep").mkdir(exist_ok=True)
    job = hex_of(name.encode())
    rows, records = [], []
    dtype, channels = more["dtype"], more.get("channels")
    for number, part in enumerate(parts):
        values = b"".join(record.astype("<" + np.dtype(dtype).str[1:]).tobytes() for record in part)
        lengths = np.array([len(record) for record in part], "<u4").tobytes()
        files = {".bin": values, ".len": lengths, ".sums": sums_of(values)}
        for ending, data in files.items():
            (folder / f"parts/{number:06}{ending}").write_bytes(data)
        listed = [
            {"name": f"{number:06}{ending}", "size": len(data), "xxh3": hex_of(data)} for ending, data in files.items()
        ]
        counts = {"records": len(part), "values": sum(map(len, part))}
        said = {"version": 1, "job": job, "task": number, "input": "a.jsonl", "lines": [0, 0], **counts, "dtype": dtype}
        said |= {"channels": channels} if channels else {}
        (folder / f"parts/{number:06}.json").write_text(json.dumps(said | {"files": listed}) + "\n")
        rows.append({**counts, "bytes": len(values), "xxh3": hex_of(values), "lengths_xxh3": hex_of(lengths)})
        records += part
    plan = {"version": 1, "task": task, "tasks": len(parts), "hash": job, "out": name}
    (folder / f"prep/{job}.json").write_text(json.dumps(plan) + "\n")
    manifest = {"version": 1, "windrow": "0.1.0", "format": "parts"}
    manifest |= {key: sum(row[key] for row in rows) for key in ("records", "values")}
    manifest |= {**more, "options": {"task": task}, "parts": rows}
    (folder / "windrow.json").write_text(json.dumps(manifest, indent=2) + "\n")
    expected = {"records": [record.tolist() for record in records]}
    (HERE / f"{name}.expected.json").write_text(json.dumps(expected) + "\n")


def main() -> None:
    rng = np.random.default_rng(33)
    lengths = [7, 0, 3000, 12, 1, 1, 0, 2500, 64, 9]
    documents = [rng.integers(0, 50_000, length) for length in lengths]
    tokens = {"dtype": "uint16", "vocab_size": 50_257}
    write("tokens", [documents[:3], [], documents[3:4], documents[4:]], "tokenize", tokens)
    grids = [rng.integers(0, 1024, (length, 9)) for length in (30, 1, 44)]
    write("codes", [grids[:1], grids[1:]], "encode", {"channels": 9, "dtype": "int32"})


if __name__ == "__main__":
    main()
