"""Shared memory between a ``DataLoader``'s worker processes and the training process, and what happens when it runs out.

A worker hands its batches to a thread that pickles them. What fails there is printed and dropped, and the training process
waits for that batch for ever. So the memory of a batch is taken before, where an exception still reaches the loop; and what
must be taken later, for tensors that a custom ``collate_fn`` makes, fails where the batch is received.
"""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any, NoReturn

import torch
from torch.multiprocessing import reductions
from torch.utils.data import get_worker_info

from windrow.errors import OutOfMemoryError

__all__ = ["SharedMemoryError", "in_shared_memory"]

HINT = (
    "give /dev/shm more room (docker run --shm-size=8g), send smaller batches or fewer at a time (prefetch_factor=), "
    "or do without worker processes: num_workers=0, or windrow.Loader, whose threads need no shared memory"
)


class SharedMemoryError(OutOfMemoryError, RuntimeError):
    """A worker process could not get the shared memory in which it sends a batch: a RuntimeError, as torch's own."""


def in_shared_memory(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies of tensors that lie together in one block of shared memory, so that one file descriptor sends them all.

    Raises:
        SharedMemoryError: there is not so much.
    """
    starts = []
    size = 0
    for tensor in tensors.values():
        starts.append(size)
        # Each tensor begins on a cache line.
        size += -(-tensor.nbytes // 64) * 64
    try:
        # torch reserves its pages too: a page that cannot be had later would end the process.
        storage: Any = torch.UntypedStorage._new_shared(size)  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        raise SharedMemoryError(described(size, error), kind="memory", hint=HINT) from error
    block = torch.empty(0, dtype=torch.uint8).set_(storage)
    copies = {}
    for (name, tensor), start in zip(tensors.items(), starts, strict=True):
        place = block[start : start + tensor.nbytes].view(tensor.dtype).view(tensor.shape)
        copies[name] = place.copy_(tensor)
    return copies


def described(size: int, error: Exception) -> str:
    """The text of an error, for a batch of `size` bytes."""
    return f"no shared memory to send {size:,} bytes of a batch to the training process: {error}\n  hint: {HINT}"


def reduce_storage(storage: torch.UntypedStorage) -> Any:
    """torch's way of sending memory, but what fails in a worker is raised where the batch is received."""
    try:
        return reductions.reduce_storage(storage)  # type: ignore[no-untyped-call]
    except Exception as error:
        if get_worker_info() is None:
            raise
        return received_nothing, (described(storage.nbytes(), error),)


def received_nothing(message: str) -> NoReturn:
    """Takes the place of memory that could not be sent."""
    raise SharedMemoryError(message, kind="memory", hint=HINT)


ForkingPickler.register(torch.UntypedStorage, reduce_storage)
