"""Which rank a loader reads for, with real process groups: torch's, its subgroups and meshes, JAX's, launchers' variables."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import windrow as wr
from test_loader import ids
from windrow.torch.agree import difference

TORCH = """
    import os, sys
    import torch.distributed as dist
    import torch.multiprocessing as mp
    import windrow as wr
    from torch.distributed.device_mesh import init_device_mesh

    def ids(batch):
        return (batch["input_ids"][:, 0] // 16).tolist()

    def work(rank, tokens, store, out):
        view = wr.open(tokens, format="tokens", dtype="uint16").pack(16)
        # A trainer starts the group after the loader is made.
        early = wr.Loader(view, global_batch_size=8)
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=4)
        world = ids(next(early))
        os.environ.update(RANK="0", WORLD_SIZE="1", PMI_RANK="3", LOCAL_WORLD_SIZE="4")
        beside = ids(next(wr.Loader(view, global_batch_size=8)))
        for name in ("RANK", "WORLD_SIZE", "PMI_RANK", "LOCAL_WORLD_SIZE"):
            del os.environ[name]
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        found = {
            "world": world,
            "beside a smaller world": beside,
            "mesh": ids(next(wr.Loader(view, global_batch_size=8, group=mesh["dp"]))),
            "group": ids(next(wr.Loader(view, global_batch_size=8, group=halves[rank // 2]))),
            "given": ids(next(wr.Loader(view, global_batch_size=8, rank=0, world_size=1))),
        }
        for name, group in (("two dimensions", mesh), ("another's", halves[1 - rank // 2]), ("a name", "dp")):
            try:
                next(wr.Loader(view, global_batch_size=8, group=group))
            except (wr.ConfigError, TypeError) as error:
                found[name] = str(error)
        everything = [None] * 4
        dist.all_gather_object(everything, found)
        if rank == 0:
            for one in everything:
                print(one)
        dist.destroy_process_group()

    if __name__ == "__main__":
        mp.spawn(work, args=(sys.argv[1], sys.argv[2], None), nprocs=4)
"""


def test_ranks_come_from_torchs_groups_and_meshes(
    view: wr.View, tokens: Path, tmp_path: Path, run_script: Callable[..., str]
) -> None:
    (whole,) = ids([next(wr.Loader(view, global_batch_size=8))])
    lines = run_script(TORCH, tokens, tmp_path / "store", limit=180).splitlines()
    found = [eval(line, {}) for line in lines]
    assert [one["world"] for one in found] == [whole[:2], whole[2:4], whole[4:6], whole[6:]]
    assert [one["beside a smaller world"] for one in found] == [one["world"] for one in found]
    # Ranks (0, 1) and (2, 3) are the tensor-parallel pairs: they read the same.
    assert [one["mesh"] for one in found] == [whole[:4]] * 2 + [whole[4:]] * 2
    assert [one["group"] for one in found] == [whole[:4], whole[4:]] * 2
    assert [one["given"] for one in found] == [whole] * 4
    for one in found:
        assert "2 dimensions (dp, tp)" in one["two dimensions"] and "group=mesh['dp']" in one["two dimensions"]
        assert "not a member" in one["another's"]
        assert "not str" in one["a name"]


AGREE = """
    import sys
    import torch.distributed as dist
    import torch.multiprocessing as mp
    import windrow as wr

    def loader(tokens, seed=1, length=16, steps=0):
        loader = wr.Loader(wr.open(tokens, dtype="uint16").pack(length), global_batch_size=8, seed=seed, framework="torch")
        for _ in range(steps):
            next(loader)
        return loader

    def balanced(tokens, balance, accumulate=1):
        view = wr.open(tokens, dtype="uint16", document_eos=7).bins(16, overlong="split")
        return wr.Loader(view, global_batch_size=8, balance=balance, accumulate=accumulate)

    def work(rank, tokens, store):
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=4)
        halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        cases = {
            "the same": loader(tokens),
            "later": loader(tokens, steps=2),
            "a stream": wr.torch.Stream(wr.open(tokens, dtype="uint16").pack(16), seed=1),
            "a seed": loader(tokens, seed=1 + (rank == 2)),
            "a plan": loader(tokens, length=16 - (rank == 0)),
            "a position": loader(tokens, steps=2 + rank // 2, seed=1 + rank // 3),
            "a function": balanced(tokens, len if rank else max),
            "a number of batches": balanced(tokens, "attention", accumulate=1 + (rank == 3)),
        }
        found = {}
        for name, one in cases.items():
            for of, group in (("all", None), ("half", halves[rank // 2])):
                try:
                    found[f"{name}, {of}"] = wr.torch.check_ranks(one, group)
                except ValueError as error:
                    assert type(error) is wr.MismatchError and error.hint
                    found[f"{name}, {of}"] = str(error).splitlines()[0]
        try:
            wr.torch.check_ranks(cases["the same"], halves[1 - rank // 2])
        except wr.ConfigError as error:
            found["another's"] = str(error).splitlines()[0]
        everything = [None] * 4
        dist.all_gather_object(everything, found)
        if rank == 0:
            for one in everything:
                print(one)
        dist.destroy_process_group()

    if __name__ == "__main__":
        mp.spawn(work, args=(sys.argv[1], sys.argv[2]), nprocs=4)
"""


def test_ranks_that_read_something_else_are_named(tokens: Path, tmp_path: Path, run_script: Callable[..., str]) -> None:
    found = [eval(line, {}) for line in run_script(AGREE, tokens, tmp_path / "store", limit=180).splitlines()]
    assert len(found) == 4
    for rank, one in enumerate(found):
        for name in ("the same", "later", "a stream"):
            assert one[f"{name}, all"] is None and one[f"{name}, half"] is None
        assert one["a seed, all"] == "4 ranks do not read the same: rank 2 has seed=2, the others have seed=1"
        if rank < 2:
            assert one["a seed, half"] is None
            assert one["a plan, half"].startswith(
                "2 ranks do not read the same: rank 1 has view=pack(length=16,eos=none), rank 0 has view=pack(length=15,eos=none); "
            )
            assert one["a position, half"] is None
        else:
            assert one["a seed, half"] == "2 ranks do not read the same: rank 3 has seed=1, rank 2 has seed=2"
            assert one["a plan, half"] is None
            assert one["a position, half"] == "2 ranks do not read the same: rank 3 has seed=2, rank 2 has seed=1"
        assert one["a plan, all"] == (
            "4 ranks do not read the same: rank 0 has view=pack(length=15,eos=none), the others have view=pack(length=16,eos=none); "
            "rank 0 has layout=next_token(length=15,dtype=int64,pad=0,mask=none), "
            "the others have layout=next_token(length=16,dtype=int64,pad=0,mask=none)"
        )
        assert one["a position, all"] == (
            "4 ranks do not read the same: rank 3 has seed=2, the others have seed=1; "
            "rank 2 has samples=24, rank 3 has samples=24, the others have samples=16"
        )
        assert one["a function, all"] == (
            "4 ranks do not read the same: rank 0 has balance=builtins.max, the others have balance=builtins.len"
        )
        assert one["a number of batches, all"] == "4 ranks do not read the same: rank 3 has accumulate=2, the others have accumulate=1"
        assert one["another's"] == "group is what new_group() gives a process that is not a member"


def test_without_a_group_there_are_no_ranks_to_compare(view: wr.View) -> None:
    with pytest.raises(wr.ConfigError, match="not initialised"):
        wr.torch.check_ranks(wr.Loader(view, 8))


def test_of_thousands_of_ranks_the_first_are_named() -> None:
    values = [7 if rank % 3 else 8 for rank in range(10_000)]
    assert difference("seed", values, list(range(10_000))) == (
        "rank 0 has seed=8, rank 3 has seed=8, rank 6 has seed=8, rank 9 has seed=8, 3,330 more ranks differ, the others have seed=7"
    )


JAX = """
    import sys
    import jax
    import windrow as wr

    view = wr.open(sys.argv[1], format="tokens", dtype="uint16").pack(16)
    early = wr.Loader(view, global_batch_size=8)
    jax.distributed.initialize(f"127.0.0.1:{sys.argv[2]}", num_processes=2, process_id=int(sys.argv[3]))
    print((next(early)["input_ids"][:, 0] // 16).tolist())
"""


def test_ranks_come_from_jax(view: wr.View, tokens: Path, tmp_path: Path) -> None:
    (whole,) = ids([next(wr.Loader(view, global_batch_size=8))])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(JAX))
    command = [sys.executable, str(script), str(tokens), str(port)]
    processes = [subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True) for rank in range(2)]
    try:
        found = [process.communicate(timeout=120)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [eval(line, {}) for line in found] == [whole[:4], whole[4:]]


ALONE = """
    import os, sys
    import torch.distributed as dist
    import windrow as wr

    view = wr.open(sys.argv[1], format="tokens", dtype="uint16").pack(16)
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=0, world_size=1)
    for environment in ({"RANK": "0", "WORLD_SIZE": "1"}, {"WORLD_SIZE": "1"}, {"SLURM_PROCID": "1", "SLURM_NTASKS": "4"}):
        os.environ.update(environment)
        print(len(next(wr.Loader(view, global_batch_size=8))["input_ids"]))
        for name in environment:
            del os.environ[name]
    for environment in ({"RANK": "1", "WORLD_SIZE": "2"}, {"WORLD_SIZE": "2"}):
        os.environ.update(environment)
        loader = wr.Loader(view, global_batch_size=8)
        try:
            next(loader)
        except wr.ConfigError as error:
            print(error)
        os.environ.clear()
        print(len(next(loader)["input_ids"]))
"""


def test_torch_is_believed_unless_the_environment_has_more_ranks(tokens: Path, tmp_path: Path, run_script: Callable[..., str]) -> None:
    lines = run_script(ALONE, tokens, tmp_path / "store", limit=120).splitlines()
    assert lines == [
        *["8"] * 3,
        *[
            "this process would read as rank 0 of 1 (torch.distributed), but WORLD_SIZE says that 2 were started",
            "  hint: pass rank=, world_size=; rank=0, world_size=1 if each of them is to read everything",
            "8",
        ]
        * 2,
    ]


def test_the_rank_is_asked_for_with_the_first_batch_and_then_kept(
    view: wr.View, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = wr.Loader(view, global_batch_size=8, seed=1)
    assert len(loader) == len(view) // 8
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    expected = ids([next(wr.Loader(view, global_batch_size=8, seed=1, rank=1, world_size=2))])
    assert ids([next(loader)]) == expected
    monkeypatch.setenv("RANK", "0")
    assert len(ids([next(loader)])[0]) == 4
    monkeypatch.delenv("WORLD_SIZE")
    next(loader)
    # Per rank, twice as many ranks make an epoch of half as many batches, known once the ranks are.
    per_rank = wr.Loader(view, 8)
    monkeypatch.delenv("RANK")
    assert len(per_rank) == len(view) // 8
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    next(per_rank)
    assert len(per_rank) == len(view) // 16
    assert per_rank.recipe()["global_batch_size"] == 16


def test_half_a_pair_of_variables_is_an_error_at_the_first_batch(
    view: wr.View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    loader = wr.Loader(view, global_batch_size=8)
    with pytest.raises(wr.ConfigError, match="WORLD_SIZE but not RANK"):
        next(loader)
    with pytest.raises(wr.ConfigError, match="WORLD_SIZE but not RANK"):
        iter(loader)
    monkeypatch.setenv("RANK", "0")
    assert len(next(loader)["input_ids"]) == 4


SLURM = """
    import json, logging, sys
    import windrow as wr

    logging.basicConfig(level=logging.WARNING)
    view = wr.open(sys.argv[1], format="tokens", dtype="uint16").pack(16)
    for _ in range(2):
        loader = wr.Loader(view, global_batch_size=8)
        rows = len(next(loader)["input_ids"])
    print(json.dumps([rows, loader.stats()["rank"]]))
"""
JOB = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_NPROCS": "4", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NNODES": "1"}
STEP = {**JOB, "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "1"}


@pytest.mark.parametrize(
    ("variables", "rows", "by", "is_warned"),
    [
        ({}, 8, "no launcher", False),
        (JOB, 8, "no launcher", True),
        (STEP, 2, "SLURM_PROCID, SLURM_STEP_NUM_TASKS", False),
        # An interactive shell is a step of one task in a job of four.
        ({**STEP, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, 8, "SLURM_PROCID, SLURM_STEP_NUM_TASKS", False),
        # torchrun in a script of a batch job: of fewer processes than it has tasks, and of as many.
        ({**JOB, "RANK": "1", "WORLD_SIZE": "2"}, 4, "RANK, WORLD_SIZE", True),
        ({**JOB, "RANK": "1", "WORLD_SIZE": "4"}, 2, "RANK, WORLD_SIZE", False),
    ],
    ids=["no Slurm", "sbatch", "srun", "srun --pty", "torchrun of 2", "torchrun of 4"],
)
def test_of_slurms_numbers_those_of_the_step_are_believed(
    tokens: Path, tmp_path: Path, variables: dict[str, str], rows: int, by: str, is_warned: bool
) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SLURM))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    done = subprocess.run([sys.executable, script, tokens], env={**clean, **variables}, capture_output=True, text=True, check=True)
    found, rank = json.loads(done.stdout)
    assert (found, rank["by"]) == (rows, by), rank
    assert done.stderr.count("srun") == 2 * is_warned, done.stderr
    assert done.stderr.count("WARNING") == is_warned and ("SLURM_NTASKS is 4" in done.stderr) == is_warned


@pytest.mark.parametrize(
    "variables",
    [
        {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "1"},
        {"PMI_SIZE": "4", "PMI_RANK": "1"},
        {"MV2_COMM_WORLD_SIZE": "4"},
        {"LOCAL_WORLD_SIZE": "4", "LOCAL_RANK": "1"},
        {"PALS_LOCAL_SIZE": "4"},
        {"PALS_RANKID": "3"},
        {"PMI_RANK": "3", "RANK": "0", "WORLD_SIZE": "1"},
        {"SM_HOSTS": '["algo-1", "algo-2", "algo-3", "algo-4"]'},
        {"TPU_WORKER_HOSTNAMES": "a,b,c,d"},
        {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "1", "RANK": "0", "WORLD_SIZE": "1"},
    ],
)
def test_a_launcher_that_started_more_is_an_error(view: wr.View, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(wr.ConfigError, match="4 were started") as caught:
        next(wr.Loader(view, 8))
    assert "rank=, world_size=" in caught.value.hint and next(iter(variables)) in str(caught.value)
    assert len(next(wr.Loader(view, 8, rank=0, world_size=1))["input_ids"]) == 8


def test_what_is_believed_is_shown(view: wr.View, monkeypatch: pytest.MonkeyPatch) -> None:
    given = wr.Loader(view, global_batch_size=8, rank=1, world_size=2)
    assert given.stats()["rank"] == {"rank": 1, "world_size": 2, "by": "rank, world_size"}
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    told = wr.Loader(view, global_batch_size=8)
    assert told.stats()["rank"] == {"rank": 1, "world_size": 4, "by": "RANK, WORLD_SIZE"}
    assert "rank 1 of 4 (RANK, WORLD_SIZE)" in repr(told) and "rank 1 of 2 (rank, world_size)" in repr(given)


DIVIDED = """
    import json, os, sys
    import torch.distributed as dist
    import torch.multiprocessing as mp
    import windrow as wr
    from torch.distributed.device_mesh import init_device_mesh

    def asked(view, **options):
        loader = wr.Loader(view, global_batch_size=8, **options)
        try:
            return [loader.stats()["rank"]["world_size"], (next(loader)["input_ids"][:, 0] // 16).tolist()]
        except wr.ConfigError as error:
            return error.hint

    def as_said(view, hint, **names):
        return asked(view, **eval(f"dict({hint})", names))

    def work(rank, tokens, store, out):
        view = wr.open(tokens, format="tokens", dtype="uint16").pack(16)
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=4)
        found = {"world": asked(view)}
        # FSDP's: all of it divides the data.
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp_replicate", "dp_shard"))
        found["data alone"] = asked(view)
        del mesh
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        found["mesh"] = asked(view)
        found["as the hint says"] = as_said(view, found["mesh"], mesh=mesh)
        found["given"] = asked(view, rank=0, world_size=1)
        del mesh
        found["a mesh that is gone"] = asked(view)
        mesh = init_device_mesh("cpu", (1, 2, 2), mesh_dim_names=("pp", "dp_replicate", "tensor_parallel"))
        found["other names"] = asked(view)
        del mesh
        mesh = init_device_mesh("cpu", (2, 1, 2), mesh_dim_names=("dp_replicate", "dp_shard", "cp"))
        found["two of data"] = asked(view)
        found["as that hint says"] = as_said(view, found["two of data"], mesh=mesh)
        del mesh
        mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tp",))
        found["nothing of data"] = asked(view)
        del mesh
        mesh = init_device_mesh("cpu", (1, 4))
        found["no names, of one dimension"] = asked(view)
        del mesh
        mesh = init_device_mesh("cpu", (2, 2))
        found["no names"] = asked(view)
        found["as the hint for no names says"] = asked(view, group=mesh.get_group(0))
        del mesh
        from megatron.core import parallel_state

        parallel_state.initialize_model_parallel()
        found["megatron, data alone"] = asked(view)
        parallel_state.destroy_model_parallel()
        parallel_state.initialize_model_parallel(tensor_model_parallel_size=2)
        found["megatron"] = asked(view)
        found["as its hint says"] = as_said(view, found["megatron"], parallel_state=parallel_state)
        with open(f"{out}/{rank}.json", "w") as file:
            json.dump(found, file)
        dist.barrier()
        os._exit(0)

    if __name__ == "__main__":
        import megatron.core.parallel_state
        mp.start_processes(work, args=(sys.argv[1], sys.argv[2], sys.argv[3]), nprocs=4, start_method="fork")
"""


def test_a_model_that_is_divided_needs_its_group(
    view: wr.View, tokens: Path, tmp_path: Path, run_script: Callable[..., str]
) -> None:
    (whole,) = ids([next(wr.Loader(view, global_batch_size=8))])
    run_script(DIVIDED, tokens, tmp_path / "store", tmp_path, limit=300)
    all_ranks = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(4)]
    for rank, found in enumerate(all_ranks):
        own, half = [4, whole[2 * rank : 2 * rank + 2]], [2, whole[4 * (rank // 2) : 4 * (rank // 2) + 4]]
        assert [found[name] for name in ("world", "data alone", "a mesh that is gone", "megatron, data alone")] == [own] * 4
        assert found["mesh"] == "group=mesh['dp']" and found["other names"] == "group=mesh['dp_replicate']"
        assert found["two of data"] == "group=mesh['dp_replicate', 'dp_shard']._flatten()"
        assert found["nothing of data"].startswith("rank=0, world_size=1")
        assert found["no names, of one dimension"] == own and found["no names"].startswith("group=mesh.get_group(0)")
        assert found["as the hint for no names says"] == half
        assert found["megatron"] == "group=parallel_state.get_data_parallel_group()"
        assert [found[f"as {name} hint says"] for name in ("the", "that", "its")] == [half] * 3
        assert found["given"] == [1, whole]


def test_who_said_it_is_logged_once(
    view: wr.View, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    loader = wr.Loader(view, global_batch_size=8)
    with caplog.at_level(logging.DEBUG, logger="windrow"):
        next(loader), next(loader)
    told = [record for record in caplog.records if "rank 1 of 2" in record.getMessage()]
    assert [record.levelname for record in told] == ["DEBUG"]


def test_a_group_beside_a_rank_is_refused(view: wr.View) -> None:
    with pytest.raises(TypeError, match="ProcessGroup"):
        wr.Loader(view, 8, group=torch)
    with pytest.raises(wr.ConfigError, match="group"):
        wr.Loader(view, 8, group=torch, rank=0, world_size=1)
