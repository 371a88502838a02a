"""windrow in MaxText: packed rows, and a state in one file that any number of processes resumes from.

For MaxText's git since August 2026: `python windrow_maxtext.py base.yml dataset_type=grain …`. docs/trainers.md says how to use it.
"""

import jax
import numpy as np
from grain.experimental import ElasticIterator

import windrow as wr


# Segments count from 1: 0 is padding, and a target that is not learned.
NAMES = {"input_ids": "inputs", "position_ids": "inputs_position", "segments": "inputs_segmentation", "segment_ids": None}
NAMES |= {"labels": "targets", "loss_masks": "targets_segmentation"}


class Batches(ElasticIterator):
    """The rows of one process. MaxText writes the state of an ElasticIterator once for all processes, since any number may read it."""

    def __init__(self, view, *, global_batch_size, seed, process_index, process_count):
        options = {"rank": process_index, "world_size": process_count, "dtype": "int32", "names": NAMES, "seed": seed}
        self.loader = wr.Loader(view, global_batch_size=global_batch_size, **options)

    def __iter__(self):
        return self

    def __next__(self):
        batch = next(self.loader)
        batch["targets_position"] = batch["inputs_position"]
        batch["targets_segmentation"] *= batch["inputs_segmentation"]
        np.maximum(batch["targets"], 0, out=batch["targets"])
        return batch

    def get_state(self):
        return self.loader.state_dict()

    def set_state(self, state):
        self.loader.load_state_dict(state)


def make_train_iterator(config, mesh, process_indices):
    """In place of the one that MaxText has for `dataset_type=grain`, whose state it saves."""
    from maxtext.input_pipeline.multihost_dataloading import MultiHostDataLoadIterator

    fields = ["input_ids", "labels", "position_ids", "segment_ids"]
    view = wr.open(config.grain_train_files).pack(config.max_target_length, documents=True, fields=fields)
    ranks = {"process_index": process_indices.index(jax.process_index()), "process_count": len(process_indices)}
    batches = Batches(view, global_batch_size=config.global_batch_size_to_load, seed=config.data_shuffle_seed, **ranks)
    return MultiHostDataLoadIterator(batches, mesh)


if __name__ == "__main__":
    from absl import app
    from maxtext.input_pipeline import input_pipeline_interface
    from maxtext.trainers.pre_train import train

    input_pipeline_interface.make_grain_train_iterator = make_train_iterator
    app.run(train.main)
