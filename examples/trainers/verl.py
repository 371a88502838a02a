"""windrow in verl's SFT trainer: rows without padding, and a run that any number of data-parallel ranks resumes.

For verl 0.9. docs/trainers.md says how to use it.
"""

import torch

import windrow as wr

PADDING = -1  # no token ID


class WindrowDataset(torch.utils.data.Dataset):
    """What `data.custom_cls` names. `data.train_files` is anything that windrow opens as tokens; needs `data.pad_mode=no_padding`."""

    def __init__(self, parquet_files, tokenizer=None, config=None, processor=None, max_samples=-1):
        self.view = wr.open(parquet_files).records(config["max_length"], labels="same", pad_value=PADDING, pad="longest")

    def __len__(self):
        return len(self.view)

    def __getitem__(self, i):
        return sample(self.view[i])


def sample(row, rng=None):
    """A row as verl takes it, without padding: it shifts labels and mask itself."""
    is_token = torch.from_numpy(row["input_ids"] != PADDING)
    tokens, mask = torch.from_numpy(row["input_ids"])[is_token], torch.from_numpy(row["loss_masks"])[is_token]
    # verl joins rows: the first token would be learned from the end of another.
    mask[0] = 0
    return {"input_ids": tokens, "position_ids": torch.arange(len(tokens)), "loss_mask": mask}


class Elastic:
    """`class Trainer(Elastic, SFTTrainer)`: the order is windrow's, so that any number of data-parallel ranks continues it.

    The state of verl's own loader is one for each rank, and fits the number of ranks that saved it.
    """

    def _build_dataloader(self):
        super()._build_dataloader()
        self.train_dataloader = self.train_sampler = wr.Loader(
            self.train_dataset.view,
            global_batch_size=self.global_batch_size,
            seed=self.config.data.get("seed", 0),
            rank=self.engine.get_data_parallel_rank(),
            world_size=self.engine.get_data_parallel_size(),
            map=sample,
            collate=self.collate_fn,
        )

    def fit(self):
        # Where the run is follows from its step; a rank that is new has no file of verl's.
        loader = self.train_dataloader
        epoch, steps = divmod(self.resume_global_step, len(loader))
        loader.load_state_dict({**loader.state_dict(), "epoch": epoch, "samples": steps * self.global_batch_size})
        super().fit()
