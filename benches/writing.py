"""m: writing token streams, beside what a tokenizer gives."""

import shutil
import time

import windrow as wr
from data import jsonl
from flat_tokens import sequences
from measure import DATA, in_turns, limit, table, warm

EOS = 100_257
LIMIT = "limit: bare tokenizer (cl100k_base), 2 threads"
ZARR = {
    "v2": {},
    "v3": {"zarr_format": 3, "tokens_chunk_size": 65_536},
    "v3, shards": {"zarr_format": 3, "tokens_chunk_size": 4_096, "chunks_per_shard": 256},
}


def emptied(name):
    """A path below the bench's data where nothing is."""
    for left in DATA.glob(f"{name}*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    return DATA / name


def bench_m(passes, seconds):
    n = 50_000_000
    raw, text = DATA / f"documents{n}.bin", jsonl(400_000_000, "text.jsonl")
    if not raw.exists():
        wr.write(raw, sequences(n), to="tokens", dtype="uint32", eos=EOS, fsync=False)
    warm(raw)
    # The ends of its documents are looked for once.
    wr.open(raw, dtype="uint32", document_eos=EOS)
    ids = limit("encode", text, "cl100k_base", 2)["ids"]

    def bare():
        return ids / limit("encode", text, "cl100k_base", 2)["secs"]

    def converted(to):
        out = emptied("converted")
        start = time.perf_counter()
        wr.convert(wr.open(raw, document_eos=EOS), out, to=to, fsync=False)
        return n / (time.perf_counter() - start)

    def tokenized(to, options):
        out = emptied("tokenized")
        start = time.perf_counter()
        wr.tokenize([text], out, tokenizer="cl100k_base", to=to, fsync=False, num_threads=2, **options)
        return ids / (time.perf_counter() - start)

    measures = {LIMIT: bare}
    for to in ["tokens", "megatron", "shards", "flat-tokens"]:
        measures[f"convert, to {to}"] = lambda to=to: converted(to)
    for to in ["tokens", "megatron", "shards"]:
        measures[f"tokenize, to {to}"] = lambda to=to: tokenized(to, {})
    for name, options in ZARR.items():
        measures[f"tokenize, to flat-tokens {name}"] = lambda options=options: tokenized("flat-tokens", options)
    return table("(m) ids/s", in_turns(passes, **measures), LIMIT)
