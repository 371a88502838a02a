"""Views mixed into one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow import _native
from windrow._options import checked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal, SupportsIndex

    from windrow._native import Mix, View

__all__ = ["mix"]


@checked
def mix(
    parts: Mapping[str, tuple[View | Mix, float]],
    *,
    stop: Literal["first", "all", "never"] = "first",
    phases: Sequence[tuple[SupportsIndex, Mapping[str, float]]] | None = None,
    steps_of: SupportsIndex = 1,
    max_epochs: Mapping[str, SupportsIndex] | None = None,
    part_ids: bool = False,
    batches: Literal["part"] | None = None,
    rows: SupportsIndex | None = None,
) -> Mix:
    """Mixes views: after any number of samples of an epoch each has given its share of them, to within one sample.
    With ``batches="part"`` each batch is of one part: after any number of batches each has had its share of them, to within one batch.

    Args:
        parts: name → (view, weight). Weights are numbers above 0; their ratio counts. A ``Mix`` can be a part too: one pass of it is
            one of its epochs, and its views are called ``"name/theirs"``. All must give the same tensors; in batches of one part
            each, of any length.
        stop: when an epoch ends: ``"first"`` before a sample would come twice, ``"all"`` once every sample has come,
            ``"never"``. Batches of one part stay whole: ``"first"`` ends before the batch in which a sample would come twice.
        phases: ``[(start, {name: weight}), …]``: other weights from a sample of the run on, counted over all ranks; a part that is
            not named rests. Until the first one begins, the weights of ``parts`` hold. A part continues where it was. Needs
            ``stop="never"``; weights may be 0 then. Shares are exact from the start of each phase.
        steps_of: phases start at steps of this number of samples, the global batch size, rather than at samples.
        max_epochs: name → passes after which a part's share goes to the others, in proportion. Once every part has had its passes
            the run ends. Needs ``stop="never"``. Of batches of one part, the last is left out where the passes do not fill it.
        part_ids: batches have ``part``, int32 ``[B]``: the number of each row's view, whose name ``loader.parts`` has.
        batches: ``"part"`` makes each batch of one part, so that parts may have other lengths. The loader's batch size over all
            ranks is part of the plan then, and phases start at multiples of it. A part is gone through pass after pass: a batch may
            hold the end of one and the beginning of the next. A ``Mix`` among the parts is one part, or with ``batches="part"``
            itself, each of its parts is.
        rows: that batch size, where batches are of one part. ``mix[i]`` and ``len(mix)`` need it, for row ``i % rows`` of batch
            ``i // rows``; a loader of another one is refused.

    Raises:
        ConfigError: no part, an empty view, a weight that is not a number above 0, a name that no part has, phases that do not
            follow one another or begin after the run has ended, phases or ``max_epochs`` without ``stop="never"``, ``part_ids`` of
            views of rows; ``rows`` without ``batches="part"``, ``batches="part"`` of a mixture inside one without it.
        MismatchError: the views give different tensors, as pack and bins do: the message names them. In batches of one part
            each, tensors of other names or dtypes.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    >>> np.arange(10, dtype=np.uint16).tofile(path)
    >>> ds = wr.open(path, dtype="uint16")
    >>> mixed = wr.mix({"a": (ds.pack(2), 0.75), "b": (ds.pack(2), 0.25)}, stop="all")
    >>> len(mixed), len(wr.Loader(mixed, batch_size=4))
    (16, 4)
    >>> parts = {"a": (ds.pack(2), 1), "b": (ds.pack(2), 0)}
    >>> mixed = wr.mix(parts, stop="never", phases=[(8, {"a": 1, "b": 1})], part_ids=True)
    >>> loader = wr.Loader(mixed, batch_size=8)
    >>> [int(next(loader)["part"].sum()) for step in range(3)], loader.parts
    ([0, 4, 4], ['a', 'b'])
    >>> mixed = wr.mix({"short": (ds.pack(1), 0.75), "long": (ds.pack(4), 0.25)}, stop="never", batches="part")
    >>> sorted({batch["input_ids"].shape for batch, _ in zip(wr.Loader(mixed, batch_size=2), range(4))})
    [(2, 1), (2, 4)]
    """
    given = locals()
    return _native._mix(given.pop("parts"), given)
