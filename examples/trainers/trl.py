"""windrow in TRL's SFTTrainer: rows that windrow packed, whose documents stay apart, and a run that any number of processes resumes.

For trl 1.16. docs/trainers.md says how to use it.
"""

import json
from pathlib import Path

from transformers.trainer_utils import get_last_checkpoint
from trl import SFTConfig, SFTTrainer

import windrow as wr


def sft_trainer(model, view, folder, *, tokenizer, global_batch_size, seed=0, callbacks=(), **options):
    """A trainer on rows of `bins`, `pack(documents=True)` or `records`, cut with `labels="same"`, and the checkpoint to resume from.

    `global_batch_size` counts the rows of a step over all processes; `options` are those of SFTConfig.
    """
    # TRL learns from `seq_lengths` where documents end. windrow has cut the rows, and begins after those that were trained on.
    ours = {"padding_free": "cu_seqlens" in view[0], "packing": False, "max_length": None, "ignore_data_skip": True}
    args = SFTConfig(folder, **ours, **options)
    n_parts = args.world_size * args.gradient_accumulation_steps
    args.per_device_train_batch_size, rest = divmod(global_batch_size, n_parts)
    if rest:
        raise ValueError(f"global_batch_size={global_batch_size} is not a multiple of {n_parts}, processes times accumulation")
    stream = wr.torch.Stream(view, seed=seed)
    checkpoint = get_last_checkpoint(folder) if Path(folder).is_dir() else None
    if checkpoint:
        go_to(stream, step_of(checkpoint) * global_batch_size, len(view))
    data = stream.as_dataset()
    trainer = SFTTrainer(model, args, train_dataset=data, processing_class=tokenizer, callbacks=list(callbacks))
    return trainer, checkpoint


def go_to(stream, n_rows, rows_of_epoch):
    """Goes to where a run is after `n_rows` rows; none of them is read."""
    epoch, samples = divmod(n_rows, rows_of_epoch)
    stream.load_state_dict({**stream.state_dict(), "epoch": epoch, "samples": samples})


def step_of(checkpoint):
    return json.loads((Path(checkpoint) / "trainer_state.json").read_text())["global_step"]
