"""The random numbers of a sample, wherever it is read."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from windrow._options import checked
from windrow.errors import ConfigError
from windrow.failure import failure

if TYPE_CHECKING:
    from typing import SupportsIndex

__all__ = ["sample_rng"]

MAP = 0x6D61703100000000
"""``"map1"``: the second word of the key, so that nothing else draws these numbers."""


@checked
def sample_rng(seed: SupportsIndex, epoch: SupportsIndex, sample: SupportsIndex, pass_: SupportsIndex = 0) -> np.random.Generator:
    """The generator that ``Loader(map=f)`` gives f for a sample: the same numbers on any rank and thread, and after resuming.

    ``np.random.Generator(np.random.Philox(key=[seed, MAP], counter=[0, sample, pass_, epoch]))`` with ``MAP = 0x6D61703100000000``:
    it counts, so nothing has to be kept between samples. It cannot ``spawn``.

    Args:
        seed: the ``seed`` of the loader.
        epoch: the epoch, from 0.
        sample: the sample's number in its view; of a mix, numbers run through its views in their order.
        pass_: how often its view of a mix was gone through before in this epoch; else 0.

    Raises:
        ConfigError: a number below 0, or not below 2⁶⁴.

    >>> import windrow as wr
    >>> rng = wr.sample_rng(7, epoch=0, sample=3)
    >>> again = wr.sample_rng(7, epoch=0, sample=3)
    >>> rng.integers(1000) == again.integers(1000)
    np.True_
    """
    numbers = {"seed": seed, "sample": sample, "pass_": pass_, "epoch": epoch}
    words = {name: operator.index(number) for name, number in numbers.items()}
    for name, number in words.items():
        if not 0 <= number < 1 << 64:
            raise failure(ConfigError, f"{name} is {number}", hint="a whole number from 0, below 2⁶⁴")
    # As arrays: of a list with a number above 2⁶³ NumPy makes floats.
    key = np.array([words["seed"], MAP], dtype=np.uint64)
    counter = np.array([0, words["sample"], words["pass_"], words["epoch"]], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))
