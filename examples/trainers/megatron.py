"""windrow in Megatron: what `get_batch` reads, in its names and dtypes, and a state that any data-parallel size resumes from.

For loops with megatron-core 0.16, and for Megatron-LM with `--dataloader-type external`. docs/trainers.md says how to use it.
"""

import torch
from megatron.core import parallel_state

import windrow as wr


class WindrowIterator:
    """Micro batches of a view with `documents=True`, after `initialize_model_parallel`, where Megatron calls `next`.

    `checkpoint` is what Megatron-LM saved of data-parallel rank 0; every rank of a resumed run begins there, however many there are.
    With `is_sliced`, and a view with `multiple=2 * cp`, a context-parallel rank reads its slices of the documents alone.
    """

    def __init__(self, view, *, micro_batch_size, global_batch_size, seed=0, checkpoint=None, is_sliced=False):
        group = parallel_state.get_data_parallel_group()
        micro_batches, rest = divmod(global_batch_size, micro_batch_size * group.size())
        if rest:
            raise ValueError(f"{global_batch_size} rows are not a multiple of {micro_batch_size} rows on {group.size()} ranks")
        self.loader = wr.Loader(
            view,
            global_batch_size=global_batch_size,
            accumulate=micro_batches,
            seed=seed,
            group=group,
            context=parallel_state.get_context_parallel_group() if is_sliced else None,
            names={"input_ids": "tokens", "loss_masks": "loss_mask"},
            dtypes={"loss_masks": "float32", "position_ids": "int64"},
            framework="torch",
        )
        if checkpoint:
            self.loader.load_state_dict(torch.load(checkpoint, weights_only=True)["dataloader_state_dict"])

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.loader)

    def save_state(self):
        """What Megatron-LM saves with `--dataloader-save`: the same on every data-parallel rank."""
        return self.loader.state_dict()
