"""What JAX's users need: batches that are spread over all devices of all processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import jax
import numpy as np

from windrow.errors import ConfigError
from windrow.failure import failure

__all__ = ["global_batches"]


class _Loader(Protocol):
    @property
    def plan(self) -> str: ...
    def stream(self) -> Iterator[dict[str, Any]]: ...


def global_batches(loader: _Loader, sharding: jax.sharding.Sharding) -> Iterator[dict[str, jax.Array]]:
    """Batches of a loader as global arrays, epoch after epoch: each process reads its own rows, no process exchanges any.

    Every array is ``[global batch size, …]`` and lies as ``sharding`` says: with ``NamedSharding(mesh, PartitionSpec("data"))`` its rows
    are spread over the devices of axis ``data``. Fields with fewer axes than the sharding names get the first ones. The loader
    finds its rank from ``jax.distributed``; its state counts the batches that were taken. In one process the same line
    spreads batches over the devices of that process.

    Args:
        loader: a ``windrow.Loader`` with ``framework="numpy"``, the default; int32 labels need ``dtype="int32"`` of the loader.
        sharding: of the batch; its first axis must divide the global batch size.

    Raises:
        ConfigError: a loader whose batches are no arrays; a 64-bit number that does not fit jax's 32-bit mode; with several processes,
            rows as long as the longest of a process's own.

    >>> import windrow as wr, numpy as np, tempfile, pathlib, jax
    >>> from jax.sharding import Mesh, NamedSharding, PartitionSpec
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    >>> np.arange(1000, dtype=np.uint16).tofile(path)
    >>> loader = wr.Loader(wr.open(path, dtype="uint16").pack(8), global_batch_size=4, shuffle=False, dtype="int32")
    >>> mesh = Mesh(np.array(jax.devices()), ("data",))
    >>> batch = next(wr.jax.global_batches(loader, NamedSharding(mesh, PartitionSpec("data"))))
    >>> batch["input_ids"].shape, loader.samples
    ((4, 8), 4)
    """
    processes = jax.process_count()
    if processes > 1:
        _check_lengths(loader.plan)
    for batch in loader.stream():
        if not isinstance(batch, dict) or any(isinstance(values, list) for values in batch.values()):
            raise failure(
                ConfigError,
                "batches of rows are no arrays, which is all that devices hold",
                hint="choose columns of numbers: open the data with column=, or stack rows and drop their lists with collate=",
            )
        for name, values in batch.items():
            _check_narrowed(name, values)
        yield {
            name: jax.make_array_from_process_local_data(
                _for(sharding, values.ndim), values, (values.shape[0] * processes, *values.shape[1:])
            )
            for name, values in batch.items()
        }


def _check_lengths(plan: str) -> None:
    # Each process looks at its own rows, so the same array would have another shape in each of them.
    layout = plan.rpartition(";layout=")[2]
    for mark, option, hint in (
        (",to=longest", 'pad="longest"', 'pad="length"'),
        (",buckets=", "buckets", "segments(length) without buckets="),
    ):
        if mark in layout:
            raise failure(
                ConfigError, f"with {option} the rows of a batch have another length in each process", hint=f"{hint}: one length for all"
            )


def _check_narrowed(name: str, values: Any) -> None:
    # Outside its 64-bit mode jax makes 32-bit numbers of 64-bit ones, and wraps those that do not fit.
    if isinstance(values, jax.Array):
        return
    values = np.asarray(values)
    dtype = jax.dtypes.canonicalize_dtype(values.dtype)
    if values.dtype.kind not in "iu" or dtype == values.dtype or values.size == 0:
        return
    limits = np.iinfo(dtype)
    if values.min() < limits.min or values.max() > limits.max:
        raise failure(
            ConfigError,
            f"a number of {name} does not fit {dtype}, which jax makes of {values.dtype} in its 32-bit mode",
            hint='jax.config.update("jax_enable_x64", True); views of token IDs also take dtype="uint32", for IDs below 2^32',
        )


def _for(sharding: jax.sharding.Sharding, axes: int) -> jax.sharding.Sharding:
    if isinstance(sharding, jax.sharding.NamedSharding) and len(sharding.spec) > axes:
        return jax.sharding.NamedSharding(sharding.mesh, jax.sharding.PartitionSpec(*sharding.spec[:axes]))
    return sharding
