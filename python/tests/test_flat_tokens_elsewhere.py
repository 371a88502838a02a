"""What is written as flat-tokens is read equal by zarr-python 2, zarr-python 3 and tensorstore, in every layout.

`WINDROW_TOKENS` in the environment says how many tokens the corpus has; some hundred thousand if it does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import tensorstore
import zarr

import windrow as wr

N_TOKENS = int(os.environ.get("WINDROW_TOKENS", "300000"))
# A corpus that fits into one chunk would say nothing of borders.
LARGE = 1 << 22 if N_TOKENS > 1 << 23 else 1 << 17
LAYOUTS = {
    "v2 as seqax": {"zarr_format": 2, "tokens_chunk_size": LARGE},
    "v2 in small chunks": {"zarr_format": 2, "tokens_chunk_size": 1 << 16},
    "v3": {"zarr_format": 3, "tokens_chunk_size": LARGE},
    "v3 in shards": {"zarr_format": 3, "tokens_chunk_size": 1 << 14, "chunks_per_shard": LARGE >> 14},
}
# zarr-python 2 lies beside version 3, in a folder of its own (Makefile), and knows nothing of zarr v3.
ZARR2 = Path(sys.prefix) / "zarr2"
BY_ZARR2 = """
import sys
import numpy as np
import zarr
assert zarr.__version__.startswith("2."), zarr.__version__
group = zarr.open_group(sys.argv[1], mode="r")
for name in ("encoded_tokens", "seq_starts"):
    expected = np.load(sys.argv[2] + "/" + name + ".npy", mmap_mode="r")
    found = group["train"][name]
    assert found.shape == expected.shape and found.dtype == expected.dtype, (found, expected)
    assert np.array_equal(found[:], expected), name
assert int(group["train"].attrs["max_token_id"]) == int(sys.argv[3])
print(zarr.__version__)
"""


@dataclass
class Corpus:
    """Sequences of random length, and the arrays that they are in flat-tokens."""

    folder: Path
    tokens: npt.NDArray[np.uint32]
    starts: npt.NDArray[np.uint64]
    encoded: npt.NDArray[np.uint32]

    def sequences(self) -> Iterator[npt.NDArray[np.uint32]]:
        """Each sequence, in order."""
        for start, end in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            yield self.tokens[start:end]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    rng = np.random.default_rng(11)
    tokens = rng.integers(0, 50_257, N_TOKENS, dtype=np.uint32)
    tokens[N_TOKENS // 2] = 2**31 - 1
    # Some are empty.
    inner = np.sort(rng.integers(0, N_TOKENS + 1, N_TOKENS // 500))
    starts = np.concatenate([[0], inner, [N_TOKENS]]).astype(np.uint64)
    encoded = tokens * np.uint32(2)
    begins = np.unique(starts[starts < N_TOKENS])
    encoded[begins.astype(np.int64)] += np.uint32(1)
    folder = tmp_path_factory.mktemp("corpus")
    np.save(folder / "encoded_tokens.npy", encoded)
    np.save(folder / "seq_starts.npy", starts)
    return Corpus(folder, tokens, starts, encoded)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_reader_gives_the_same_arrays(tmp_path: Path, corpus: Corpus, layout: str) -> None:
    options = LAYOUTS[layout]
    root = tmp_path / "corpus.zarr"
    began = time.monotonic()
    report = wr.write(root / "train", corpus.sequences(), to="flat-tokens", fsync=False, **options)
    seconds = time.monotonic() - began
    assert (report["tokens"], report["records"]) == (N_TOKENS, len(corpus.starts) - 1)
    arrays = {"encoded_tokens": corpus.encoded, "seq_starts": corpus.starts}
    group = zarr.open_group(root, mode="r")
    assert group["train"].attrs["max_token_id"] == 2**31 - 1
    driver = "zarr" if options["zarr_format"] == 2 else "zarr3"
    for name, expected in arrays.items():
        by_zarr = group[f"train/{name}"]
        assert by_zarr.dtype == expected.dtype and by_zarr.shape == expected.shape
        assert np.array_equal(by_zarr[:], expected), f"zarr {zarr.__version__}: {name}"
        if driver == "zarr" and name == "seq_starts":
            # Starts are stored as differences there, as seqax stores them; tensorstore knows no filters.
            continue
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{root}/train/{name}/"}}
        assert np.array_equal(tensorstore.open(spec).result().read().result(), expected), f"tensorstore: {name}"
    readers = [f"zarr {zarr.__version__}", "tensorstore"]
    if options["zarr_format"] == 2:
        command = [sys.executable, "-c", BY_ZARR2, str(root), str(corpus.folder), str(2**31 - 1)]
        environment = os.environ | {"PYTHONPATH": str(ZARR2)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        readers.append(f"zarr {done.stdout.strip()}")
    ds = wr.open(root, split="train")
    assert ds.info()["values"] == N_TOKENS
    for i in (0, len(ds) // 2, len(ds) - 1):
        assert np.array_equal(ds[i], corpus.tokens[int(corpus.starts[i]) : int(corpus.starts[i + 1])])
    files = sum(1 for path in root.rglob("*") if path.is_file())
    print(f"{layout}: {N_TOKENS:,} tokens, {files} files, written in {seconds:.1f} s; equal in {', '.join(readers)}")
