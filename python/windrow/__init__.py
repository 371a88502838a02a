"""Training data from disk to the model: at the speed of memory, in true random order, resumable to the exact sample.

>>> import windrow as wr, numpy as np, tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
>>> wr.create_dummy_data(1000, 5000).tofile(path)
>>> loader = wr.open(path, format="tokens", dtype="uint32").pack(128).loader(batch_size=8, seed=7)
>>> batch = next(loader)
>>> {name: array.shape for name, array in batch.items()}
{'input_ids': (8, 128), 'labels': (8, 128)}
"""

from typing import TYPE_CHECKING, Any

from windrow._native import (
    Blocks,
    Codec,
    Dataset,
    Loader,
    Mix,
    Tokenizer,
    View,
    __version__,
    create_dummy_data,
    delay,
    diff,
    formats,
    read_audio,
    rebuild_metadata,
    temperature,
    undelay,
    write_audio,
)
from windrow.errors import (
    ConfigError,
    CorruptError,
    ExistsError,
    IoError,
    MismatchError,
    NotFoundError,
    OutOfMemoryError,
    OutOfRangeError,
    StaleError,
    UnrecognisedError,
    UnsupportedError,
    WindrowError,
)

# What calls look up: Python loses a Ctrl-C that comes in some places of an import.
from windrow import _epoch, dataset, ranks
from windrow.answers import coverage, extract, find, trace
from windrow.dataset import open
from windrow.drawing import sample_rng
from windrow.frames import from_frame
from windrow.keep import cache, manifest
from windrow.loader import bench
from windrow.prepare import convert, encode, index, tokenize, verify, write
from windrow.scaling import inverse
from windrow.view import mix

if TYPE_CHECKING:
    from windrow import compat, jax, prep, testing, torch

__all__ = [
    "Blocks",
    "Codec",
    "ConfigError",
    "CorruptError",
    "Dataset",
    "ExistsError",
    "IoError",
    "Loader",
    "MismatchError",
    "Mix",
    "NotFoundError",
    "OutOfMemoryError",
    "OutOfRangeError",
    "StaleError",
    "Tokenizer",
    "UnrecognisedError",
    "UnsupportedError",
    "View",
    "WindrowError",
    "__version__",
    "bench",
    "cache",
    "convert",
    "coverage",
    "create_dummy_data",
    "delay",
    "diff",
    "encode",
    "extract",
    "find",
    "formats",
    "from_frame",
    "index",
    "inverse",
    "manifest",
    "mix",
    "open",
    "read_audio",
    "rebuild_metadata",
    "sample_rng",
    "temperature",
    "tokenize",
    "trace",
    "undelay",
    "verify",
    "write",
    "write_audio",
]


def __getattr__(name: str) -> Any:
    # Imported when they are first used: most programs need neither torch nor many machines, nor the names of other packages.
    if name in ("compat", "jax", "prep", "testing", "torch"):
        import importlib

        return importlib.import_module(f"windrow.{name}")
    raise AttributeError(f"module 'windrow' has no attribute {name!r}")
