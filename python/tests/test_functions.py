"""What a plan calls a function: by its source and the plain values it holds, or refused until it has a name."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow._function import word


class Scaled:
    def __init__(self, by: Any) -> None:
        self.by = by

    def __call__(self, series: Any) -> Any:
        return series * self.by


@functools.lru_cache
def remembered(number: int) -> int:
    return number + 1


def through(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda series: function(series)


def in_plan(function: Callable[..., Any]) -> str:
    return word(function, is_plan=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Scaled(1), Scaled(2)),
        (through(Scaled(1)), through(Scaled(2))),
        (through(np.log), through(np.exp)),
        (through({"a": 1}.get), through({"a": 2}.get)),
        ({"a": 1}.get, {"a": 2}.get),
        (functools.partial(np.clip, a_max=1), functools.partial(np.clip, a_max=2)),
    ],
)
def test_functions_that_hold_something_else_have_other_words(one: Any, other: Any) -> None:
    assert in_plan(one) == in_plan(one) != in_plan(other)


def test_what_is_wrapped_is_told_by_its_source_and_what_is_of_c_by_its_name() -> None:
    assert in_plan(remembered).partition("#")[2]
    assert [in_plan(function) for function in (np.log, abs)] == ["numpy.log", "builtins.abs"]


@pytest.mark.parametrize("function", [Scaled(object()), through(Scaled(object())), through(object())])  # type: ignore[arg-type]
def test_a_value_that_is_not_plain_asks_for_a_name(tmp_path: Path, function: Any) -> None:
    np.save(tmp_path / "series.npy", np.ones((2, 8), np.float32))
    ds = wr.open(tmp_path / "series.npy")
    with pytest.raises(wr.ConfigError, match="holds a value that is not plain[\\s\\S]*scaler_name="):
        ds.windows(4, scaler=function)
    with pytest.raises(wr.ConfigError, match="scaler_name"):
        ds.windows(4, scaler="max", scaler_name="a name")
    view = ds.windows(4, scaler=lambda series: series, scaler_name="as it is")
    assert "as it is" in wr.Loader(view, 1).plan
