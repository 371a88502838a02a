"""windrow in torchtitan: packed documents, and one small state that any number of ranks resumes from.

For torchtitan 0.3, whose batches are [B, T], and for its git since August 2026, whose batches are flat. docs/trainers.md says how to use it.
"""

from dataclasses import dataclass

import windrow as wr

try:
    from torchtitan.components.dataloader import BaseDataLoader
except ModuleNotFoundError:
    from torchtitan.components.data.loader import BaseDataLoader

FIELDS = ["input_ids", "labels", "position_ids"]


class WindrowDataLoader(BaseDataLoader):
    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        dataset_path: str
        eos: int | None = None  # a token to put after every document; None: they end with one already
        seed: int = 0
        global_batch_size: int | None = None  # training.global_batch_size, where a step accumulates
        num_threads: int = 2
        # torchtitan's validator sets one of these: False is one pass over the data.
        infinite: bool = True
        repeat: bool = True

    def __init__(self, config, *, dp_world_size, dp_rank, seq_len=None, local_batch_size=None, **git):
        self.is_flat = "num_tokens_per_batch" in git
        if self.is_flat:
            seq_len = git["max_context_length"]
            local_batch_size = git["num_tokens_per_batch"] // seq_len
        rows = local_batch_size * dp_world_size
        self.is_endless = config.infinite and config.repeat
        self.loader = wr.Loader(
            wr.open(config.dataset_path).pack(seq_len, eos=config.eos, documents=True, fields=FIELDS),
            global_batch_size=config.global_batch_size or rows,
            accumulate=(config.global_batch_size or rows) // rows,
            seed=config.seed,
            rank=dp_rank,
            world_size=dp_world_size,
            whole=not self.is_endless,
            framework="torch",
            num_threads=config.num_threads,
        )

    def __iter__(self):
        for batch in self.loader.stream() if self.is_endless else self.loader:
            tensors = [batch["input_ids"], batch["position_ids"].long(), batch["labels"]]
            tokens, positions, labels = (t.flatten() for t in tensors) if self.is_flat else tensors
            yield {"input": tokens, "positions": positions}, labels

    def state_dict(self):
        return self.loader.state_dict()

    def load_state_dict(self, state):
        if state:
            self.loader.load_state_dict(state)

    def close(self):
        self.loader.close()
