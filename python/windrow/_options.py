"""Functions of the package as those of the native module are: an option that one does not have is refused with the one that is meant."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from windrow._native import _unexpected

__all__ = ["checked", "method"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def checked(function: _Function) -> _Function:
    """Refuses an option that the function does not have, naming the one that is meant."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        for name in options:
            if name not in names:
                raise TypeError(_unexpected(function.__name__, name, [name for name in names if name not in ("self", "cls")]))
        return function(*given, **options)

    return call  # type: ignore[return-value]


def method(of: type, function: Callable[..., Any]) -> None:
    """Makes a function a method of a native type."""
    function.__qualname__ = f"{of.__name__}.{function.__name__}"
    setattr(of, function.__name__, checked(function))
