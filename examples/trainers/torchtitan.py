"""windrow in torchtitan 0.3, whose batches are [B, T], and in its git of August 2026, where they are flat; docs/trainers.md says how."""

from dataclasses import dataclass

import windrow as wr

try:
    from torchtitan.components.dataloader import BaseDataLoader
except ModuleNotFoundError:
    from torchtitan.components.data.loader import BaseDataLoader


class WindrowDataLoader(BaseDataLoader):
    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        dataset_path: str
        eos: int | None = None  # a token to put after every document; None: they end with one already
        seed: int = 0
        global_batch_size: int | None = None  # training.global_batch_size, where a step accumulates
        # torchtitan's validator sets one of these: False is one pass over the data.
        infinite: bool = True
        repeat: bool = True

    def __init__(self, config, *, dp_world_size, dp_rank, seq_len=None, local_batch_size=None, **git):
        self.is_flat, self.is_endless = "num_tokens_per_batch" in git, config.infinite and config.repeat
        if self.is_flat:
            seq_len, local_batch_size = git["max_context_length"], git["num_tokens_per_batch"] // git["max_context_length"]
        rows = config.global_batch_size or local_batch_size * dp_world_size
        self.accumulate = rows // (local_batch_size * dp_world_size)
        fields = ["input_ids", "labels", "position_ids"]
        self.loader = wr.Loader(
            wr.open(config.dataset_path).pack(seq_len, eos=config.eos, documents=True, fields=fields),
            global_batch_size=rows,
            accumulate=self.accumulate,
            seed=config.seed,
            rank=dp_rank,
            world_size=dp_world_size,
            whole=not self.is_endless,
            names={"input_ids": "input", "position_ids": "positions"},
            dtypes={"position_ids": "int64"},
            framework="torch",
        )

    def __iter__(self):
        for batch in self.loader.stream() if self.is_endless else self.loader:
            if self.is_flat:
                batch = {name: tensor.flatten() for name, tensor in batch.items()}
            yield batch, batch.pop("labels")

    def state_dict(self):
        if self.loader.stats()["batches"] % self.accumulate:
            raise ValueError("dataloader.global_batch_size must be training.global_batch_size: a state is of whole steps")
        return self.loader.state_dict()

    def load_state_dict(self, state):
        if state:
            self.loader.load_state_dict(state)

    def close(self):
        self.loader.close()
