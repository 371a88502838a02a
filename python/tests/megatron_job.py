"""A GPT of megatron-core on this machine's CPU, tensor and data parallel, with windrow's adapter: jobs that write rows and losses.

    python megatron_job.py KILLED_AT

One run never stops; two are killed at step KILLED_AT and resumed on another data-parallel size. The last one slices rows for context parallel.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import types
from pathlib import Path
from typing import Any

import forked_ranks
import torch
import torch.distributed as dist
from adapters import adapter, on_page
from trainer_jobs import digest, write_step
from megatron.core import parallel_state, tensor_parallel
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.transformer import TransformerConfig
from megatron.core.utils import get_batch_on_this_cp_rank
from torch.overrides import TorchFunctionMode

import windrow as wr

windrow_megatron = adapter("megatron")
MICRO, GLOBAL, LENGTH, STEPS, VOCAB = 1, 4, 32, 8, 256


class OnCpu(TorchFunctionMode):
    """What megatron-core puts on a GPU by name."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function is torch.Tensor.cuda:
            return args[0]
        return function(*args, **kwargs | ({"device": "cpu"} if "cuda" in str(kwargs.get("device")) else {}))


torch.cuda.current_device = lambda: "cpu"
tensor_parallel.get_cuda_rng_tracker = lambda: types.SimpleNamespace(fork=contextlib.nullcontext)


def model_of() -> GPTModel:
    """Each tensor-parallel rank's part of the same weights."""
    torch.manual_seed(7)
    tp = parallel_state.get_tensor_model_parallel_world_size()
    config = TransformerConfig(
        num_layers=1,
        hidden_size=16,
        num_attention_heads=2,
        attention_dropout=0.0,
        hidden_dropout=0.0,
        use_cpu_initialization=True,
        tensor_model_parallel_size=tp,
    )
    return GPTModel(config, get_gpt_layer_local_spec(), VOCAB, LENGTH, position_embedding_type="rope")


def batch_of(iterator: Any) -> dict[str, torch.Tensor]:
    """The first tensor-parallel rank's batch on all of them, as Megatron's own scripts do it: with the dtypes that it wants."""
    batch = next(iterator) if iterator else {}
    whole = tensor_parallel.broadcast_data(["tokens", "labels", "position_ids"], batch, torch.int64)
    return whole | tensor_parallel.broadcast_data(["loss_mask"], batch, torch.float32)


def iterator_of(out: Path, done: int) -> Any:
    """As the page has it for Megatron-LM, which is not among the packages: of it, there are two functions here."""
    arguments = types.SimpleNamespace(
        seq_length=LENGTH, micro_batch_size=MICRO, global_batch_size=GLOBAL, seed=5, iteration=done, dataloader_save=out
    )
    training, checkpointing = types.ModuleType("megatron.training"), types.ModuleType("megatron.training.checkpointing")
    training.get_args = lambda: arguments  # type: ignore[attr-defined]
    checkpointing.get_checkpoint_name = lambda folder, step, return_base_dir: folder / f"iter_{step:07}"  # type: ignore[attr-defined]
    sys.modules |= {module.__name__: module for module in (training, checkpointing)}
    return on_page("windrow_provider.py")["train_valid_test_datasets_provider"](None)[0]


def train(rank: int, out: Path, killed_at: int | None = None) -> None:
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=2)
    is_first = parallel_state.get_tensor_model_parallel_rank() == 0
    with OnCpu():
        model, done = model_of(), latest(out)
        iterator = iterator_of(out, done) if is_first else None
        if done:
            model.load_state_dict(torch.load(out / f"iter_{done:07}" / f"mp_rank_{rank % 2:02}" / "model.pt"))
        optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
        for step in range(done + 1, STEPS + 1):
            seen, loss = one_step(model, iterator, step == killed_at)
            optimiser.step()
            optimiser.zero_grad()
            if is_first:
                dp = parallel_state.get_data_parallel_group()
                write_step(out / f"{dp.rank()}-of-{dp.size()}.jsonl", step, seen, loss)
            if step % 3 == 0:
                save(out, step, rank, model, iterator)


def one_step(model: GPTModel, iterator: Any, is_last: bool) -> tuple[list[str], float]:
    """Adds up the gradients of a global batch; gives the rows of this rank, and the mean loss of all."""
    dp = parallel_state.get_data_parallel_group()
    seen, total = [], torch.zeros(2)
    for _ in range(GLOBAL // (MICRO * dp.size())):
        batch = batch_of(iterator)
        if is_last:
            forked_ranks.die()
        seen += [digest(*row) for row in zip(*(batch[name] for name in sorted(batch)), strict=True)]
        mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)[None, None]
        losses = model(batch["tokens"], batch["position_ids"], mask, labels=batch["labels"])
        loss = (losses * batch["loss_mask"]).sum()
        loss.backward()
        total += torch.stack([loss.detach(), batch["loss_mask"].sum()])
    dist.all_reduce(total, group=dp)
    for weight in model.parameters():
        dist.all_reduce(weight.grad, group=dp)
        weight.grad /= total[1]
    return seen, float(total[0] / total[1])


def save(out: Path, step: int, rank: int, model: GPTModel, iterator: Any) -> None:
    """The weights of a model's two parts, and the first rank's state, where Megatron-LM has them; what names the step comes last."""
    folder = out / f"iter_{step:07}" / f"mp_rank_{rank % 2:02}"
    if rank < 2:
        folder.mkdir(parents=True)
        torch.save(model.state_dict(), folder / "model.pt")
    if rank == 0:
        torch.save({"dataloader_state_dict": iterator.save_state()}, folder / "train_dataloader_dprank000.pt")
    dist.barrier()
    if rank == 0:
        (out / "latest").write_text(str(step))
    dist.barrier()


def latest(out: Path) -> int:
    return int((out / "latest").read_text()) if (out / "latest").exists() else 0


def slices(rank: int, out: Path) -> None:
    """Two context-parallel ranks have the same rows, which Megatron cuts for them; or each reads its slices of the documents alone."""
    parallel_state.initialize_model_parallel(context_parallel_size=2)
    group, own_rank = parallel_state.get_context_parallel_group(), parallel_state.get_context_parallel_rank()
    names = ["input_ids", "labels", "position_ids", "cu_seqlens", "max_seqlen"]
    view = wr.open("tokens").pack(LENGTH, documents=True, multiple=4, fields=names)
    readers = [
        windrow_megatron.WindrowIterator(view, micro_batch_size=2, global_batch_size=4, seed=5, is_sliced=is_sliced)
        for is_sliced in (False, True)
    ]
    for _ in range(STEPS):
        whole, read = map(next, readers)
        cut = [torch.empty(2, LENGTH // 2, dtype=torch.int64) for _ in range(2)]
        dist.all_gather(cut, get_batch_on_this_cp_rank({"tokens": whole["tokens"]})["tokens"], group=group)
        assert torch.equal(torch.cat([cut[0][:, : LENGTH // 4], cut[1], cut[0][:, LENGTH // 4 :]], dim=1), whole["tokens"])
        at = torch.tensor([places(starts, own_rank) for starts in whole["cu_seqlens"].tolist()])
        expected = {name: values.gather(1, at) if values.shape == (2, LENGTH) else values for name, values in whole.items()}
        assert all(torch.equal(read.pop(name), values) for name, values in expected.items()) and not read
    assert readers[0].save_state() == readers[1].save_state()
    (out / f"slices-{rank}-of-{os.environ['WORLD_SIZE']}").touch()


def places(starts: list[int], rank: int) -> list[int]:
    """Of each document, the chunk of this rank of two from its beginning, and that from its end."""
    quarters = [(start, (end - start) // 4) for start, end in itertools.pairwise(starts)]
    return [at for start, n in quarters for chunk in (rank, 3 - rank) for at in range(start + chunk * n, start + (chunk + 1) * n)]


def main(killed_at: str) -> None:
    folder = Path.cwd()
    assert not any(forked_ranks.run(train, 2, folder / "unbroken"))
    forked_ranks.kill_and_resume(train, (2, 1, int(killed_at)), (1, 2, int(killed_at)), each=2)
    assert not any(forked_ranks.run(slices, 4, folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
