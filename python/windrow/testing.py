"""Checks of models that are fed by windrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from windrow.errors import ConfigError
from windrow.failure import failure

__all__ = ["check_no_leak"]


def check_no_leak(
    model: Callable[[dict[str, Any]], Any], batch: Mapping[str, Any], *, atol: float = 1e-5, rtol: float = 1e-5
) -> None:
    """Checks that no document of a row sees another one: changing the tokens of one moves no logits of the others.

    ``model`` gets the batch as a dict of tensors and returns logits ``[B, length, …]``, or an object with such ``logits``. It is
    called once, and once more for each document of the row that has most of them, without gradients; a module should be in
    evaluation mode, as dropout moves all logits.

    Args:
        model: a function of the batch.
        batch: of ``pack(documents=True)``, ``bins`` or ``segments``: ``input_ids`` and ``segment_ids``, ``[B, length]``.
        atol, rtol: what logits may differ by, as ``torch.isclose`` has it.

    Raises:
        AssertionError: logits of a document moved with the tokens of another one; the message names row, documents, position and
            by how much. Also where a document's own logits never move: such a model tells nothing.
        ConfigError: a batch without ``segment_ids``, with one document in each row, or with one token ID only.

    >>> import windrow as wr, numpy as np, tempfile, pathlib, torch
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    >>> np.array([5, 6, 0, 7, 8, 9, 0, 5, 6], np.uint16).tofile(path)
    >>> batch = wr.open(path, dtype="uint16").pack(8, eos=0, documents=True).batch([0])
    >>> wr.testing.check_no_leak(lambda batch: torch.nn.functional.one_hot(batch["input_ids"], 10).float(), batch)
    >>> summed = lambda batch: batch["input_ids"].float().cumsum(1)[..., None]
    >>> wr.testing.check_no_leak(summed, batch)
    Traceback (most recent call last):
    AssertionError: row 0: changing document 0 moved the logits of document 1 by 3, first at position 3
    """
    missing = [name for name in ("input_ids", "segment_ids") if name not in batch]
    if missing:
        raise failure(
            ConfigError,
            f"the batch has no {' and no '.join(missing)}",
            hint="cut it with pack(length, documents=True), bins(length) or segments(length)",
        )
    tensors = {name: torch.as_tensor(values) for name, values in batch.items()}
    tokens, documents = tensors["input_ids"], tensors["segment_ids"]
    most = int(documents.max()) + 1
    known = tokens[documents >= 0].unique()
    if most < 2 or len(known) < 2:
        raise failure(
            ConfigError,
            "every row is one document, or all tokens are the same: nothing can leak that would be seen",
            hint="give a batch with shorter documents",
        )
    with torch.no_grad():
        before = _logits(model, tensors)
        moved_by_itself = False
        for document in range(most):
            changed = documents == document
            # Another token that the batch has.
            places = torch.searchsorted(known, tokens[changed])
            other = tokens.clone()
            other[changed] = known[(places + 1) % len(known)]
            after = _logits(model, {**tensors, "input_ids": other})
            is_near = torch.isclose(after, before, rtol=rtol, atol=atol).flatten(2).all(-1)
            moved_by_itself |= bool((~is_near & changed).any())
            leaked = ~is_near & ~changed & (documents >= 0) & changed.any(1, keepdim=True)
            if bool(leaked.any()):
                row, position = (int(i) for i in leaked.nonzero()[0])
                by = float((after - before).abs()[row, position].max())
                raise AssertionError(
                    f"row {row}: changing document {document} moved the logits of document {int(documents[row, position])} "
                    f"by {by:.3g}, first at position {position}"
                )
    if not moved_by_itself:
        raise AssertionError("no logits moved with the tokens of their own document: the model does not read input_ids")


def _logits(model: Callable[[dict[str, Any]], Any], batch: dict[str, Any]) -> torch.Tensor:
    out = model(batch)
    logits = out if isinstance(out, torch.Tensor) else out.logits
    if logits.shape[:2] != batch["input_ids"].shape:
        raise failure(
            ConfigError,
            f"logits of shape {list(logits.shape)} for tokens of shape {list(batch['input_ids'].shape)}",
            hint="return logits [B, length, …] of the batch that the model is given",
        )
    return logits
