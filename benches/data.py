"""Data that several questions share, made once."""

import json
import pathlib
import sysconfig

import numpy as np

from measure import CORPUS, DATA, warm


def tokens(n=500_000_000):
    path = DATA / "tokens_u16.bin"
    if not path.exists() or path.stat().st_size != 2 * n:
        rng = np.random.default_rng(0)
        with open(path, "wb") as out:
            for start in range(0, n, 10_000_000):
                out.write(rng.integers(0, 50_000, min(10_000_000, n - start), dtype=np.uint16).tobytes())
    warm(path)
    return path


def jsonl(size=1_000_000_000, name="docs.jsonl"):
    """About 1 KB a line, cut from the real corpus."""
    path = DATA / name.split(".")[0] / name
    if not path.exists() or abs(path.stat().st_size - size) > size // 10:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = []
        for line in CORPUS.open(encoding="utf-8"):
            record = json.loads(line)
            text = record["text"]
            for i, start in enumerate(range(0, len(text), 900)):
                cut = {"id": f"{record['id']}/{i}", "text": text[start : start + 900], "lang": record.get("lang")}
                lines.append(json.dumps(cut, ensure_ascii=False).encode() + b"\n")
        block = b"".join(lines)
        with open(path, "wb") as out:
            for _ in range(max(1, size // len(block))):
                out.write(block)
    warm(path)
    return path


def sources(most=400_000_000):
    """A document per Python file of this environment: text that does not repeat, as a corpus does not."""
    path = DATA / "sources" / "sources.jsonl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        left = most
        with open(path, "wb") as out:
            for file in sorted(pathlib.Path(sysconfig.get_path("purelib")).rglob("*.py")):
                try:
                    text = file.read_text(encoding="utf-8")
                except (UnicodeDecodeError, OSError):
                    continue
                line = json.dumps({"id": file.name, "text": text}, ensure_ascii=False).encode() + b"\n"
                if left < len(line):
                    break
                left -= out.write(line)
    warm(path)
    return path
