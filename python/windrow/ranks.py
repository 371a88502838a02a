"""Which rank this process is, as an initialised group says: torch's, one of its subgroups, or JAX's.

Nothing is imported that the program has not imported itself: a group that nobody made needs no question.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

from windrow.errors import ConfigError
from windrow.failure import failure

__all__ = ["check", "initialised", "note"]

Found = tuple[int, int, str]

LOG = logging.getLogger("windrow.ranks")


def check(group: Any) -> None:
    """Refuses what is not one group of ranks.

    Raises:
        TypeError: neither a ``ProcessGroup`` nor a ``DeviceMesh``.
        ConfigError: a mesh of several dimensions; what ``new_group`` gives a process that is not in the group.
    """
    if _is_mesh(group):
        if group.ndim != 1:
            names = group.mesh_dim_names or tuple(range(group.ndim))
            shown = ", ".join(str(name) for name in names)
            raise failure(
                ConfigError,
                f"group is a mesh of {group.ndim} dimensions ({shown}), expected one of them",
                hint=f"group=mesh[{names[0]!r}], if that is the dimension over which the data is split",
            )
    elif _is_nobodys(group):
        raise failure(
            ConfigError,
            "group is what new_group() gives a process that is not a member",
            hint="give each process the group that it is a member of",
        )
    elif not _is_process_group(group):
        raise TypeError(
            f"group is a torch.distributed.ProcessGroup or one dimension of a DeviceMesh, not {type(group).__name__}"
        )


def initialised(group: Any) -> Found | None:
    """Rank, world size, and who says so; None where no group was initialised.

    Raises:
        ConfigError: this process is not in the group; two initialised groups, or ``torch.distributed`` and the environment,
            name different ranks.
    """
    if group is not None:
        return _of_group(group)
    found = [answer for answer in (_of_torch(), _of_jax()) if answer is not None]
    for one, other in zip(found, found[1:], strict=False):
        if one[:2] != other[:2]:
            raise _disagree(_said(one), _said(other))
    if found and found[0][2] == "torch.distributed":
        _check_environment(found[0])
    return found[0] if found else None


def note(rank: int, world_size: int, by: str) -> None:
    """Logs which rank a loader reads for, and who said so."""
    LOG.debug("reads as rank %d of %d, as %s says", rank, world_size, by)


def _of_group(group: Any) -> Found:
    if _is_mesh(group):
        return group.get_local_rank(), group.size(), "group"
    import torch.distributed as dist

    rank = dist.get_rank(group)
    if rank < 0:
        raise failure(
            ConfigError,
            f"rank {dist.get_rank()} is not a member of its group",
            hint="give each process the group that it is a member of",
        )
    return rank, dist.get_world_size(group), "group"


def _of_torch() -> Found | None:
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    return dist.get_rank(), dist.get_world_size(), "torch.distributed"


def _of_jax() -> Found | None:
    jax = sys.modules.get("jax")
    is_initialized = getattr(getattr(jax, "distributed", None), "is_initialized", None)
    if jax is None or is_initialized is None or not is_initialized():
        return None
    return jax.process_index(), jax.process_count(), "jax.distributed"


def _check_environment(found: Found) -> None:
    names = ("RANK", "WORLD_SIZE")
    told = {name: os.environ[name].strip() for name in names if name in os.environ}
    if any(told.get(name, str(number)) != str(number) for name, number in zip(names, found[:2], strict=True)):
        raise _disagree(_said(found), "the environment says " + ", ".join(f"{k}={v}" for k, v in told.items()))


def _said(found: Found) -> str:
    return f"{found[2]} says rank {found[0]} of {found[1]}"


def _disagree(one: str, other: str) -> ConfigError:
    return failure(ConfigError, f"{one}, {other}", hint="pass rank= and world_size=, or group=")


def _is_process_group(group: Any) -> bool:
    dist = sys.modules.get("torch.distributed")
    return dist is not None and dist.is_available() and isinstance(group, dist.ProcessGroup)


def _is_nobodys(group: Any) -> bool:
    dist = sys.modules.get("torch.distributed")
    return dist is not None and dist.is_available() and group is dist.GroupMember.NON_GROUP_MEMBER


def _is_mesh(group: Any) -> bool:
    mesh = sys.modules.get("torch.distributed.device_mesh")
    return mesh is not None and isinstance(group, mesh.DeviceMesh)
