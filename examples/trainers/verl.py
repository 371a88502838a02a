"""windrow in verl's SFT trainer: rows without padding, and a run that any number of data-parallel ranks resumes.

For verl 0.9. docs/trainers.md says how to use it.
"""

from torch.utils.data import Dataset

import windrow as wr


class WindrowDataset(Dataset):
    """What `data.custom_cls` names: `data.train_files` is anything that windrow opens as tokens. Needs `data.pad_mode=no_padding`."""

    def __init__(self, parquet_files, tokenizer=None, config=None, processor=None, max_samples=-1):
        # verl shifts by itself: label and mask of a token are its own.
        fields = ["input_ids", "loss_masks", "attention_mask"]
        self.view = wr.open(parquet_files).records(config["max_length"], labels="same", fields=fields)

    def __len__(self):
        return len(self.view)

    def __getitem__(self, i):
        return self.sample(self.view.batch([i], framework="torch"), 0)

    @staticmethod
    def sample(batch, row):
        """A row without its padding. Nothing is before its first token, which verl would learn from the end of another row."""
        tokens = batch["input_ids"][row, : int(batch["attention_mask"][row].sum())]
        mask = batch["loss_masks"][row, : len(tokens)].clone()
        mask[0] = 0
        return {"input_ids": tokens, "position_ids": tokens.new_ones(len(tokens)).cumsum(0) - 1, "loss_mask": mask}


class Elastic:
    """`class Trainer(Elastic, SFTTrainer)`: windrow's order instead of a sampler's, which any number of ranks continues.

    verl saves a state of its own loader for each rank: it fits the number of ranks that it was saved by.
    """

    def _build_dataloader(self):
        super()._build_dataloader()
        dataset, rank, size = self.train_dataset, self.engine.get_data_parallel_rank(), self.engine.get_data_parallel_size()

        def collate(batch):
            return self.collate_fn([dataset.sample(batch, row) for row in range(len(batch["input_ids"]))])

        self.train_dataloader = self.train_sampler = wr.Loader(
            dataset.view,
            global_batch_size=self.global_batch_size,
            seed=self.config.data.get("seed", 0),
            rank=rank,
            world_size=size,
            framework="torch",
            collate=collate,
        )

    def fit(self):
        # Where the run is follows from its step alone.
        epoch, steps = divmod(self.resume_global_step, len(self.train_dataloader))
        place = {"epoch": epoch, "samples": steps * self.global_batch_size}
        self.train_dataloader.load_state_dict({**self.train_dataloader.state_dict(), **place})
        super().fit()
