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
) -> Mix:
    """Mixes views: after any number of samples of an epoch each has given its share of them, to within one sample.

    Args:
        parts: name → (view, weight). Weights are numbers above 0; their ratio counts. A ``Mix`` can be a part too: one pass of it is
            one of its epochs, and its views are called ``"name/theirs"``. All must give the same tensors.
        stop: when an epoch ends: ``"first"`` before a sample would come twice, ``"all"`` once every sample has come,
            ``"never"``.
        phases: ``[(start, {name: weight}), …]``: other weights from a sample of the run on, counted over all ranks; a part that is
            not named rests. Until the first one begins, the weights of ``parts`` hold. A part continues where it was. Needs
            ``stop="never"``; weights may be 0 then. Shares are exact from the start of each phase.
        steps_of: phases start at steps of this number of samples, the global batch size, rather than at samples.
        max_epochs: name → passes after which a part's share goes to the others, in proportion. Once every part has had its passes
            the run ends. Needs ``stop="never"``.
        part_ids: batches have ``part``, int32 ``[B]``: the number of each row's view, whose name ``loader.parts`` has.

    Raises:
        ConfigError: no part, an empty view, a weight that is not a number above 0, a name that no part has, phases that do not
            follow one another or begin after the run has ended, phases or ``max_epochs`` without ``stop="never"``, ``part_ids`` of
            views of rows.
        MismatchError: the views give different tensors, as pack and bins do: the message names them.

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
    """
    given = locals()
    return _native._mix(given.pop("parts"), given)
