"""A position as Python counts it, from either end."""

from __future__ import annotations

from operator import index as as_index
from typing import Any

import windrow

from ..failure import failure


def in_range(index: Any, length: int, what: str) -> int:
    """A number from either end as one from the front; raises `windrow.OutOfRangeError` (an IndexError).

    >>> in_range(-1, 5, "sample")
    4
    """
    number = as_index(index)
    if not -length <= number < length:
        raise failure(windrow.OutOfRangeError, f"{what} {number} is out of range: there are {length}")
    return number % length
