"""Batches of documents as flash attention takes them: one long row, and where each document begins in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from windrow.errors import ConfigError
from windrow.failure import failure

__all__ = ["varlen"]

# Fields with one number for each position.
_PER_POSITION = ("input_ids", "labels", "loss_masks", "position_ids", "segment_ids")


def varlen(batch: Mapping[str, Any]) -> dict[str, Any]:
    """A batch of ``pack(documents=True)`` or ``bins`` as one row without padding.

    Gives ``input_ids``, ``labels``, ``loss_masks``, ``position_ids`` and ``segment_ids``, as far as the batch has them, each
    ``[total]``, on their device; ``cu_seqlens`` int32 ``[documents + 1]``, where each begins and the end; and ``max_seqlen``, an
    ``int``. ``flash_attn_varlen_func(q, k, v, cu, cu, longest, longest, causal=True)`` takes them as they are, with q, k and v
    ``[total, heads, width]``. Full rows are not copied. NumPy arrays become tensors.

    Raises:
        ConfigError: a batch without ``cu_seqlens``, or one sample instead of a batch.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    >>> np.array([5, 6, 0, 7, 8, 9, 0, 5, 6], np.uint16).tofile(path)
    >>> view = wr.open(path, dtype="uint16").pack(4, eos=0, documents=True)
    >>> row = wr.torch.varlen(view.batch([0, 1]))
    >>> row["input_ids"].tolist(), row["cu_seqlens"].tolist(), row["max_seqlen"]
    ([5, 6, 0, 7, 8, 9, 0, 5], [0, 3, 4, 7, 8], 3)
    """
    if "cu_seqlens" not in batch:
        raise failure(
            ConfigError,
            "the batch has no cu_seqlens: nothing says where its documents begin",
            hint="cut it with pack(length, documents=True) or bins(length)",
        )
    ends = torch.as_tensor(batch["cu_seqlens"])
    if ends.dim() != 2:
        raise failure(ConfigError, "one sample, expected a batch", hint="take batches of a loader, or of view.batch([…])")
    lengths = ends.diff(dim=1).flatten()
    lengths = lengths[lengths > 0]
    cu_seqlens = torch.zeros(len(lengths) + 1, dtype=torch.int32, device=ends.device)
    cu_seqlens[1:] = lengths.cumsum(0)
    out: dict[str, Any] = {}
    for name in _PER_POSITION:
        if name in batch:
            values = torch.as_tensor(batch[name])
            is_real = torch.arange(values.shape[1], device=values.device) < ends[:, -1:].to(values.device)
            out[name] = values.flatten() if bool(is_real.all()) else values[is_real]
    return {**out, "cu_seqlens": cu_seqlens, "max_seqlen": int(lengths.max()) if len(lengths) else 0}
