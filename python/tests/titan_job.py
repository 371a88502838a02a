"""torchtitan's own Trainer with windrow's adapter, on this machine's CPU: jobs that write the rows and the loss of each step.

    python titan_job.py KILLED_AT

One run never stops; two are killed at step KILLED_AT and resumed on another number of ranks; all begin with the same weights.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["TORCH_COMPILE_DISABLE"] = "1"

import forked_ranks
import torch
from adapters import adapter, on_page
from trainer_jobs import digest, write_step
from torch.distributed.fsdp import FSDPModule
from torch.nn.attention.flex_attention import create_mask
from torch.nn.functional import scaled_dot_product_attention
from torchtitan.tools import utils

import windrow as wr

# What torchtitan asks of a GPU: its device must be known before the rest of it is imported.
memory = {"get_device_name": str, "get_device_properties": lambda _: types.SimpleNamespace(total_memory=1), "memory_stats": lambda _: {}}
utils.device_type = "cpu"
utils.device_module = types.SimpleNamespace(**vars(torch.cpu) | memory | {"reset_peak_memory_stats": int, "empty_cache": int})

from torchtitan.components.metrics import MetricsProcessor
from torchtitan.distributed import utils as dist_utils
from torchtitan.models.common.attention import FlexAttention

windrow_torchtitan = adapter("torchtitan")
ROWS, LENGTH, STEPS = 4, 32, 8


def attend(self: Any, q_BLNH: Any, k_BLNH: Any, v_BLNH: Any, *, attention_masks: Any, **_: Any) -> torch.Tensor:
    """FlexAttention has no gradients on a CPU: the same mask, dense. torchtitan knows the arguments by these names."""
    batch, length = q_BLNH.shape[:2]
    mask = create_mask(attention_masks.mask_mod, batch, None, length, length, device="cpu")
    return scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q_BLNH, k_BLNH, v_BLNH)), attn_mask=mask).transpose(1, 2)


def divide(module: Any, factor: float) -> None:
    """gloo does not multiply while it adds up."""
    divide_by(module, factor)
    module.set_force_sum_reduction_for_comms(True)


divide_by = FSDPModule.set_gradient_divide_factor
FSDPModule.set_gradient_divide_factor = divide
FlexAttention.forward = attend
dist_utils.set_pg_timeouts = lambda **_: None


def config_of(out: Path) -> Any:
    """The page's run with the debug model of one layer, in float32, with short rows."""
    config = on_page("on_windrow.py")["debugmodel"]()
    del config.model_spec.model.layers[1:]
    config.hf_assets_path, config.dump_folder = str(out.parent), str(out)
    config.dataloader.global_batch_size = ROWS
    config.validator.enable, config.validator.freq, config.validator.steps = True, 5, -1
    config.validator.dataloader = windrow_torchtitan.WindrowDataLoader.Config(dataset_path="held-out")
    training = {"seq_len": LENGTH, "local_batch_size": 2, "global_batch_size": ROWS, "steps": STEPS}
    for name, value in (training | {"mixed_precision_param": "float32", "disable_cuda_graphs": True}).items():
        setattr(config.training, name, value)
    config.checkpoint.interval = 3
    return config


def seed_weights(_: int, out: Path) -> None:
    """The weights that all jobs begin with: FSDP draws others on another number of ranks."""
    config = config_of(out)
    config.checkpoint.create_seed_checkpoint = True
    trainer = config.build()
    trainer.checkpointer.save(curr_step=0, last_step=True)
    trainer.close()


def train(rank: int, out: Path, killed_at: int | None = None) -> None:
    config = config_of(out)
    config.checkpoint.initial_load_path = str(out.parent / "weights" / "checkpoint" / "step-0")
    trainer = config.build()
    record(trainer, out / f"{rank}-of-{os.environ['WORLD_SIZE']}.jsonl", killed_at)
    trainer.train()
    trainer.close()


def record(trainer: Any, path: Path, killed_at: int | None) -> None:
    """Writes a line a step, and ends the process when step `killed_at` asks for rows."""
    seen: list[str] = []
    batches = iter(trainer.dataloader)

    def recorded() -> Iterator[Any]:
        for inputs, labels in batches:
            if trainer.step == killed_at:
                forked_ranks.die()
            seen.extend(map(digest, inputs["input"], inputs["positions"], labels))
            yield inputs, labels

    def log(step: int, loss: float, *_: Any, **__: Any) -> None:
        write_step(path, step, seen, loss)
        seen.clear()

    trainer.batch_generator = lambda _: recorded()
    trainer.metrics_processor.log = log


def leak(_: int, out: Path) -> None:
    """The mask that torchtitan makes of positions keeps documents apart."""
    trainer = config_of(out).build()
    view = wr.open("tokens").pack(LENGTH, documents=True)

    def logits(batch: dict[str, torch.Tensor]) -> Any:
        inputs = {"input": batch["input_ids"], "positions": batch["position_ids"].long()}
        tokens, _, others = trainer.post_dataloading_process(inputs, batch["labels"])
        return trainer.model_parts[0](tokens, **others)

    wr.testing.check_no_leak(logits, view.batch(range(4)))
    trainer.close()


def main(killed_at: str) -> None:
    folder = Path.cwd()
    forked_ranks.run(seed_weights, 1, folder / "weights")
    assert forked_ranks.run(leak, 1, folder / "leak") == [0]
    assert forked_ranks.run(train, 1, folder / "unbroken") == [0]
    forked_ranks.kill_and_resume(train, (1, 2, int(killed_at)), (2, 1, int(killed_at)))


if __name__ == "__main__":
    main(*sys.argv[1:])
