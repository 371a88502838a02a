"""What Accelerate holds of a stream: it reads one batch ahead of those that it gives, to know which is the last."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from windrow import Loader
from windrow.errors import ConfigError
from windrow.failure import failure

__all__ = ["Ahead", "check", "n_processes", "reads"]


def n_processes() -> int:
    """Processes of Accelerate; 1 where it is not in use."""
    state = sys.modules.get("accelerate.state")
    return state.PartialState().num_processes if state is not None and state.is_initialized() else 1


def reads(stream: Any) -> Any:
    """The loader of Accelerate's in whose ``for`` this stream is read, or None."""
    state = sys.modules.get("accelerate.state")
    if state is None:
        return None
    host = state.GradientState().active_dataloader
    found = getattr(host, "dataset", None)
    # Where each process takes its part of every batch, a data set of Accelerate's is between.
    return host if found is stream or getattr(found, "dataset", None) is stream else None


def check(host: Any, is_batched: bool) -> None:
    """Raises ``ConfigError`` where this loader saves states that its processes could not go on from, or takes parts of batches of
    which it does not know the size.
    """
    if is_batched and n_processes() > 1 and getattr(getattr(host, "dataset", None), "batch_size", 1) is None:
        raise failure(
            ConfigError,
            "a Stream of batches, of which each process would take its part: Accelerate shares out samples",
            hint="DataLoader(Stream(view, rank=0, world_size=1), batch_size=…), or DataLoaderConfiguration(dispatch_batches=True)",
        )
    if getattr(host, "use_stateful_dataloader", False) and n_processes() > 1:
        # Each process writes its state to one file, also those that read nothing; and batches that are read ahead count in it.
        raise failure(
            ConfigError,
            "use_stateful_dataloader=True with several processes: a run would get other batches when it resumes from what Accelerate saves",
            hint="leave it out, and say accelerator.register_for_checkpointing(stream)",
        )


class Ahead:
    """One ``for`` of a prepared loader: where its stream was before the batches that are read and not given yet."""

    def __init__(self, host: Any) -> None:
        n = n_processes()
        self._host, self._for = weakref.ref(host), host.iteration
        self._is_short_dropped = bool(host._drop_last)
        # The data set of Accelerate's between them knows the rows of all processes' batches.
        teller = host.dataset if hasattr(host.dataset, "process_index") else host
        is_split = getattr(teller, "split_batches", n == 1)
        self._n_at_once = (teller.batch_size or 1) * (1 if is_split else n)
        self._n_read = 0
        self._is_given = False
        self.before: dict[str, Any] = {}

    def reading(self, loader: Loader) -> None:
        """Told before each item is asked for."""
        if self._n_read % self._n_at_once == 0:
            self.before = dict(loader.state_dict())
        self._n_read += 1

    def ended(self) -> None:
        """Told when there was none."""
        # Whoever asks beyond full batches was given all. A short one was read to its end, and may be held still.
        self._is_given |= self._is_short_dropped or (self._n_read - 1) % self._n_at_once == 0

    def is_given(self) -> bool:
        """Whether the host gave all that it read. It no longer knows once its next ``for`` has begun, so ask before too."""
        host = self._host()
        self._is_given |= host is None or host.iteration != self._for or host.end_of_dataloader
        return self._is_given
