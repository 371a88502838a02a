"""Small data sets as other programs leave them, without checksums: made here by numpy, torch, pickle, and as plain text."""

from __future__ import annotations

import gzip
import json
import pickle
import wave
from pathlib import Path
from typing import Any

import numpy as np
from sets import Set, codes, equal

TESTDATA = Path(__file__).resolve().parents[1] / "testdata"


def foreign(folder: Path) -> list[Set]:
    """One of each format; codes and zstd only where torch and numcodecs are installed."""
    sets = []

    def add(name: str, file: str, data: bytes, **options: Any) -> Path:
        path = folder / name.replace(" ", "-").replace(",", "") / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        sets.append(Set(name, str(path), str(path.parent), options))
        return path

    add("raw tokens", "ids.bin", np.arange(3000, dtype="<u2").tobytes(), dtype="uint16", vocab_size=3000)
    add("raw documents", "ids.bin", (np.arange(3000, dtype="<u4") % 97).tobytes(), dtype="uint32", document_eos=0)
    lines = "".join(json.dumps({"n": n, "text": f"line {n}"}) + "\n" for n in range(200)).encode()
    add("jsonl", "a.jsonl", lines)
    add("json-array", "array.json", b"[" + b",\n".join(lines.splitlines()) + b"]")
    add("jsonl, gzip", "a.jsonl.gz", gzip.compress(lines))
    series = [[n * 10 + t / 2 for t in range(5 + 9 * n)] for n in range(12)]
    text = json.dumps([{"sequence": one, "name": f"s{n}"} for n, one in enumerate(series)]).encode()
    add("series-json", "series.json", text)
    add("series-jsonl, gzip", "series.jsonl.gz", gzip.compress(b"".join(json.dumps(one).encode() + b"\n" for one in series)))
    add("yaml", "series.yaml", b"".join(b"- sequence: " + json.dumps(one).encode() + b"\n  name: s\n" for one in series))
    add("csv", "table.csv", b"date,a,b\n" + b"".join(f"2020-01-{n // 24 + 1:02} {n % 24:02}:00,{n},{n / 4}\n".encode() for n in range(100)))
    add("gluonts", "data.json", b"".join(json.dumps({"start": "2020-01-01", "target": one}).encode() + b"\n" for one in series))
    values = [":".join([f"T{n}", ",".join(map(str, one))]) for n, one in enumerate(series)]
    add("tsf", "data.tsf", "\n".join(["@attribute series_name string", "@data", *values, ""]).encode())
    for protocol in (2, 5):
        kept = [{"sequence": np.array(one), "name": f"s{n}"} for n, one in enumerate(series)]
        add(f"pickle {protocol}", "series.pkl", pickle.dumps(kept, protocol=protocol))
    for name, arrays in {"npy": [np.stack(equal())], "npz": equal(), "npz, compressed": equal()}.items():
        path = folder / name.replace(", ", "-") / f"data.{name[:3]}"
        path.parent.mkdir()
        save = {"npy": np.save, "npz": np.savez, "npz, compressed": np.savez_compressed}[name]
        save(path, *arrays)
        sets.append(Set(name, str(path), str(path.parent)))
    sets += [*codes_of_torch(folder), *sound(folder)]
    try:
        from numcodecs import Zstd
    except ImportError:
        return sets
    add("jsonl, zstd", "a.jsonl.zst", Zstd(level=3).encode(lines))
    return sets


def codes_of_torch(folder: Path) -> list[Set]:
    try:
        import torch
    except ImportError:
        return []
    out = folder / "codes" / "encoded_audio"
    out.mkdir(parents=True)
    for n, one in enumerate(codes()):
        torch.save(torch.from_numpy(one), out / f"track{n}.pt")
        (out.parent / f"track{n}.txt").write_text(f"prompt {n}")
    return [Set("codes of torch", str(out.parent), str(out.parent))]


def sound(folder: Path) -> list[Set]:
    """A tone of our own, and recordings of every codec."""
    sets = []
    for name in ("cards_002.flac", "cards_003.mp3", "cards_004.m4a", "cards_005.ogg"):
        path = folder / name.replace(".", "-") / name
        path.parent.mkdir(parents=True)
        path.write_bytes((TESTDATA / "audio" / name).read_bytes())
        sets.append(Set(f"sound, {path.suffix[1:]}", str(path), str(path.parent), is_sound=True))
    path = folder / "tone" / "tone.wav"
    path.parent.mkdir()
    with wave.open(str(path), "wb") as file:
        file.setparams((2, 2, 8000, 0, "NONE", ""))
        file.writeframes((np.arange(4000, dtype="<i2") * 7).tobytes())
    sets.append(Set("sound, tone", str(path), str(path.parent), is_sound=True))
    return sets
