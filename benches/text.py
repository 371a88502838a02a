"""d: tokenise and pack."""

import itertools
import time

import windrow as wr
from data import jsonl, sources
from measure import DATA, TINY, in_turns, limit, table


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
            start = time.perf_counter()
            wr.tokenize([path], out, tokenizer=name, sample_size=1024, threads=2)
            return text_bytes / (time.perf_counter() - start)

        def bare(*how):
            # Loaded by its name in all of them.
            found = limit(*how)
            return found["bytes"] / (found["secs"] + found["load_secs"])

        text_bytes = limit("encode", path, name, 2)["bytes"]
        measures = {
            # The library's own call for many texts, with so many at a time as Datasets' map gives it; or with all.
            "limit: the tokenizer's encode_batch, 1,000 texts": lambda: bare("encode-batch", path, name, 2, 1000),
            "limit: the tokenizer's encode_batch, all at once": lambda: bare("encode-batch", path, name, 2, 1 << 40),
            # A loop of our own that keeps no ids. Threads share a tokenizer, or each has a copy.
            "limit: bare tokenizer, 2 threads": lambda: bare("encode", path, name, 2),
            "limit: bare tokenizer, a copy for each thread": lambda: bare("encode", path, name, 2, "own"),
            "windrow tokenize, 2 threads": windrow,
        }
        found = in_turns(passes, **measures)
        result[label] = table(f"(d) bytes of text/s, {label}", found, "limit: bare tokenizer, 2 threads")
    return result
