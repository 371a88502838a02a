"""d: tokenise and pack."""

import itertools
import json
import os
import subprocess
import sys
import time

import splintr
import tokenizers
import windrow as wr
from data import jsonl, sources
from measure import DATA, TINY, in_turns, limit, table, warm
from tokenized import bench_on_disk


def package(path, name):
    """Bytes of text per second that the tokenizer's Python package encodes, its vocabulary loaded."""
    if name == str(TINY):
        # Tens of times slower: its beginning is enough.
        most, encode = 40_000_000, tokenizers.Tokenizer.from_file(name).encode_batch_fast
    else:
        most, encode = 1 << 40, splintr.Tokenizer.from_pretrained(name).encode_batch
    texts, size = [], 0
    with open(path, "rb") as lines:
        for line in itertools.takewhile(lambda _: size < most, lines):
            texts.append(json.loads(line)["text"])
            size += len(texts[-1].encode())
    start = time.perf_counter()
    for at in range(0, len(texts), 1000):
        encode(texts[at : at + 1000])
    return size / (time.perf_counter() - start)


def package_alone(path, name):
    # Both packages ask for the number of their threads once in a process.
    threads = {"RAYON_NUM_THREADS": "2", "TOKENIZERS_PARALLELISM": "true"}
    command = [sys.executable, __file__, path, name]
    out = subprocess.run(command, env=os.environ | threads, check=True, capture_output=True, text=True)
    return float(out.stdout)


def bench_d(passes, seconds):
    result = {}
    # The corpus ninety times over stays in a tokenizer's caches; sources do not repeat.
    texts = {"the corpus repeated": jsonl(400_000_000, "text.jsonl"), "sources": sources()}
    for (kind, path), name in itertools.product(texts.items(), (str(TINY), "cl100k_base")):
        label = f"{'tiny4k (tokenizer.json)' if name == str(TINY) else name}, {kind}"

        def windrow():
            import shutil

            out = DATA / "packed"
            shutil.rmtree(out, ignore_errors=True)
            # Some systems take out of the page cache what nobody has read for seconds.
            warm(path)
            start = time.perf_counter()
            wr.tokenize([path], out, tokenizer=name, sample_size=1024, num_threads=2)
            return text_bytes / (time.perf_counter() - start)

        def bare(*how):
            # Loaded by its name in all of them.
            found = limit(*how)
            return found["bytes"] / (found["secs"] + found["load_secs"])

        text_bytes = limit("encode", path, name, 2)["bytes"]
        measures = {
            # The library's own call for many texts, with the number at a time that Datasets' map gives it; or with all.
            "limit: the tokenizer's encode_batch, 1,000 texts": lambda: bare("encode-batch", path, name, 2, 1000),
            "limit: the tokenizer's encode_batch, all at once": lambda: bare("encode-batch", path, name, 2, 1 << 40),
            # A loop of our own around the library that keeps no ids. Threads share a tokenizer, or each has a copy.
            "limit: bare tokenizer, 2 threads": lambda: bare("encode", path, name, 2),
            "limit: bare tokenizer, a copy for each thread": lambda: bare("encode", path, name, 2, "own"),
            # What a user of Python has without windrow: ids as lists of the interpreter's numbers.
            "the tokenizer's Python package, encode_batch": lambda: package_alone(path, name),
            "windrow tokenize, 2 threads": windrow,
        }
        found = in_turns(passes, **measures)
        result[label] = table(f"(d) bytes of text/s, {label}", found, "limit: bare tokenizer, 2 threads")
    return result | {"on disk": bench_on_disk(passes)}


if __name__ == "__main__":
    print(package(*sys.argv[1:]))
