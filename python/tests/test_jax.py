"""Batches as jax arrays."""

from __future__ import annotations

from itertools import islice

import jax
import numpy as np

import windrow as wr


def test_jax_gets_what_numpy_gets(view: wr.View) -> None:
    pairs = zip(
        wr.Loader(view, 8, seed=1, dtype="int32"), wr.Loader(view, 8, seed=1, dtype="int32", framework="jax"), strict=False
    )
    kept = []
    for a, b in islice(pairs, 30):
        assert all(isinstance(array, jax.Array) for array in b.values())
        assert all(np.array_equal(a[name], np.asarray(b[name])) for name in a)
        kept.append((a["labels"].copy(), b["labels"]))
    assert all(np.array_equal(a, np.asarray(b)) for a, b in kept)


def test_jax_has_no_bfloat16_but_ml_dtypes(view: wr.View) -> None:
    batch = next(wr.Loader(view, 2, shuffle=False, dtype=jax.numpy.bfloat16, framework="jax"))
    assert batch["labels"].dtype == jax.numpy.bfloat16
    assert batch["labels"][:, 0].tolist() == [1, 17]


def test_a_jitted_step_takes_a_batch(view: wr.View) -> None:
    step = jax.jit(lambda batch: (batch["labels"] - batch["input_ids"]).sum())
    loader = wr.Loader(view, 8, framework="jax", dtype="int32")
    assert int(step(next(loader))) == 8 * 16
