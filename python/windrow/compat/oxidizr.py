"""Raw u32 token streams cut by a cursor: oxidizr's loader, batch for batch.

The cursor arithmetic is the original's: a batch is one block of `batch_size * (seq_len + 1)` tokens, the cursor then
moves on by `batch_size * seq_len`, and starts again at the beginning of the shard when a whole block does not fit any
more. `windrow.open(path).pack(seq_len)` is the native view that uses every token as a target exactly once.
"""

from __future__ import annotations

import errno
import os
import queue
import secrets
import stat
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import windrow

from ..failure import failure

Tokens = npt.NDArray[np.uint32]
# A batch or the error in its place, and where the cursor was then.
Made = tuple[tuple[Tokens, Tokens] | Exception, int]

__all__ = ["LitDataLoader", "PrefetchDataLoader", "create_dummy_data"]


def create_dummy_data(vocab_size: int, num_tokens: int) -> Tokens:
    """Random tokens, uniform in `[0, vocab_size)`: uint32 `[num_tokens]`, different at each call.

    `windrow.create_dummy_data(vocab_size, num_tokens, seed=…)` gives the same ones again.

    Raises `windrow.ConfigError` when `vocab_size` is 0 or beyond 32 bits.

    >>> create_dummy_data(100, 5).shape
    (5,)
    """
    tokens: Tokens = windrow.create_dummy_data(vocab_size, num_tokens, seed=secrets.randbits(63))
    return tokens


class Count(int):
    """A number of tokens; also callable, because the original's `dataset_size()` and `shard_size()` are methods."""

    def __call__(self) -> int:
        return int(self)


class LitDataLoader:
    """Batches of next-token pairs from a token stream, for ever.

    `tokens`: integers in 0..2**32, `[N]`. A batch is `(inputs, targets)`, both uint32 `[batch_size, seq_len]`,
    `targets` one token on.

    Raises `windrow.ConfigError` for a batch size or length below 1 and for tokens that are not 32-bit ids. Too few
    tokens for one batch (of the shard, where there is one) is an error at `next_batch`.

    >>> loader = LitDataLoader(range(10), batch_size=2, seq_len=4)
    >>> inputs, targets = loader.next_batch()
    >>> inputs.tolist(), targets.tolist()
    ([[0, 1, 2, 3], [5, 6, 7, 8]], [[1, 2, 3, 4], [6, 7, 8, 9]])
    """

    def __init__(self, tokens: Sequence[int] | npt.NDArray[Any], batch_size: int, seq_len: int) -> None:
        if batch_size < 1 or seq_len < 1:
            raise failure(
                windrow.ConfigError,
                f"batch_size is {batch_size} and seq_len {seq_len}; both must be at least 1",
            )
        self._batch_size = batch_size
        self._seq_len = seq_len
        self._path: str | None = None
        self._read(_as_tokens(tokens))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], batch_size: int, seq_len: int) -> LitDataLoader:
        """Over a headerless file of little-endian u32, of which each batch reads its own part.

        Raises `windrow.NotFoundError` when it is not there and `windrow.CorruptError` when its size is not a multiple
        of 4; `windrow.MismatchError` when its manifest says another dtype, `windrow.StaleError` when that says another
        size, and `windrow.UnsupportedError` for a compressed file and one of another program, such as llm.c's with its
        header. A file that becomes shorter later is a `windrow.StaleError` at `next_batch`.
        """
        loader = cls((), batch_size, seq_len)
        loader._path = os.fspath(path)
        tokens = _TokenFile(loader._path)
        # There is nothing to misread in an empty file, which the original opens.
        if len(tokens) > 0:
            _refuse_others(loader._path)
        loader._read(tokens)
        return loader

    def _read(self, tokens: npt.NDArray[Any] | _TokenFile) -> None:
        self._tokens = tokens
        self._start, self._end = 0, len(tokens)
        self._cursor = self._start

    def with_sharding(self, rank: int, world_size: int) -> LitDataLoader:
        """Restricts this loader to part `rank` of `world_size` equal parts (the last takes the remainder), and returns
        it.
        """
        if not 0 <= rank < world_size:
            raise failure(windrow.ConfigError, f"rank is {rank}, expected 0..{world_size} (world_size)")
        size = len(self._tokens) // world_size
        self._start = rank * size
        self._end = len(self._tokens) if rank == world_size - 1 else self._start + size
        self._cursor = self._start
        return self

    @property
    def dataset_size(self) -> Count:
        """Tokens in the whole stream; `dataset_size` and `dataset_size()` are the same number."""
        return Count(len(self._tokens))

    @property
    def shard_size(self) -> Count:
        """Tokens in this rank's part; `shard_size` and `shard_size()` are the same number."""
        return Count(self._end - self._start)

    def next_batch(self) -> tuple[Tokens, Tokens]:
        """The next `(inputs, targets)`, uint32 `[batch_size, seq_len]`; begins again when less than a batch is left.

        Raises `windrow.CorruptError` when the shard is too small for a single batch.
        """
        rows, row = self._batch_size, self._seq_len + 1
        needed = rows * row
        if self.shard_size < needed:
            raise failure(
                windrow.CorruptError,
                f"the shard holds {self.shard_size} tokens ({4 * self.shard_size} bytes), "
                f"one batch needs {needed} = {rows} x ({self._seq_len} + 1)",
                path=self._path,
                byte=4 * self._start,
                hint="a smaller batch_size, seq_len or world_size fits",
            )
        if self._cursor + needed > self._end:
            self._cursor = self._start
        block = self._tokens[self._cursor : self._cursor + needed].reshape(rows, row)
        self._cursor += rows * self._seq_len
        return block[:, :-1].astype(np.uint32, order="C"), block[:, 1:].astype(np.uint32, order="C")


class PrefetchDataLoader:
    """Batches made ahead by one thread: at most `n` wait.

    Takes the loader over: use only one of the two. Dropping it, leaving the `with` block or `shutdown()` ends the
    thread at once. Works in a forked child, which continues after the last batch that was handed out.

    >>> loader = PrefetchDataLoader(LitDataLoader(range(100), 2, 4), 2)
    >>> loader.next_batch()[0].tolist()
    [[0, 1, 2, 3], [5, 6, 7, 8]]
    """

    def __init__(self, loader: LitDataLoader, n: int) -> None:
        if n < 0:
            raise failure(windrow.ConfigError, f"n is {n}, expected 0 or more")
        self._loader = loader
        self._capacity = max(1, n)
        self._cursor = loader._cursor
        self._closed = False
        self._start_worker()

    def next_batch(self) -> tuple[Tokens, Tokens]:
        """The next `(inputs, targets)`, as `LitDataLoader.next_batch` gives them, with its errors."""
        if self._closed:
            raise failure(windrow.ConfigError, "the loader was shut down")
        if self._process != os.getpid():  # threads do not survive a fork
            self._loader._cursor = self._cursor
            self._start_worker()
        batch, cursor = self._made.get()
        if isinstance(batch, Exception):
            self._made.put((batch, cursor))  # every later call gets it too
            raise batch
        self._cursor = cursor
        return batch

    @property
    def dataset_size(self) -> Count:
        """Tokens in the whole stream."""
        return self._loader.dataset_size

    @property
    def shard_size(self) -> Count:
        """Tokens in this rank's part."""
        return self._loader.shard_size

    def shutdown(self) -> None:
        """Ends the thread; a second call does nothing."""
        self._closed = True
        self._stop.set()

    def __enter__(self) -> PrefetchDataLoader:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def __del__(self) -> None:
        if hasattr(self, "_stop"):
            self._stop.set()

    def _start_worker(self) -> None:
        self._process = os.getpid()
        self._stop = threading.Event()
        self._made: queue.Queue[Made] = queue.Queue(self._capacity)
        # The thread knows the queue and the flag, never `self`: otherwise it would keep alive what it waits for.
        threading.Thread(
            target=_make_batches, args=(self._loader, self._made, self._stop), name="windrow-prefetch", daemon=True
        ).start()


def _make_batches(loader: LitDataLoader, made: queue.Queue[Made], stop: threading.Event) -> None:
    batch: tuple[Tokens, Tokens] | Exception
    while not stop.is_set():
        try:
            batch = loader.next_batch()
        except Exception as error:
            batch = error
        while not stop.is_set():
            try:
                made.put((batch, loader._cursor), timeout=0.05)
                break
            except queue.Full:
                continue
        if isinstance(batch, Exception):
            return


def _as_tokens(tokens: Sequence[int] | npt.NDArray[Any]) -> npt.NDArray[Any]:
    array = np.asarray(tokens)
    if array.size == 0:
        return np.zeros(0, np.uint32)
    if array.ndim != 1 or array.dtype.kind not in "ui":
        raise failure(
            windrow.ConfigError, f"found tokens of shape {array.shape} and dtype {array.dtype}, expected integers [N]"
        )
    if array.dtype.kind == "i" or array.dtype.itemsize > 4:
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= 1 << 32:
            raise failure(windrow.ConfigError, f"found ids from {low} to {high}, expected 0..{(1 << 32) - 1}")
    return array


def _refuse_others(path: str) -> None:
    """An error where the file's first bytes, its name or its manifest say that it is not raw u32."""
    hint = "LitDataLoader(numpy.memmap(path, '<u4'), …) takes all of its bytes for tokens"
    if path.endswith((".gz", ".zst")):
        raise failure(
            windrow.UnsupportedError,
            "expected raw u32 token IDs, found the name of a compressed file",
            path=path,
            hint=f"windrow.open(path, dtype='uint32') expands it; {hint}",
        )
    try:
        windrow.open(path, format="tokens", dtype="uint32")
    except (windrow.CorruptError, windrow.MismatchError, windrow.StaleError, windrow.UnsupportedError) as error:
        # Its own hint, which speaks of the options of windrow.open, is in the cause.
        what = str(error).split("\n", 1)[0]
        raise failure(type(error), what, path=path, hint=f"windrow.open(path) reads it, or says how; {hint}") from error


class _TokenFile:
    """The tokens of a file, read by position: forked processes share no place in it. `size` is what it has to have."""

    def __init__(self, path: str, size: int | None = None) -> None:
        self._path = path
        try:
            # Without waiting: a FIFO must not hang.
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
            weakref.finalize(self, os.close, self._descriptor)
            status = os.fstat(self._descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, "it is a folder")
        except FileNotFoundError as error:
            raise failure(windrow.NotFoundError, "there is no such token file", path=path) from error
        except OSError as error:
            raise failure(windrow.IoError, f"cannot open the token file: {error.strerror}", path=path) from error
        if not stat.S_ISREG(status.st_mode):
            raise failure(windrow.CorruptError, "found a pipe or device, expected a file", path=path)
        self._size = status.st_size
        if self._size % 4:
            raise failure(
                windrow.CorruptError,
                f"found {self._size} bytes, expected a multiple of 4: tokens are u32",
                path=path,
                byte=self._size - self._size % 4,
                hint="a token is missing a part, or the file is not a raw u32 stream",
            )
        if size is not None and size != self._size:
            raise failure(
                windrow.StaleError, f"found {self._size} bytes where {size} were when the loader was pickled", path=path
            )

    def __len__(self) -> int:
        return self._size // 4

    def __getitem__(self, part: slice) -> npt.NDArray[Any]:
        tokens = np.empty(part.stop - part.start, "<u4")
        room = memoryview(tokens.view(np.uint8))
        at = 4 * part.start
        while room:
            try:
                found = os.preadv(self._descriptor, [room], at)
            except OSError as error:
                raise failure(
                    windrow.IoError, f"cannot read the tokens: {error.strerror}", path=self._path, byte=at
                ) from error
            if found == 0:
                raise failure(
                    windrow.StaleError,
                    "the file became shorter while it was read",
                    path=self._path,
                    byte=at,
                    hint="put a file in another's place by rename, and open the data again",
                )
            room, at = room[found:], at + found
        return tokens

    def __reduce__(self) -> tuple[type[_TokenFile], tuple[str, int]]:
        return _TokenFile, (self._path, self._size)
