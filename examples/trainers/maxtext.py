"""windrow in MaxText: rows that are packed, and a state in one file that any number of processes resumes from.

    python windrow_maxtext.py base.yml dataset_type=grain grain_train_files=tokens …

For MaxText's git since August 2026. docs/trainers.md says how to use it.
"""

import jax
import numpy as np
from grain.experimental import ElasticIterator

import windrow as wr


class Batches(ElasticIterator):
    """The rows of one process. MaxText writes the state of an ElasticIterator once for all processes, since any number may read it."""

    def __init__(self, view, *, global_batch_size, seed, process_index, process_count):
        ranks = {"rank": process_index, "world_size": process_count}
        self.loader = wr.Loader(view, global_batch_size=global_batch_size, seed=seed, dtype="int32", **ranks)

    def __iter__(self):
        return self

    def __next__(self):
        batch = next(self.loader)
        segments, is_learned = batch["segment_ids"] + 1, batch["labels"] != -100  # segments count from 1: 0 is padding
        return {
            "inputs": batch["input_ids"],
            "inputs_position": batch["position_ids"],
            "inputs_segmentation": segments,
            "targets": np.where(is_learned, batch["labels"], 0),
            "targets_position": batch["position_ids"],
            "targets_segmentation": np.where(is_learned, segments, 0),
        }

    def get_state(self):
        return self.loader.state_dict()

    def set_state(self, state):
        self.loader.load_state_dict(state)


def make_train_iterator(config, mesh, process_indices):
    """In place of the one that MaxText has for `dataset_type=grain`, whose state it saves."""
    from maxtext.input_pipeline.multihost_dataloading import MultiHostDataLoadIterator

    view = wr.open(config.grain_train_files).pack(config.max_target_length, documents=True)
    ranks = {"process_index": process_indices.index(jax.process_index()), "process_count": len(process_indices)}
    batches = Batches(view, global_batch_size=config.global_batch_size_to_load, seed=config.data_shuffle_seed, **ranks)
    return MultiHostDataLoadIterator(batches, mesh)


if __name__ == "__main__":
    from absl import app
    from maxtext.input_pipeline import input_pipeline_interface
    from maxtext.trainers.pre_train import train

    input_pipeline_interface.make_grain_train_iterator = make_train_iterator
    app.run(train.main)
