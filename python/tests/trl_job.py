"""TRL's own SFTTrainer with windrow's example, on this machine's CPU: jobs that write the rows and the loss of each step.

    python trl_job.py TOKENS OUT KILLED_AT

One run never stops; two are killed, one at step KILLED_AT and one at LATE, and resumed with another number of processes.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import forked
import torch
from adapters import adapter
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, TrainerCallback

import windrow as wr

windrow_trl = adapter("trl")
# An epoch has 25 rows: a batch has the end of one and the beginning of the next.
ROWS, LENGTH, STEPS, EVERY, LATE = 4, 32, 14, 3, 11


class Record(TrainerCallback):  # type: ignore[misc]
    """Writes a line a step, and ends the process when step `killed_at` begins."""

    def __init__(self, path: Path, killed_at: int | None) -> None:
        self.path, self.killed_at = path, killed_at
        self.rows: list[str] = []

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step + 1 == self.killed_at:
            forked.die()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any, **_: Any) -> None:
        if "loss" in logs:
            with self.path.open("a") as file:
                file.write(json.dumps({"step": state.global_step, "rows": self.rows, "loss": logs["loss"]}) + "\n")
            self.rows.clear()

    def see(self, module: Any, _: Any, inputs: dict[str, Any]) -> None:
        """The rows of a batch, which are one after the other."""
        columns = [inputs[name][0].split(LENGTH) for name in ("input_ids", "labels", "position_ids")]
        self.rows += [digest(*row) for row in zip(*columns, strict=True)]


def digest(*tensors: torch.Tensor) -> str:
    return hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in tensors)).hexdigest()


def train(rank: int, tokens: str, out: Path, killed_at: int | None = None) -> None:
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(vocab_size=200, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, pad_token_id=0)
    )
    record = Record(out / f"{rank}-of-{os.environ['WORLD_SIZE']}.jsonl", killed_at)
    model.register_forward_pre_hook(record.see, with_kwargs=True)
    trainer, checkpoint = windrow_trl.sft_trainer(
        model,
        wr.open(tokens).pack(LENGTH, eos=0, documents=True, labels="same"),
        str(out / "checkpoints"),
        tokenizer=PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), pad_token="<pad>", eos_token="<eos>"),
        global_batch_size=ROWS,
        seed=5,
        callbacks=[record],
        max_steps=STEPS,
        save_steps=EVERY,
        logging_steps=1,
        learning_rate=1e-2,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to="none",
        disable_tqdm=True,
    )
    trainer.train(resume_from_checkpoint=checkpoint)


def main(tokens: str, out: str, killed_at: str) -> None:
    folder = Path(out)
    assert forked.run(train, 1, tokens, folder / "unbroken") == [0]
    for before, after, step in ((1, 2, int(killed_at)), (2, 1, LATE)):
        job = folder / f"{before} to {after}"
        assert -9 in forked.run(train, before, tokens, job, step)
        assert not any(forked.run(train, after, tokens, job))


if __name__ == "__main__":
    main(*sys.argv[1:])
