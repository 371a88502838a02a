"""Scalers by name: a function of a whole sequence, and what windrow calls it."""

from __future__ import annotations

from collections.abc import Callable

import torch

import windrow

from ....failure import failure

Transform = Callable[[torch.Tensor], torch.Tensor]
Normalization = str | Transform | None


def by_max(sequence: torch.Tensor) -> torch.Tensor:
    """Divided by its largest magnitude, float32; a sequence of zeros as it is."""
    values = sequence.to(torch.float32)
    most = values.abs().max() if values.numel() else values.new_zeros(())
    return values if most == 0 else values / most


def by_zero(sequence: torch.Tensor) -> torch.Tensor:
    """Mean 0 and deviation 1, float32; only the mean is taken where the deviation is 0 or not finite."""
    values = sequence.to(torch.float32)
    if not values.numel():
        return values
    wide = values.to(torch.float64)
    mean, deviation = wide.mean().to(torch.float32), wide.std(unbiased=False).to(torch.float32)
    return (values - mean) / deviation if deviation != 0 and torch.isfinite(deviation) else values - mean


METHODS: dict[str, Transform] = {"max": by_max, "zero": by_zero}

# What the core does itself, from statistics that it keeps; of the values as float32, as the original does it.
NATIVE: dict[Transform | None, str | None] = {None: None, by_max: "max-float32", by_zero: "zero-float32"}


def resolve(method: Normalization) -> Transform | None:
    """The function of a name; a function is its own.

    Raises `windrow.ConfigError` (a ValueError) for an unknown name.
    """
    if method is None or callable(method):
        return method
    if (found := METHODS.get(str(method).lower())) is not None:
        return found
    raise failure(windrow.ConfigError, f"Unknown normalization method: {method}", hint="one of max, zero, or a function")
