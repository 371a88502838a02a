"""Batches of documents as flash attention takes them: one long row, and where each document begins in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch

from windrow.errors import ConfigError
from windrow.failure import failure

__all__ = ["varlen"]

# Fields with one number for each position.
_PER_POSITION = ("input_ids", "labels", "loss_masks", "position_ids", "segment_ids", "segments")


def varlen(
    batch: Mapping[str, Any], names: Mapping[str, str | None] | Literal["transformers"] | None = None, *, context: int = 1
) -> dict[str, Any]:
    """A batch of ``pack(documents=True)`` or ``bins`` as one row without padding.

    Gives ``input_ids``, ``labels``, ``loss_masks``, ``position_ids``, ``segment_ids`` and ``segments``, as far as the batch has them, each
    ``[total]``, on their device; ``cu_seqlens`` int32 ``[documents + 1]``, where each begins and the end; and ``max_seqlen``, an
    ``int``. ``flash_attn_varlen_func(q, k, v, cu, cu, longest, longest, causal=True)`` takes them as they are, with q, k and v
    ``[total, heads, width]``. Full rows are not copied. NumPy arrays become tensors.

    Of a batch of ``Loader(names=)``, give the same ``names``: fields are found, and given, by what they are called there.

    With ``names="transformers"`` it is what Hugging Face's causal models with flash attention take, as ``model(**row, use_cache=False)``:
    ``input_ids``, ``labels`` and ``position_ids`` int64 ``[1, total]``, ``cu_seq_lens_q`` and ``cu_seq_lens_k`` int32
    ``[documents + 1]``, ``max_length_q`` and ``max_length_k``, each an ``int``. Position IDs begin at 0 in each document, whose
    first label is -100, as the token before it is of another. Those models find the documents in batches of one row only, and
    shift labels themselves.

    ``context`` is the size of the context group, of a batch of ``Loader(context=)``: tokens are then those of this rank, and ``cu_seqlens`` and
    ``max_seqlen`` those of whole documents, as Transformer Engine takes them.

    Raises:
        ConfigError: a batch of a context group without its size, or with ``names``;
        ConfigError: a batch without ``cu_seqlens``, or one sample instead of a batch; for transformers labels that are not the
            inputs, which would be shifted twice; other names.

    >>> import windrow as wr, numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    >>> np.array([5, 6, 0, 7, 8, 9, 0, 5, 6], np.uint16).tofile(path)
    >>> view = wr.open(path, dtype="uint16").pack(4, eos=0, documents=True)
    >>> row = wr.torch.varlen(view.batch([0, 1]))
    >>> row["input_ids"].tolist(), row["cu_seqlens"].tolist(), row["max_seqlen"]
    ([5, 6, 0, 7, 8, 9, 0, 5], [0, 3, 4, 7, 8], 3)
    >>> view = wr.open(path, dtype="uint16").pack(4, eos=0, documents=True, labels="same")
    >>> row = wr.torch.varlen(view.batch([0, 1]), names="transformers")
    >>> row["labels"].tolist(), row["position_ids"].tolist(), row["max_length_q"]
    ([[-100, 6, 0, -100, -100, 9, 0, -100]], [[0, 1, 2, 0, 0, 1, 2, 0]], 3)
    """
    called = names if isinstance(names, Mapping) else {}
    if not (isinstance(names, Mapping) or names in (None, "transformers")):
        raise failure(ConfigError, f"names={names!r}", hint='names="transformers", the names= of a loader, or None')
    theirs = {ours: called.get(ours, ours) for ours in (*_PER_POSITION, "cu_seqlens")}
    batch = {ours: batch[name] for ours, name in theirs.items() if name in batch}
    if "cu_seqlens" not in batch:
        raise failure(
            ConfigError,
            "the batch has no cu_seqlens: nothing says where its documents begin",
            hint="cut it with pack(length, documents=True) or bins(length); of a loader with names=, give varlen the same names",
        )
    ends = torch.as_tensor(batch["cu_seqlens"])
    if ends.dim() != 2:
        raise failure(ConfigError, "one sample, expected a batch", hint="take batches of a loader, or of view.batch([…])")
    longest = max((torch.as_tensor(batch[name]).shape[1] for name in _PER_POSITION if name in batch), default=0)
    if len(ends) and longest and (int(ends.max()) > longest * context or (names == "transformers" and context > 1)):
        raise failure(
            ConfigError,
            f"rows of {longest} positions whose documents end at {int(ends.max())}: the part of a rank of a context group",
            hint="varlen(batch, context=size); transformers' models take whole rows",
        )
    lengths = ends.diff(dim=1).flatten()
    lengths = lengths[lengths > 0]
    cu_seqlens = torch.zeros(len(lengths) + 1, dtype=torch.int32, device=ends.device)
    cu_seqlens[1:] = lengths.cumsum(0)
    out: dict[str, Any] = {}
    for name in _PER_POSITION:
        if name in batch:
            values = torch.as_tensor(batch[name])
            is_real = torch.arange(values.shape[1], device=values.device) < (ends[:, -1:] // context).to(values.device)
            out[name] = values.flatten() if bool(is_real.all()) else values[is_real]
    out |= {"cu_seqlens": cu_seqlens, "max_seqlen": int(lengths.max()) if len(lengths) else 0}
    if names == "transformers":
        return _of_transformers(out, lengths)
    return {called.get(ours) or ours: values for ours, values in out.items()}


def _of_transformers(row: dict[str, Any], lengths: torch.Tensor) -> dict[str, Any]:
    ends, longest = row["cu_seqlens"], row["max_seqlen"]
    starts = ends[:-1].repeat_interleave(lengths)
    flat = {name: row[name].long() for name in ("input_ids", "labels") if name in row}
    if flat.keys() == {"input_ids", "labels"}:
        labels = flat["labels"]
        if bool(((labels != flat["input_ids"]) & (labels >= 0)).any()):
            raise failure(
                ConfigError,
                "the labels are not the inputs: transformers' models shift labels themselves, and would learn the token after the next",
                hint='cut the view with labels="same"',
            )
        # The token before it is of another document.
        flat["labels"] = labels.index_fill(0, ends[:-1].long(), -100)
    flat["position_ids"] = torch.arange(len(starts), device=starts.device) - starts
    out: dict[str, Any] = {name: values[None] for name, values in flat.items()}
    return {**out, "cu_seq_lens_q": ends, "cu_seq_lens_k": ends, "max_length_q": longest, "max_length_k": longest}
