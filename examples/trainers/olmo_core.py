"""windrow in OLMo-core: its data loader of a view, with one small state that any number of ranks resumes from.

For ai2-olmo-core 2.6, whose Trainer saves the state in each checkpoint. docs/trainers.md says how to use it.
"""

from itertools import islice

import torch
from olmo_core.data import DataLoaderBase

import windrow as wr


class WindrowDataLoader(DataLoaderBase):
    """Batches of a view of one length. `global_batch_size` counts tokens, as OLMo-core does; epochs count from 1.

    With `documents`, of a view that has `cu_seqlens`, attention stays within documents: OLMo-core needs flash attention for it.
    """

    def __init__(self, view, *, sequence_length, seed=0, documents=False, **base):
        super().__init__(**base)
        rows, rest = divmod(self.global_batch_size, sequence_length)
        if rest:
            raise ValueError(f"global_batch_size={self.global_batch_size} is not a multiple of {sequence_length} tokens")
        self.sequence_length, self.documents = sequence_length, documents
        ranks = {"rank": self.dp_rank, "world_size": self.dp_world_size}
        self.loader = wr.Loader(view, global_batch_size=rows, seed=seed, framework="torch", **ranks)

    @property
    def total_batches(self):
        return len(self.loader)

    def state_dict(self):
        return {"loader": self.loader.state_dict(), "batches_processed": self.batches_processed}

    def load_state_dict(self, state):
        self.loader.load_state_dict(state["loader"])
        self.batches_processed = state["batches_processed"]

    def reshuffle(self, epoch=None, **_):
        # The Trainer calls it after it has loaded a state, too: the loader keeps its place in the epoch that it is in.
        self._epoch = epoch or (self._epoch or 0) + 1
        self.loader.set_epoch(self._epoch - 1)

    def _iter_batches(self):
        for batch in islice(self.loader.stream(), self.total_batches - self.batches_processed):
            inputs = {"input_ids": batch["input_ids"], "labels": batch["labels"]}
            if self.documents:
                # Padding counts as a document.
                lengths = torch.nn.functional.pad(batch["cu_seqlens"], (0, 1), value=self.sequence_length).diff(dim=1)
                inputs |= {"doc_lens": lengths, "max_doc_lens": lengths.amax(1).tolist()}
            yield inputs

    def get_mock_batch(self):
        tokens = torch.zeros(self.rank_batch_size // self.sequence_length, self.sequence_length, dtype=torch.int64)
        return {"input_ids": tokens, "labels": tokens}

    def global_num_tokens_in_batch(self, batch):
        return self.global_batch_size
