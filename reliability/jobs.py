"""Everything that writes: each command with each layout, small enough to be killed at every change that it makes.

A job runs in a folder that its steps prepared. A command is a list of arguments of the program, or Python code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import program

Command = list[str] | str

LINES = 120
TEXTS = [f"{i} " + "word " * (i % 7) for i in range(LINES)]
# Of one length, so that every format holds them.
RECORDS = [[i, i + 1, 7, 250 - i] for i in range(24)]
# What is replaced is larger than what replaces it: whatever is left of it would not be missed.
OTHERS = [[9, i, 3, 8] for i in range(31)]
OLDER = [f"other {i} " + "text " * (i % 9) for i in range(180)]
CODES = [[[i, 2], [3, i], [i, i]] for i in range(6)]
ENDINGS = {
    "npy": ".npy",
    "npz": ".npz",
    "jsonl": ".jsonl",
    "tokens": ".bin",
    "llmc": ".bin",
    "tfrecord": ".tfrecord",
    "array_record": ".array_record",
    "bagz": ".bagz",
    "arrow": ".arrow",
    "parquet": ".parquet",
}
# What makes chunks, shards and checkpoints of so little data.
SMALL = {"flat-tokens": ["--tokens-chunk-size", "512", "--seq-starts-chunk-size", "64"]}


@dataclass(frozen=True)
class Job:
    """What is run, in which row it counts, and what a reader opens."""

    row: str
    name: str
    command: Command
    steps: list[Command] = field(default_factory=list)
    older: Command | None = None
    """What makes an older output, which `command` then replaces."""
    reads: str | None = None
    apart: bool = False
    """Files become visible one by one, each of them whole."""
    also: tuple[str, ...] = ()
    """Files that only a failed run writes, and that may stay: a report of what failed."""
    tidy: Command | None = None
    """What removes what killed runs left, where a rerun does not."""
    once: bool = False
    """Run again after it is done, it does the same again."""


def inputs(folder: Path) -> None:
    """What all jobs read."""
    for name, texts in {"in": TEXTS, "in2": OLDER}.items():
        half = len(texts) * 2 // 3
        (folder / name / "b").mkdir(parents=True)
        for path, lines in {"a.jsonl": texts[:half], "b/c.jsonl": texts[half:]}.items():
            (folder / name / path).write_text("".join(json.dumps({"text": text, "n": i}) + "\n" for i, text in enumerate(lines)))


def layouts(command: str) -> list[str]:
    """The formats that a command writes, as its help lists them."""
    said = program.run(program.windrow(command, "--help"), Path.cwd()).out
    listed = said[said.index("--to <FORMAT>") :]
    listed = listed[listed.index("Possible values:") :]
    return re.findall(r"^ +- ([a-z_0-9-]+): ", listed[: listed.index("\n      --")], re.MULTILINE)


def jobs() -> list[Job]:
    return [*tokenizing(), *converting(), *indexing(), *in_tasks(), *small_files(), *of_python()]


def tokenizing() -> Iterator[Job]:
    """To every layout, with checkpoints on the way; in place of an older output, too."""
    for to in layouts("tokenize"):
        for name, more in variants(to):
            line = ["tokenize", "in", "-q", "--tokenizer", "bytes", "--out", "out", "--to", to, "--num-threads", "1"]
            line += ["--checkpoint-bytes", "2000", *SMALL.get(to, []), *more]
            reads = {"megatron": "out"}.get(to, "out")
            yield Job("tokenize", f"tokenize to {name}", line, reads=reads)
            older = ["in2" if word == "in" else word for word in line]
            yield Job("tokenize, older output", f"tokenize to {name}, older output", [*line, "--overwrite"], older=older, reads=reads)
            if to == "tokens":
                less = [*line, "--no-block-sums", "--overwrite"]
                yield Job("tokenize, older output", f"tokenize to {name} without block checksums, older output with them", less, older=older, reads=reads)
            if to in ("tokens", "llmc"):
                # Whose data file has the same name, but not what describes it.
                older = ["llmc" if word == "tokens" else "tokens" if word == "llmc" else word for word in older]
                yield Job("tokenize, older output", f"tokenize to {name}, older output of another format", [*line, "--overwrite"], older=older, reads=reads)


def variants(to: str) -> Iterator[tuple[str, list[str]]]:
    yield to, []
    if to == "forager":
        yield "forager in samples", ["--sample-size", "64"]
    if to == "flat-tokens":
        yield "flat-tokens in shards", ["--zarr-format", "3", "--chunks-per-shard", "2"]


def converting() -> Iterator[Job]:
    """Numbers to every format, and rows to those that hold rows."""
    records = "wr.write('rec', RECORDS, to='shards', dtype='uint16', vocab_size=300, fsync=False)"
    others = "wr.write('rec2', OTHERS, to='shards', dtype='uint16', vocab_size=300, fsync=False)"
    codes = "wr.write('rec', CODES, to='codes', fsync=False); wr.write('rec2', CODES[::-1][:4], to='codes', fsync=False)"
    for to in layouts("convert"):
        out = "out" + ENDINGS.get(to, "")
        line = ["convert", "rec", out, "--to", to, "-q", *SMALL.get(to, [])]
        steps: list[Command] = [codes] if to == "codes" else [records, others]
        reads = "out.idx" if to == "megatron" else out
        yield Job("convert", f"convert to {to}", line, steps, reads=reads)
        older = ["rec2" if word == "rec" else word for word in line]
        yield Job("convert, older output", f"convert to {to}, older output", [*line, "--overwrite"], steps, older, reads)
    for to in ("parquet", "arrow", "mds", "webdataset", "tfrecord", "jsonl"):
        out = "out" + ENDINGS.get(to, "")
        line = ["convert", "in/a.jsonl", out, "--to", to, "-q", "--columns", "text,n"]
        yield Job("convert", f"convert rows to {to}", line, reads=out)


def indexing() -> Iterator[Job]:
    yield Job("index", "index", ["index", "in", "-q"], reads="in")
    packed = (
        "import gzip, pathlib; path = pathlib.Path('in/a.jsonl'); "
        "pathlib.Path('in/a.jsonl.gz').write_bytes(gzip.compress(path.read_bytes(), mtime=0)); path.unlink()"
    )
    yield Job("index", "index of .gz", ["index", "in", "-q"], [packed], reads="in")
    older: Command = ["index", "in", "-q"]
    yield Job("index, older output", "index, older output", ["index", "in", "-q", "--overwrite", "--checksum"], older=older, reads="in")


def in_tasks() -> Iterator[Job]:
    """Each command of `prep`; the job's file says where it is, so all run at one path."""
    record = "wr.write('rec', RECORDS, to='shards', dtype='uint16', vocab_size=300, fsync=False)"
    kinds: dict[str, tuple[list[str], str]] = {
        "tokenize": (["tokenize", "in", "--tokenizer", "bytes", "--task-bytes", "1500"], "joined"),
        "convert": (["convert", "rec", "--to", "shards", "--task-bytes", "80"], "joined"),
        "index": (["index", "in", "--task-bytes", "1500"], "in"),
    }
    for kind, (options, joined) in kinds.items():
        plan: Command = ["prep", "plan", *options, "--out", "parts", "--job", "job.json", "-q"]
        run: Command = ["prep", "run", "job.json", "--num-threads", "1", "-q"]
        merge: Command = ["prep", "merge", "job.json", "-q"]
        join: Command = ["prep", "join", "job.json", "--out", joined, "-q"]
        clean: Command = ["prep", "clean", "job.json", "-q"]
        first: list[Command] = [record] if kind == "convert" else []
        yield Job("prep plan", f"prep plan {kind}", plan, first, apart=True, tidy=clean)
        failed = tuple(f"parts/parts/{task:06}.error.json" for task in range(40))
        yield Job("prep run", f"prep run {kind}", run, [*first, plan], reads="parts", apart=True, also=failed, tidy=clean)
        if kind != "index":
            yield Job("prep merge", f"prep merge {kind}", merge, [*first, plan, run], reads="parts", tidy=clean)
        yield Job("prep join", f"prep join {kind}", join, [*first, plan, run], reads=joined)
        if kind == "tokenize":
            older: Command = ["tokenize", "in2", "-q", "--tokenizer", "bytes", "--out", "joined"]
            line: Command = [*join, "--overwrite"]
            yield Job("prep join", "prep join tokenize, older output", line, [*first, plan, run], older, joined)


def small_files() -> Iterator[Job]:
    """Commands that write a file or two."""
    line = ["dummy", "--vocab-size", "300", "--tokens", "2000", "--out", "out.bin", "-q"]
    yield Job("dummy", "dummy", line, reads="out.bin")
    yield Job("dummy", "dummy, older output", [*line, "--seed", "1", "--overwrite"], older=line, reads="out.bin")
    yield Job("manifest", "manifest", ["manifest", "in", "-q"], reads="in")
    another = "import shutil; shutil.copy('in2/a.jsonl', 'in/another.jsonl')"
    yield Job("manifest", "manifest, older output", ["manifest", "in", "-q"], [["manifest", "in", "-q"], another], reads="in")
    report = ["report", "in", "-o", "page.html", "-q"]
    yield Job("report", "report", report)
    older = ["report", "in2", "-o", "page.html", "-q"]
    yield Job("report", "report, older output", [*report, "--overwrite"], older=older)
    dummy: list[Command] = [["dummy", "--vocab-size", "300", "--tokens", "2000", "--out", "ids.bin", "-q"]]
    batch = ["extract", "ids.bin", "--pack", "16", "--batch-size", "4", "--step", "3", "-o", "batch.npz", "-q"]
    yield Job("extract", "extract", batch, dummy)
    yield Job("extract", "extract of reshuffled documents", [*batch, "--document-eos", "7", "--reshuffle", "--epoch", "1"], dummy)
    codes = "wr.write('codes', CODES, to='codes', fsync=False)"
    prompts = (
        "import pathlib; new = pathlib.Path('new'); new.mkdir()\n"
        "for track in pathlib.Path('codes/encoded_audio').iterdir():\n"
        "    (new / f'{track.stem}.txt').write_text(f'prompt of {track.stem}')"
    )
    line = ["rebuild-metadata", "codes", "--prompts", "new", "-q"]
    yield Job("rebuild-metadata", "rebuild-metadata", line, [codes, prompts], reads="codes")


def of_python() -> Iterator[Job]:
    """From what Python hands over, which is seen only once."""
    dtypes = {"npz": "float32", "flat-tokens": "uint32"}
    for to in ("shards", "megatron", "flat-tokens", "parquet", "npz", "mds"):
        out = "out" + ENDINGS.get(to, "")
        reads = "out.idx" if to == "megatron" else out
        dtype = dtypes.get(to, "int32")
        call = f"wr.write('{out}', iter(RECORDS), to='{to}', dtype='{dtype}'"
        yield Job("wr.write", f"wr.write to {to}", f"{call})", reads=reads)
        older = call.replace("RECORDS", "OTHERS")
        yield Job("wr.write", f"wr.write to {to}, older output", f"{call}, overwrite=True)", older=f"{older})", reads=reads)
    small = "tokens_chunk_size=16, seq_starts_chunk_size=4"
    for name, more in {"zarr 2": "zarr_format=2", "shards of zarr 3": "zarr_format=3, chunks_per_shard=2"}.items():
        first = f"wr.write('out', OTHERS, to='flat-tokens', dtype='uint32', {small}, {more})"
        again = "wr.write('out', iter(RECORDS), to='flat-tokens', append=True)"
        yield Job("wr.write, append", f"append to {name}", again, older=first, reads="out", once=True)
    for to in ("forager", "tokens", "flat-tokens", "megatron"):
        call = f"wr.tokenize((text for text in TEXTS), 'out', tokenizer='bytes', to='{to}', num_threads=1)"
        yield Job("wr.tokenize", f"wr.tokenize to {to}", call, reads="out")
