"""d: processor time from text to token IDs on disk: windrow's, GigaToken's, and Megatron-LM's way of preprocessing."""

import base64
import importlib.util
import json
import multiprocessing
import os
import shutil
import subprocess
import sys

import numpy as np

from data import sources
from measure import DATA, TINY, in_turns, table, versions

# Of a program tens of times slower, a part of the text is enough.
THREADS, SIZE, PART = 2, 120_000_000, 5_000_000
CL100K = "cl100k_base"
FOLDER = DATA / "tokenized"


def text(size=SIZE):
    """Source code in JSON Lines, the first lines of about this size."""
    path = FOLDER / f"text-{size}.jsonl"
    if not path.exists():
        with open(sources(), "rb") as lines, open(path.with_suffix(".tmp"), "wb") as out:
            out.writelines(lines.readlines(size))
        path.with_suffix(".tmp").rename(path)
    return path


def windrow(name, out):
    import windrow as wr

    def work():
        options = {"dtype": "uint16"} if name == str(TINY) else {}
        wr.tokenize(text(), out, tokenizer=name, to="megatron", num_threads=THREADS, fsync=False, overwrite=True, **options)

    return work


def ranks():
    """cl100k_base as GigaToken reads it: of splintr, which brings the vocabulary, the bytes of each token."""
    import splintr

    path = FOLDER / f"{CL100K}.tiktoken"
    if not path.exists():
        tokenizer = splintr.Tokenizer.from_pretrained(CL100K)
        tokens = (base64.b64encode(bytes(tokenizer.decode_token_bytes(rank))).decode() for rank in range(100_256))
        path.write_text("".join(f"{token} {rank}\n" for rank, token in enumerate(tokens)))
    return path


def gigatoken(name, out):
    import awkward
    import gigatoken as gt

    vocabulary = None if name == str(TINY) else ranks()

    def work():
        tokenizer = gt.Tokenizer.from_tiktoken(vocabulary) if vocabulary else gt.Tokenizer(name)
        ids = tokenizer.encode_files(gt.JsonlFileSource([text()]))
        out.mkdir(parents=True, exist_ok=True)
        awkward.to_numpy(awkward.flatten(ids)).astype(np.uint16 if name == str(TINY) else np.int32).tofile(out / "tokens.bin")
        awkward.to_numpy(awkward.num(ids)).tofile(out / "lengths.bin")

    return work


def encode(line):
    """What a worker of Megatron-LM's preprocessing does with a line."""
    ids = encode.tokenizer.tokenize(json.loads(line)["text"])
    return ids, [len(ids)] if ids else []


def load(folder):
    from megatron.core.tokenizers import MegatronTokenizer

    encode.tokenizer = MegatronTokenizer.from_pretrained(str(folder), metadata_path={"library": "huggingface"}, use_fast=True)


def megatron(name, out):
    """megatron-core has the tokenizer and the writer; the program around them is in Megatron-LM's repository alone."""
    from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder
    from transformers import PreTrainedTokenizerFast

    folder = FOLDER / "transformers"
    PreTrainedTokenizerFast(tokenizer_file=name).save_pretrained(folder)

    def work():
        out.mkdir(parents=True, exist_ok=True)
        load(folder)
        builder = IndexedDatasetBuilder(str(out / "tokens.bin"), dtype=DType.optimal_dtype(encode.tokenizer.vocab_size))
        with open(text(PART), encoding="utf-8") as lines, multiprocessing.Pool(THREADS, load, [folder]) as pool:
            for ids, lengths in pool.imap(encode, lines, 32):
                builder.add_document(ids, lengths)
            pool.close()
            pool.join()
        builder.finalize(str(out / "tokens.idx"))

    return work


PROGRAMS = {"windrow tokenize": windrow, "GigaToken, then NumPy": gigatoken, "Megatron-LM's way, HF tokenizer": megatron}


def programs(name):
    """Those that are installed and read this vocabulary."""
    for program, make in PROGRAMS.items():
        if make is gigatoken and not importlib.util.find_spec("gigatoken"):
            print("\n(d) GigaToken is not installed: python -m pip install -r benches/requirements.txt")
        elif make is not megatron or name == str(TINY):
            yield program


def output(program):
    return FOLDER / f"out-{list(PROGRAMS).index(program)}"


def spent():
    """Processor seconds of this process and of those it started and that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def alone(program, name):
    """Processor milliseconds for a megabyte, in a process of its own; imports are not counted, loading the vocabulary is."""
    shutil.rmtree(output(program), ignore_errors=True)
    threads = {"RAYON_NUM_THREADS": str(THREADS), "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, __file__, program, name]
    out = subprocess.run(command, env=os.environ | threads, check=True, capture_output=True, text=True)
    size = text(PART if PROGRAMS[program] is megatron else SIZE).stat().st_size
    return 1e9 * float(out.stdout.splitlines()[-1]) / size


def same_ids(program, name, expected):
    """That it writes the IDs that windrow writes, as far as its text reaches."""
    alone(program, name)
    dtype = np.uint16 if name == str(TINY) else np.int32
    own, all_ids = (np.fromfile(output(one) / "tokens.bin", dtype) for one in (program, expected))
    whole = PROGRAMS[program] is not megatron
    assert own.size and (own.size == all_ids.size or not whole) and (own == all_ids[: own.size]).all(), (program, name)


def bench_on_disk(passes):
    FOLDER.mkdir(exist_ok=True)
    result = {"bytes": text().stat().st_size, "versions": versions("gigatoken", "megatron-core", "tokenizers", "splintr-rs")}
    for name in (str(TINY), CL100K):
        label = "tiny4k (tokenizer.json)" if name == str(TINY) else name
        here = list(programs(name))
        for program in here:
            same_ids(program, name, here[0])
        found = in_turns(passes, **{program: lambda program=program, name=name: alone(program, name) for program in here})
        title = f"(d) processor milliseconds for a MB of source code in JSON Lines, its IDs on disk, {label}"
        result[label] = table(title, found, here[0])
    return result


if __name__ == "__main__":
    work = PROGRAMS[sys.argv[1]](sys.argv[2], output(sys.argv[1]))
    start = spent()
    work()
    print(spent() - start)
