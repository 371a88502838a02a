"""Writes ids.json: what the Python packages make of the hard strings and of forty real documents.

    python make.py [FOLDER]

Needs: tokenizers, splintr-rs, xxhash, zstandard. With tiktoken and a FOLDER that serves as its cache, cl100k_base,
o200k_base and gpt2 are also compared with tiktoken before anything is written.
Special tokens in a text stay text.
"""

import importlib.metadata
import json
import os
import pathlib
import struct
import sys

import splintr
import tokenizers
import xxhash
import zstandard

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TEXT = ROOT / "crates/windrow-text/assets"
TIKTOKEN = {"cl100k_base": "cl100k_base", "o200k_base": "o200k_base", "gpt2": "r50k_base"}
EVERY = 9  # of 344 documents: 39, from every source and most scripts


def reference(content: bytes):
    tokenizer = tokenizers.Tokenizer.from_buffer(content)
    tokenizer.encode_special_tokens = True
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def fast(name: str):
    return splintr.Tokenizer.from_pretrained(name).encode_ordinary


def engines():
    gpt2 = zstandard.ZstdDecompressor().stream_reader((TEXT / "gpt2/tokenizer.json.zst").open("rb")).read()
    yield "gpt2", "tokenizers", reference(gpt2)
    yield "tiny4k", "tokenizers", reference((ROOT / "testdata/tokenizer/tiny4k/tokenizer.json").read_bytes())
    for name in ["cl100k_base", "o200k_base", "llama3", "deepseek_v3"]:
        yield name, "splintr-rs", fast(name)


def agree_with_tiktoken(cache: str, name: str, texts: list[str], ids: list[list[int]]) -> None:
    os.environ["TIKTOKEN_CACHE_DIR"] = cache
    import tiktoken

    encoding = tiktoken.get_encoding(name)
    for text, got in zip(texts, ids):
        assert encoding.encode_ordinary(text) == got, (name, text[:80])


def main() -> None:
    hard = json.loads((TEXT / "hard_strings.json").read_text())
    lines = (ROOT / "testdata/text/corpus.jsonl").read_text().splitlines()
    documents = {i: json.loads(lines[i])["text"] for i in range(0, len(lines), EVERY)}
    out = {}
    for name, package, encode in engines():
        strings = [encode(text) for text in hard]
        ids = [encode(text) for text in documents.values()]
        if len(sys.argv) > 1 and name in TIKTOKEN:
            agree_with_tiktoken(sys.argv[1], TIKTOKEN[name], hard + list(documents.values()), strings + ids)
        out[name] = {
            "package": f"{package} {importlib.metadata.version(package)}",
            "hard": strings,
            # document number, number of ids, XXH3-64 of the ids as little-endian u32
            "documents": [
                [i, len(one), xxhash.xxh3_64_hexdigest(struct.pack(f"<{len(one)}I", *one))]
                for i, one in zip(documents, ids)
            ],
        }
    body = ",\n".join(
        f'{json.dumps(name)}: {{\n"package": {json.dumps(rows["package"])},\n"hard": [\n'
        + ",\n".join(json.dumps(ids, separators=(",", ":")) for ids in rows["hard"])
        + '\n],\n"documents": [\n'
        + ",\n".join(json.dumps(row) for row in rows["documents"])
        + "\n]}"
        for name, rows in out.items()
    )
    (HERE / "ids.json").write_text("{\n" + body + "\n}\n")


if __name__ == "__main__":
    main()
