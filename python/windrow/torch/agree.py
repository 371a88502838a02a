"""Whether all ranks of a run read the same plan from the same place: asked once, when the user wants to know."""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol

import torch.distributed as dist

from windrow import ranks
from windrow.errors import ConfigError, MismatchError
from windrow.failure import failure

__all__ = ["check_ranks"]

# Ranks that an error names; of thousands the first ones say enough.
MOST_NAMED = 4


class HasState(Protocol):
    """A ``windrow.Loader`` or ``windrow.torch.Stream``."""

    def state_dict(self) -> dict[str, Any]:
        """Where it is."""
        ...


def check_ranks(loader: HasState, group: Any = None) -> None:
    """Checks that all ranks have the same plan, seed, position, ``balance`` and ``accumulate``, by one all-gather.

    Ranks exchange nothing while they read: each computes its rows from plan, seed and step. A rank that was given another
    seed, other data or another checkpoint reads rows that do not belong to the batch of the others, without any error. Call this
    once, on all ranks, before the first step and after ``load_state_dict``. At most 1 kB a rank is exchanged.

    Args:
        loader: a ``windrow.Loader`` or ``windrow.torch.Stream``.
        group: the ``ProcessGroup``, or one dimension of a ``DeviceMesh``, whose ranks are compared; None: all ranks.

    Raises:
        MismatchError: on all ranks, if any two states differ; the message names the ranks, what differs, and both values.
        ConfigError: ``torch.distributed`` is not initialised, or this process is not in the group.
        TypeError: ``group`` is not a group.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> import torch.distributed as dist
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    >>> np.arange(1000, dtype=np.uint16).tofile(path)
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # torchrun: without store, rank, world_size
    >>> loader = wr.Loader(wr.open(path, dtype="uint16").pack(8), global_batch_size=4, seed=1, framework="torch")
    >>> wr.torch.check_ranks(loader)
    >>> dist.destroy_process_group()
    """
    if not dist.is_available() or not dist.is_initialized():
        raise failure(
            ConfigError,
            "torch.distributed is not initialised: there are no ranks to compare",
            hint="call torch.distributed.init_process_group() first, or leave check_ranks() out in a run of one process",
        )
    if group is not None:
        ranks.check(group)
        # A mesh of one dimension has one group.
        group = group.get_group() if hasattr(group, "get_group") else group
    members = dist.get_process_group_ranks(group)
    states: list[dict[str, Any]] = [{}] * len(members)
    dist.all_gather_object(states, parts(loader.state_dict()) | dealing(loader), group=group)
    told = [line for name in names(states) if (line := difference(name, [s.get(name) for s in states], members))]
    if told:
        raise failure(
            MismatchError,
            f"{len(members)} ranks do not read the same: " + "; ".join(told),
            hint="give every rank the same data, view, shuffle, seed, balance and accumulate, and load the same state",
        )


def parts(state: dict[str, Any]) -> dict[str, Any]:
    """A state with its plan in parts: source, view, order, layout."""
    found: dict[str, Any] = {}
    for part in state["plan"].split(";"):
        name, _, text = part.partition("=")
        found[name] = text
    return found | {name: value for name, value in state.items() if name != "plan"}


def dealing(loader: Any) -> dict[str, Any]:
    """How a loader deals rows to ranks, which no state says."""
    loader = getattr(loader, "loader", loader)
    return {name: getattr(loader, name, None) for name in ("balance", "accumulate")}


def names(states: list[dict[str, Any]]) -> list[str]:
    """What the states hold, in their order."""
    return list(dict.fromkeys(name for state in states for name in state))


def difference(name: str, values: list[Any], members: list[int]) -> str | None:
    """Which ranks have another value than most, or None if all have one."""
    # Of values that are equally frequent, the first rank's is the usual one.
    usual = Counter(values).most_common(1)[0][0]
    others = [(rank, value) for rank, value in zip(members, values, strict=True) if value != usual]
    if not others:
        return None
    named = [f"rank {rank} has {name}={value}" for rank, value in others[:MOST_NAMED]]
    if len(others) > MOST_NAMED:
        named.append(f"{len(others) - MOST_NAMED:,} more ranks differ")
    whose = "the others have" if len(members) > 2 else f"rank {members[values.index(usual)]} has"
    return ", ".join(named) + f", {whose} {name}={usual}"
