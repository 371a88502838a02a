"""Batches on a device: the copy of the next one runs beside the work on this one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from windrow import Loader
from windrow.errors import ConfigError
from windrow.failure import failure

__all__ = ["OnDevice"]


class OnDevice:
    """The batches of a loader on a device. On CUDA each is copied ahead: through page-locked memory, on a stream of its own, while the
    batch before it is worked on.

    ``for batch in OnDevice(loader, "cuda")`` gives what is left of the current epoch, the next ``for`` the next epoch. The batch that is
    read ahead does not count in ``state_dict()``, and comes first in the next ``for`` after a ``break``. Its iterators share one place, as
    those of the loader do. One batch more than the loader's own are in memory, and two are on the device.

    Args:
        loader: a ``Loader`` with ``framework="torch"``. Lists and records are handed on as they are.
        device: as torch names it: ``"cuda"``, ``"cuda:1"``, ``"cpu"``.

    Raises:
        ConfigError: for a CUDA device where torch finds none, and for a loader of another framework.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    >>> np.arange(1000, dtype=np.uint16).tofile(path)
    >>> loader = wr.Loader(wr.open(path, dtype="uint16").pack(8), batch_size=4, framework="torch")
    >>> batches = wr.torch.OnDevice(loader, "cpu")
    >>> batch = next(iter(batches))
    >>> batch["labels"].device, batches.state_dict()["samples"]
    (device(type='cpu'), 4)
    """

    def __init__(self, loader: Loader, device: str | torch.device) -> None:
        self.loader, self.device = loader, torch.device(device)
        # Where the loader was after the batch that was given last, while another one is read ahead.
        self._given: dict[str, Any] | None = None
        # Grows when the place changes, or another iterator reads: what was read ahead before is not the next batch.
        self._generation = 0
        self._copies: _Copies | None = None
        if self.device.type == "cuda":
            if not torch.cuda.is_available():
                raise failure(
                    ConfigError,
                    f"torch finds no CUDA device for {str(self.device)!r}",
                    hint='on a machine without a GPU say "cpu"; else install a torch that is built for CUDA',
                )
            self._copies = _Copies(self.device)

    def __iter__(self) -> Iterator[Any]:
        return self._ahead(is_endless=False)

    def stream(self) -> Iterator[Any]:
        """Its batches over all epochs, as ``Loader.stream``."""
        return self._ahead(is_endless=True)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """Goes to the first batch of an epoch, as ``Loader.set_epoch``."""
        self._return_unread()
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where it is, as ``Loader.state_dict``; a loader of the same view and seed takes it too."""
        return dict(self.loader.state_dict() if self._given is None else self._given)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to where another one, or a loader of the same view and seed, was."""
        self.loader.load_state_dict(state)
        self._given = None
        self._generation += 1

    def _ahead(self, *, is_endless: bool) -> Iterator[Any]:
        generation = self._take_over()
        batches = self.loader.stream() if is_endless else iter(self.loader)
        current = self._begin(batches)
        while current is not None:
            given = dict(self.loader.state_dict())
            following, problem = None, None
            try:
                following = self._begin(batches)
            except Exception as error:
                # That of the batch after this one, which is given first.
                problem = error
            self._given = given
            yield current.finish()
            if generation != self._generation:
                generation = self._take_over()
                current = self._begin(batches)
            elif problem is not None:
                raise problem
            else:
                current = following
        self._given = None

    def _take_over(self) -> int:
        self._return_unread()
        # Until the first batch is given, an interruption gives back all that was read.
        self._given = dict(self.loader.state_dict())
        return self._generation

    def _begin(self, batches: Iterator[Any]) -> _Batch | None:
        for batch in batches:
            if not isinstance(batch, dict):
                return _Batch(batch)
            if any(isinstance(field, np.ndarray) for field in batch.values()):
                raise failure(
                    ConfigError,
                    "batches of numpy arrays cannot be on a device of torch",
                    hint='give the loader framework="torch"',
                )
            if self._copies is not None:
                return self._copies.begin(batch)
            return _Batch({name: _moved(field, self.device) for name, field in batch.items()})
        return None

    def _return_unread(self) -> None:
        given, self._given = self._given, None
        self._generation += 1
        if given is not None:
            self.loader.load_state_dict(given)


def _moved(field: Any, device: torch.device) -> Any:
    return field.to(device) if isinstance(field, torch.Tensor) else field


class _Batch:
    """A batch that is there."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def finish(self) -> Any:
        return self._batch


class _Copied(_Batch):
    """A batch whose copy may still run."""

    def __init__(self, batch: dict[str, Any], copied: torch.cuda.Event, device: torch.device) -> None:
        super().__init__(batch)
        self._copied, self._device = copied, device

    def finish(self) -> Any:
        stream = torch.cuda.current_stream(self._device)
        stream.wait_event(self._copied)
        for field in self._batch.values():
            if isinstance(field, torch.Tensor):
                # Its memory is not given to another tensor before this stream has done with it.
                field.record_stream(stream)
        return self._batch


class _Copies:
    """Copies to a CUDA device: by turns out of two sets of page-locked memory."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._side = torch.cuda.Stream(device)
        self._locked: tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]] = ({}, {})
        self._last: list[torch.cuda.Event | None] = [None, None]
        self._turn = 0

    def begin(self, batch: dict[str, Any]) -> _Copied:
        turn, self._turn = self._turn, 1 - self._turn
        last = self._last[turn]
        if last is not None:
            # The copy out of this memory, two batches ago.
            last.synchronize()
        copied = torch.cuda.Event()
        moved: dict[str, Any] = {}
        with torch.cuda.stream(self._side):
            for name, field in batch.items():
                if isinstance(field, torch.Tensor):
                    locked = field if field.is_pinned() else self._lock(turn, name, field)
                    moved[name] = locked.to(self._device, non_blocking=True)
                else:
                    moved[name] = field
            copied.record(self._side)
        self._last[turn] = copied
        return _Copied(moved, copied, self._device)

    def _lock(self, turn: int, name: str, field: torch.Tensor) -> torch.Tensor:
        locked = self._locked[turn].get(name)
        if locked is None or locked.shape != field.shape or locked.dtype != field.dtype:
            locked = torch.empty(field.shape, dtype=field.dtype, pin_memory=True)
            self._locked[turn][name] = locked
        return locked.copy_(field)
