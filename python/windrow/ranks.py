"""Which rank this process is, as an initialised group says: torch's, one of its subgroups, or JAX's.

Nothing is imported that the program has not imported itself: a group that nobody made needs no question.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from windrow.errors import ConfigError
from windrow.failure import failure

__all__ = ["callers", "check", "check_undivided", "context", "initialised", "note"]

Found = tuple[int, int, str]

LOG = logging.getLogger("windrow.ranks")


def check(group: Any, name: str = "group") -> None:
    """Refuses what is not one group of ranks; ``name`` is the argument that it was given as.

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
                f"{name} is a mesh of {group.ndim} dimensions ({shown}), expected one of them",
                hint=f"{name}=mesh[{names[0]!r}], if that is the dimension over which the {'data is' if name == 'group' else 'rows are'} split",
            )
    elif _is_nobodys(group):
        raise failure(
            ConfigError,
            f"{name} is what new_group() gives a process that is not a member",
            hint="give each process the group that it is a member of",
        )
    elif not _is_process_group(group):
        raise TypeError(
            f"{name} is {'two numbers (rank, size), ' if name == 'context' else ''}a torch.distributed.ProcessGroup or one dimension of a "
            f"DeviceMesh, not {type(group).__name__}"
        )


def context(group: Any) -> tuple[int, int]:
    """Rank and size of a context group.

    Raises:
        TypeError, ConfigError: as ``check``.
        ConfigError: this process is not in the group.
    """
    check(group, "context")
    return _of_group(group)[:2]


def initialised(group: Any) -> Found | None:
    """Rank, world size, and who says so; None where no group was initialised.

    Raises:
        ConfigError: this process is not in the group; ``jax.distributed`` has more processes than ``torch.distributed``, which is asked first.
    """
    if group is not None:
        return _of_group(group)
    found = [answer for answer in (_of_torch(), _of_jax()) if answer is not None]
    for one, other in zip(found, found[1:], strict=False):
        if other[1] > one[1]:
            raise failure(ConfigError, f"{_said(one)}, {_said(other)}", hint="pass rank=, world_size=, or group=")
    return found[0] if found else None


def note(rank: int, world_size: int, by: str) -> None:
    """Logs which rank a loader reads for, and by what it was found."""
    LOG.debug("reads as rank %d of %d (%s)", rank, world_size, by)


def check_undivided(world_size: int) -> None:
    """Refuses ranks that nobody named where they would be wrong: what asks for the first batch shares its samples out by itself, or a
    model is divided over ranks, which then need the same rows.

    Raises:
        ConfigError: in one of several worker processes of ``DataLoader``; within a data set that Accelerate or ``datasets`` divides;
            with Megatron's parallel state, or a ``DeviceMesh``, whose tensor, pipeline or context dimensions have several ranks.
    """
    _check_workers()
    if world_size > 1:
        _check_hosts()
        _check_megatron()
        _check_meshes()


def callers(modules: set[str]) -> Iterator[Any]:
    """Objects of these modules whose methods wait for what is read now, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        # Of other frames the locals are left alone: asking for them keeps them alive.
        if frame.f_globals.get("__name__") in modules:
            yield frame.f_locals.get("self")
        frame = frame.f_back


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


def _check_workers() -> None:
    data = sys.modules.get("torch.utils.data")
    worker = data.get_worker_info() if data is not None else None
    if worker is not None and worker.num_workers > 1:
        raise failure(
            ConfigError,
            f"a Loader in one of {worker.num_workers} worker processes of DataLoader: each worker would read the same samples",
            hint="num_workers=0, as a Loader reads ahead in threads; or pass rank=, world_size= that count the workers",
        )


def _check_hosts() -> None:
    for host in callers(_HOSTS):
        kind = type(host)
        if _shares_out(kind.__name__, host):
            raise failure(
                ConfigError,
                f"a Loader inside {kind.__module__}.{kind.__qualname__}, which divides samples among processes itself: "
                "each process would get only a part of its own part",
                hint="rank=0, world_size=1, as it reads for all processes there",
            )


# Modules of those that share the samples of a data set out.
_HOSTS = {"accelerate.data_loader", "datasets.iterable_dataset", "transformers.trainer_pt_utils"}


def _shares_out(name: str, host: Any) -> bool:
    if name == "IterableDatasetShard":
        return bool(host.num_processes > 1)
    if name == "DataLoaderDispatcher":
        return bool(host.state.num_processes > 1)
    # That of `datasets`, after split_dataset_by_node().
    node = getattr(host, "_distributed", None) if name == "IterableDataset" else None
    return node is not None and node.world_size > 1


def _check_megatron() -> None:
    state = sys.modules.get("megatron.core.parallel_state")
    if state is None or not state.model_parallel_is_initialized():
        return
    names = {"tp": "tensor_model", "pp": "pipeline_model", "cp": "context"}
    asks = {short: getattr(state, f"get_{name}_parallel_world_size", None) for short, name in names.items()}
    _refuse_divided("Megatron", {short: ask() for short, ask in asks.items() if ask}, "group=parallel_state.get_data_parallel_group()")


# Dimensions over which a model is divided, not the data, as trainers name them.
_OF_MODEL = {"tp", "pp", "cp", "sp", "mp", "tensor", "pipeline", "context", "sequence", "model", "seq", "pipe", "ulysses"}


def _is_of_model(dimension: str) -> bool:
    return dimension.lower().replace("parallel", "").strip("_-") in _OF_MODEL


def _check_meshes() -> None:
    mesh = _dividing()
    if mesh is None:
        return
    # One that nothing holds any more may be left for the collector.
    del mesh
    gc.collect()
    mesh = _dividing()
    if mesh is None:
        return
    if not mesh.mesh_dim_names:
        raise failure(
            ConfigError,
            f"a DeviceMesh of shape {tuple(mesh.shape)} does not name its dimensions: which of them divides the data is not known",
            hint="group=mesh.get_group(0), if that is the dimension over which the data is split; or mesh_dim_names=, as (\"dp\", \"tp\")",
        )
    sizes = dict(zip(mesh.mesh_dim_names, mesh.shape, strict=True))
    data = ", ".join(repr(name) for name in sizes if not _is_of_model(name))
    group = f"group=mesh[{data}]" + ("._flatten()" if "," in data else "")
    _refuse_divided("a DeviceMesh", sizes, group if data else "rank=0, world_size=1, as all ranks read the same")


# The mesh of most dimensions of which one divides a model, or may. torch keeps no list of meshes that is its public interface.
def _dividing() -> Any:
    module = sys.modules.get("torch.distributed.device_mesh")
    kind = getattr(module, "DeviceMesh", None)
    if kind is None:
        return None
    meshes = [found for found in gc.get_objects() if issubclass(type(found), kind)]
    return max(filter(_may_divide, meshes), key=lambda mesh: (bool(mesh.mesh_dim_names), mesh.ndim), default=None)


# Without names, all ranks of one dimension are taken to divide the data.
def _may_divide(mesh: Any) -> bool:
    names, sizes = mesh.mesh_dim_names, tuple(mesh.shape)
    if not names:
        return sum(size > 1 for size in sizes) > 1
    return any(_is_of_model(name) and size > 1 for name, size in zip(names, sizes, strict=True))


def _refuse_divided(whose: str, sizes: dict[str, int], group: str) -> None:
    divided = [f"{name}={size}" for name, size in sizes.items() if _is_of_model(name) and size > 1]
    if divided:
        raise failure(
            ConfigError,
            f"{whose} divides the model ({', '.join(divided)}): some ranks need the same rows, and without group= or rank= each reads others",
            hint=group,
        )


def _said(found: Found) -> str:
    return f"{found[2]} says rank {found[0]} of {found[1]}"


def _is_process_group(group: Any) -> bool:
    dist = sys.modules.get("torch.distributed")
    return dist is not None and dist.is_available() and isinstance(group, dist.ProcessGroup)


def _is_nobodys(group: Any) -> bool:
    dist = sys.modules.get("torch.distributed")
    return dist is not None and dist.is_available() and group is dist.GroupMember.NON_GROUP_MEMBER


def _is_mesh(group: Any) -> bool:
    mesh = sys.modules.get("torch.distributed.device_mesh")
    return mesh is not None and isinstance(group, mesh.DeviceMesh)
