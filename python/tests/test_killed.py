"""Killed at every change that is made to files: what was there is read, whole, or what is new is; a rerun completes it.

`kill_at.c` ends a process before the n-th change. Each case is run in a fork for n = 1, 2, 3, … until it ends by itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import windrow as wr

SOURCE = Path(__file__).with_name("kill_at.c")

# Run by a process that has the killer loaded. Cases: how to begin, what is killed, what a reader sees.
PROGRAM = '''
import ctypes, os, pathlib, shutil, signal, sys
import windrow as wr

killer = ctypes.CDLL(None)
killer.kill_at_made.restype = ctypes.c_long
case, folder = sys.argv[1], pathlib.Path(sys.argv[2])
out = folder / "corpus.zarr" / "train"
EARLIER = [[i + 1, i + 2, i + 3][: i % 4] for i in range(20)]
LATER = [[9, i] for i in range(11)]
SMALL = {"tokens_chunk_size": 8, "seq_starts_chunk_size": 4, "fsync": False}
KINDS = {
    "v2": {"zarr_format": 2}, "v3": {"zarr_format": 3}, "sharded": {"zarr_format": 3, "chunks_per_shard": 2},
}
TEXTS = ["one", "", "three and four", "five"] * 9
# Of records that every format holds; codes have channels.
ENDINGS = {
    "npy": ".npy", "npz": ".npz", "jsonl": ".jsonl", "tokens": ".bin",
    "tfrecord": ".tfrecord", "array_record": ".array_record", "bagz": ".bagz", "arrow": ".arrow", "parquet": ".parquet",
}
RECORDS = [[[i, 2], [3, i]] if case == "write codes" else [i, i + 1, 7] for i in range(12)]
if case.startswith("write"):
    out = folder / ("out" + ENDINGS.get(case.split()[1], ""))
is_pair = case in ("convert megatron", "write megatron")


def begin():
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if case.startswith("append"):
        wr.write(out, EARLIER, to="flat-tokens", **SMALL, **KINDS[case.split()[1]])
    if case.startswith("again"):
        tokenize(["other", "texts and more of them", ""] * 15)


def tokenize(texts):
    kind = case.split()
    lines = "".join('{"text": "%s"}\\n' % text for text in texts)
    # Left as it is where it is there: a run continues only with the very same input.
    if not (folder / "a.jsonl").exists() or (folder / "a.jsonl").read_text() != lines:
        (folder / "a.jsonl").write_text(lines)
    options = {**SMALL, **KINDS.get(kind[-1], {})} if kind[1] == "flat-tokens" else {"fsync": False}
    wr.tokenize(
        folder / "a.jsonl", out, tokenizer="bytes", to=kind[1], append_eos=True, num_threads=1, overwrite=kind[0] == "again", **options
    )


def change():
    kind = case.split()
    if kind[0] == "append":
        wr.write(out, LATER, to="flat-tokens", append=True, fsync=False)
    elif kind[0] == "write":
        dtype = "float32" if kind[1] in ("npy", "npz", "jsonl", "shards") else None
        wr.write(out, RECORDS, to=kind[1], fsync=False, dtype=dtype)
    elif kind[0] == "new":
        wr.write(out, LATER, to="flat-tokens", **SMALL, **KINDS[kind[1]])
    elif kind[0] in ("tokenize", "again"):
        tokenize(TEXTS)
    else:
        path = folder / "ids.bin"
        if not path.exists():
            wr.write(path, [[*map(ord, text), 0] for text in TEXTS], to="tokens", dtype="uint16", fsync=False)
        ds = wr.open(path, document_eos=0)
        killer.kill_at_arm(TIMES[0])
        wr.convert(ds, out, to=kind[1], fsync=False)


def seen():
    """The records, or None where nothing is to be seen."""
    name = out.with_suffix(".bin") if is_pair else out
    if not name.exists():
        if name.with_suffix(".idx").exists():
            # An index alone is seen to be half of a pair.
            try:
                raise AssertionError(wr.open(name.with_suffix(".idx")))
            except wr.NotFoundError:
                pass
        return None
    found = wr.open(name)
    records = [ids.tolist() for ids in found]
    assert not wr.verify(name)["problems"]
    return records


TIMES = [0]


def run(n):
    """The case in a process of its own, killed before its n-th change; how many it made, or None where it was killed."""
    back, forth = os.pipe()
    child = os.fork()
    if child == 0:
        TIMES[0] = n
        if not case.startswith("convert"):
            killer.kill_at_arm(n)
        change()
        made = killer.kill_at_made()
        killer.kill_at_arm(-1)
        os.write(forth, b"%d" % made)
        os._exit(0)
    os.close(forth)
    made = os.read(back, 100)
    os.close(back)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return None
    assert status == 0, status
    return int(made)


begin()
earlier = seen()
made = run(0)
later = seen()
assert later is not None and later != earlier
states = set()
for n in range(1, made + 1):
    begin()
    assert run(n) is None, f"change {n} of {made}"
    found = seen()
    assert found == earlier or found == later, (n, found)
    states.add(found == later)
    if found == later and case.startswith(("append", "new", "write")):
        continue
    try:
        run(0)
    except AssertionError:
        # Of a file, what says how it opens is there first.
        comes_last = is_pair or out.is_file()
        # What is there already, whole, may be refused instead of being said to be unchanged. The second file of a pair
        # comes with that run, as does the file whose manifest came first.
        assert found == later or comes_last, n
    assert seen() == later, n
    left = [name for name in os.listdir(out.parent) + os.listdir(folder) if name.startswith(".") and "tmp-" in name]
    assert not left, (n, left)
assert False in states, states
print(made)
'''

def written() -> list[str]:
    """The formats that are written, as the error of one that is not names them."""
    try:
        wr.write("out", [], to="nothing")
    except wr.ConfigError as error:
        assert error.hint is not None
        names = error.hint.removeprefix("formats that are written: ").split(", ")
        return [{"series-jsonl": "jsonl"}.get(name, name) for name in names]
    raise AssertionError("a format of no name was written")


CASES = [
    *(f"write {name}" for name in written()),
    "append v2",
    "append v3",
    "append sharded",
    "new v2",
    "new sharded",
    "tokenize flat-tokens v2",
    "tokenize flat-tokens sharded",
    "tokenize megatron",
    "tokenize shards",
    # In the place of another data set.
    "again flat-tokens v2",
    "again flat-tokens sharded",
    "again datatrove",
    "again shards",
    "convert forager",
    "convert megatron",
    "convert shards",
    "convert flat-tokens",
]


@pytest.fixture(scope="module")
def killer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("killer") / "kill_at.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    return library


@pytest.mark.parametrize("case", CASES)
def test_killed_at_every_change(tmp_path: Path, killer: Path, case: str) -> None:
    environment = os.environ | {"LD_PRELOAD": str(killer), "WINDROW_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", PROGRAM, case, str(tmp_path / "run")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"
    # As many as there are files at least.
    assert int(done.stdout) > 10
