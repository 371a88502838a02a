"""Writes the pairs beside this file with Megatron-Core's own builder, and what it reads back as expected.json."""

import importlib.metadata
import json
from pathlib import Path

import numpy as np
import torch
from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder

HERE = Path(__file__).resolve().parent
DOCUMENTS = [[[1, 2, 3], [4]], [[5, 6]], [[7]]]


def main():
    expected = {"megatron-core": importlib.metadata.version("megatron-core")}
    for dtype in (np.uint16, np.int32):
        name = f"{np.dtype(dtype).name}"
        builder = IndexedDatasetBuilder(str(HERE / f"{name}.bin"), dtype=dtype)
        for document in DOCUMENTS:
            for sequence in document:
                builder.add_item(torch.tensor(sequence))
            builder.end_document()
        builder.finalize(str(HERE / f"{name}.idx"))
        data = IndexedDataset(str(HERE / name))
        expected[name] = [data[i].tolist() for i in range(len(data))]
    (HERE / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
