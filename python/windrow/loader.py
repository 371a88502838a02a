"""Batches of a view, and how fast a loader is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow import _native
from windrow._options import checked
from windrow.failure import failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Literal, NoReturn, SupportsIndex

    import numpy as np
    import numpy.typing as npt
    from numpy.random import Generator

    from windrow._native import Blocks, Loader, Mix, View, _DType, _Framework

__all__ = ["bench"]


def _new(
    cls: type[Loader],
    view: View | Mix,
    batch_size: SupportsIndex | None = None,
    *,
    global_batch_size: SupportsIndex | None = None,
    max_tokens: SupportsIndex | None = None,
    multiple: SupportsIndex = 1,
    pool: SupportsIndex | None = None,
    lengths: str | npt.ArrayLike | None = None,
    shuffle: bool | Blocks | Mapping[str, Blocks] = True,
    seed: SupportsIndex = 0,
    drop_last: bool = True,
    rank: SupportsIndex | None = None,
    world_size: SupportsIndex | None = None,
    epochs: SupportsIndex | None = None,
    group: Any = None,
    context: tuple[SupportsIndex, SupportsIndex] | Any = None,
    whole: bool = False,
    last: Literal["repeat"] | None = None,
    skip: Sequence[tuple[SupportsIndex, SupportsIndex]] | None = None,
    exclude: Iterable[SupportsIndex] | Mapping[str, Iterable[SupportsIndex]] | None = None,
    num_threads: SupportsIndex | None = None,
    prefetch: SupportsIndex = 4,
    framework: _Framework = "numpy",
    pin_memory: bool = False,
    dtype: _DType | None = None,
    collate: Callable[[Any], Any] | None = None,
    map: Callable[[Any, Generator], Any] | None = None,
    map_name: str | None = None,
    names: Mapping[str, str | None] | None = None,
    dtypes: Mapping[str, _DType] | None = None,
    balance: Literal["tokens", "attention"] | SupportsIndex | Callable[[npt.NDArray[np.int64]], SupportsIndex] | None = None,
    accumulate: SupportsIndex = 1,
) -> Loader:
    """Batches of a view or mixture: dicts of name → array ``[B, …]``, contiguous, writable, over the memory that they were
    assembled in.

    ``for batch in loader`` gives what is left of the current epoch, and the next ``for`` the next epoch; where nothing is
    left, it begins the next one. ``next(loader)`` and ``loader.stream()`` continue over epochs.

    The batch at step k depends on data, view, seed and batch size alone: not on threads, prefetch, or the number of ranks.

    Args:
        view: a ``View`` or ``Mix``.
        batch_size: rows for each rank. Or else
        global_batch_size: rows for all ranks together. Or else
        max_tokens: rows of a batch for all ranks together, times the longest of them, at most: as many rows as fit, of about the same
            length. For views whose batches are as long as their longest row: ``records(pad="longest")``, ``crop``, which is padded
            so then, ``codes``, and ``rows`` with ``lengths``.
        multiple: with ``max_tokens``: rows of a batch are a multiple of this, which the number of ranks must divide.
        pool: with ``max_tokens``: how many rows of the order are sorted by length together, a multiple of ``multiple``. None takes
            those of about 50 batches.
        lengths: with ``max_tokens`` or ``balance``, of ``rows``: how long each record is: the name of a column of whole numbers, or an array of one for
            each sample.
        shuffle: True: random order, another one each epoch; False: the order of the records; ``wr.Blocks()``: random too, and
            neighbours are read together, for data in a slow store. Of a mix also a dict: name → ``wr.Blocks()``.
        seed: seed of the shuffle order and the random crops.
        drop_last: leave out the last batch of an epoch when it is not full. Kept, it must have a row for each rank.
        rank, world_size: this rank among all. None takes the first that is present when the first batch is asked for: group,
            ``torch.distributed``, ``jax.distributed``, ``RANK`` and ``WORLD_SIZE``, ``SLURM_PROCID`` of ``SLURM_STEP_NUM_TASKS``;
            else 0 of 1. ``stats()["rank"]`` says which.
        epochs: the number of epochs in the run; None has no bound.
        group: a ``ProcessGroup``, or one dimension of a ``DeviceMesh`` as ``mesh["dp"]``: its ranks share each batch, and
            processes of one rank in it read the same.
        context: ``(rank, size)`` of a context group, a ``ProcessGroup``, or one dimension of a ``DeviceMesh`` as ``mesh["cp"]``: its ranks read
            the same rows, and each gets 1/size of every tensor ``[B, T]``, chunks ``rank`` and ``2 * size - 1 - rank`` of ``2 * size`` equal ones: of
            the row, or of each document of ``pack(documents=True, multiple=)`` and ``bins(multiple=)``, whose ``multiple`` is one of ``2 * size``.
            ``cu_seqlens`` and ``max_seqlen`` are of the whole row. No part of the plan: a run continues with another size.
        whole: every ``for`` begins its epoch at the first batch, as validation wants; else it continues where the last one stopped.
        last: ``"repeat"`` fills an epoch's last batch with the epoch's first samples; not with ``drop_last=False``.
        skip: ``[(from, to), …]``: positions of the run to leave out, counted over its epochs and over all ranks, ``to`` not among
            them. The batch after a skip begins at ``to``; what comes before it ends as an epoch does. A state at or before ``from``
            of the same run without it continues.
        exclude: numbers of records to leave out, of a mix a dict: name → numbers. The others keep their numbers in ``trace``,
            ``find`` and ``coverage``. It is another plan: a state of the run with them does not continue.
        num_threads: threads that assemble batches ahead, at most 1024; 0 assembles each when asked; None takes the cores, at most 8.
        prefetch: batches kept ready.
        framework: ``"numpy"``, ``"torch"`` or ``"jax"``.
        pin_memory: the tensors of a batch lie in page-locked memory, so that ``tensor.to("cuda", non_blocking=True)`` does not
            wait; before ``collate``. ``wr.torch.OnDevice`` does both.
        dtype: dtype of the numbers; None gives int64 for whole numbers, float32 for floats. (jax takes 64-bit numbers without
            a copy only in its 64-bit mode.)
        collate: called with each batch, a dict or of a view of rows a list of records; its result is the batch. With ``map`` it is called with
            the list of results.
        map: a function ``f(row, rng)``, called for each sample in the threads that assemble batches, in no promised order. ``row`` is
            what ``view[i]`` gives, ``rng`` the generator of the sample, as ``wr.sample_rng`` gives it, valid during the call. Dicts with
            the same keys become a dict: numbers and arrays of one shape and dtype are stacked, anything else is a list. Numbers
            and arrays by themselves are stacked; other results are a list.
        map_name: a name for ``map`` in the plan: a state of a run with another name is refused. The function itself decides no plan.
        names: dict of field → what it is called in a batch; None leaves it out, and fields that are not in it keep their names. Three may
            be in it that are made of others, int32: ``loss_masks``, 1 where ``labels`` are not the label that a loss ignores, of a
            view that has none; ``segments``, ``segment_ids`` from 1 on, 0 in padding; ``seq_lens``, the differences of
            ``cu_seqlens``, zeros behind. No part of the plan.
        dtypes: dict of field, as the view calls it or as one of the three, → its dtype in a batch, also where ``dtype`` is given. No part of
            the plan.
        balance: deals the rows of a global batch to ranks so that all cost about the same, the same number to each; together they are
            the rows of one rank. By the lengths L of the documents in a row, with their EOS tokens: ``"tokens"``: their sum; a whole
            number a: the sum of a·L + L², as attention within documents costs where a is 6 times the hidden size;
            ``"attention"``: a = 24576; a function of the lengths, an int64 array, called once a row, in threads, that returns a whole
            number from 0 on. Of views whose rows differ in cost: ``pack(documents=True)``, ``bins``, ``segments``, ``records``, ``crop``,
            ``codes``, ``rows`` with ``lengths``, and mixtures of them. It decides no plan; all ranks must pass the same.
        accumulate: batches of a rank that make an optimiser's step. The global batch is then that step: ``global_batch_size`` counts the
            rows of all, ``batch_size`` those of a rank in one of them. With ``balance`` the dearest rows of all ranks come together.
            ``len`` counts batches; ``trace`` and ``find`` count steps, and a state within a step is that of its beginning.

    Raises:
        ConfigError: options that would never give a batch; ``context`` of rows of several lengths, of a length that ``2 * size`` does not
            divide, or of documents whose ``multiple`` it does not divide; ``context`` with ``map``.
        ConfigError: ``names`` or ``dtypes`` of a field that the view does not have, of ``rows``, or with ``map`` or ``collate``; two fields
            of one name; whole numbers of fractions.
        CorruptError: at a batch: a number that the field's dtype does not hold; the message names field, row and number.
        ConfigError: ``balance`` of a view whose rows cost the same, or of data that is one
            record; ranks that do not divide the rows of a balanced batch, also at the first batch.
        ConfigError: a ``for`` after the last of ``epochs``; at the first batch: initialised groups, or ``torch.distributed``
            and the environment, that name different ranks; a launcher that started more processes; a model that Megatron or a
            ``DeviceMesh`` divides over ranks, worker processes, or a host that shares samples out, and neither ``group`` nor ``rank``.
        MismatchError: ``load_state_dict`` of another plan; the message names the difference.
        MismatchError: at a batch: results of ``map`` with other keys, or numbers of another shape or dtype, in one batch.
        Any exception of ``map`` arrives as it is when its batch is asked for, with a note and ``windrow``, a dict of step, row, sample,
            record and file. The next call tries the same batch again.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    >>> np.arange(100, dtype=np.uint32).tofile(path)
    >>> view = wr.open(path, format="tokens", dtype="uint32").pack(8)
    >>> loader = wr.Loader(view, batch_size=4, seed=7)
    >>> batch = next(loader)
    >>> batch["input_ids"].shape, batch["labels"].dtype
    ((4, 8), dtype('int64'))
    >>> state = loader.state_dict()
    >>> again = wr.Loader(view, batch_size=4, seed=7)
    >>> again.load_state_dict(state)
    >>> bool((next(again)["labels"] == next(loader)["labels"]).all())
    True
    >>> def crop(row, rng):
    ...     start = rng.integers(5)
    ...     return row["input_ids"][start : start + 4]
    >>> next(wr.Loader(view, batch_size=4, seed=7, map=crop)).shape
    (4, 4)
    >>> names = {"input_ids": "tokens", "loss_masks": "loss_mask"}
    >>> batch = next(wr.Loader(view, batch_size=4, names=names, dtypes={"loss_masks": "float32"}))
    >>> list(batch), batch["loss_mask"].dtype
    (['tokens', 'labels', 'loss_mask'], dtype('float32'))
    """
    given = locals()
    return _native._loader(given.pop("view"), given)


def _by_number(loader: Loader, number: Any, /) -> NoReturn:
    """What a ``DataLoader`` asks a map-style data set for, as transformers' ``Trainer`` makes one of its ``train_dataset``."""
    raise failure(
        TypeError,
        "a Loader gives batches in their order, not samples by number",
        hint="where a data set is wanted, as train_dataset= of Trainer, pass the view, or windrow.torch.Stream(view, seed=…)",
    )


_native.Loader.__getitem__ = _by_number  # type: ignore[method-assign]

# An unknown option is reported as one of the class.
_new.__name__ = "Loader"
_native.Loader.__new__ = staticmethod(checked(_new))  # type: ignore[method-assign]
_native.Loader.__doc__ = _new.__doc__


@checked
def bench(
    loader: Loader | View | Mix,
    *,
    seconds: float | None = None,
    num_threads: SupportsIndex | None = None,
    rate: float | None = None,
    nodes: SupportsIndex | None = None,
    epochs: SupportsIndex | None = None,
    network: SupportsIndex | str | None = None,
    get_rate: float | None = None,
    get_price: float | None = None,
    node_price: float | None = None,
) -> dict[str, Any]:
    """How fast a loader is on this machine, compared with memcpy; of data behind URLs also the store.

    A loader of the same options is measured, as one rank: this one stays where it is, and a ``collate=`` function is not called. Of data
    behind URLs latency and bandwidth of the store are measured, never through the cache, and say which order and cache to choose; with
    ``seconds`` the loader is measured as well.

    Args:
        loader: a ``Loader``; a view or a mixture is measured in shuffled batches of 32.
        seconds: how long the loader is measured; by default 3, and of URLs it is not.
        num_threads: threads that assemble batches; by default the loader's.
        rate: of URLs, samples a second that a node's model takes, 1000 by default.
        nodes: of URLs, nodes that train together, 1 by default.
        epochs: of URLs, epochs of the run, 1 by default.
        network: of URLs, bytes a second of a node's network card, 3 GB by default (25 Gbit/s); or a text such as ``"3GB"``.
        get_rate: of URLs, requests a second that the store takes for one folder, 5500 by default, as S3.
        get_price: of URLs, the price of a million GETs, 0.4 dollars by default, as S3.
        node_price: of URLs, the price of a node for an hour, 98 dollars by default: eight H100.

    Returns:
        A dict: view, samples (of an epoch), batch_size, per_second (a dict of seconds measured, batches, samples, positions, bytes,
        batch_bytes, threads) and memcpy_bytes_per_second. Of URLs also measured, known, run, limits, gap_bytes, requests_of_epoch, choice and
        type: what to type.

    Raises:
        ConfigError: a number that makes no sense; an option of URLs for data on this machine.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    >>> np.arange(100, dtype=np.uint32).tofile(path)
    >>> view = wr.open(path, format="tokens", dtype="uint32").pack(8)
    >>> found = wr.bench(view.loader(batch_size=4), seconds=0.01)
    >>> found["samples"], found["batch_size"], found["per_second"]["samples"] > 0
    (12, 4, True)
    """
    given = locals()
    measured = given.pop("loader")
    if not isinstance(measured, _native.Loader):
        measured = _native.Loader(measured, global_batch_size=32, rank=0, world_size=1)
    return _native._bench(measured, given)
