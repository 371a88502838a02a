"""A bar for what ``progress=True`` asks for: tqdm's in notebooks, a line of text on stderr elsewhere."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, TextIO

__all__ = ["bar", "bar_of_objects", "bar_of_tasks", "is_watched"]

BETWEEN_LINES_SECS = 3.0
WIDTH = 30


def bar() -> Bar | TqdmBar:
    """The bar that fits where the program runs. It is called as a ``progress`` function is, and closed at the end."""
    tqdm = _tqdm()
    return Bar(sys.stderr) if tqdm is None else TqdmBar(tqdm(unit="B", unit_scale=True))


def bar_of_tasks() -> CountedBar:
    """Shows the progress of what ``prep.status`` returns."""
    tqdm = _tqdm()
    return CountedBar(Bar(sys.stderr, _counted("tasks")) if tqdm is None else TqdmBar(tqdm(unit=" tasks")), "done", "tasks")


def bar_of_objects() -> CountedBar:
    """Shows how many objects of a store were looked at to open them."""
    tqdm = _tqdm()
    drawn = Bar(sys.stderr, _counted("objects")) if tqdm is None else TqdmBar(tqdm(unit=" objects"))
    return CountedBar(drawn, "done_objects", "total_objects")


def is_watched() -> bool:
    """Whether somebody is there who would see a bar: at a terminal, or in a notebook."""
    return sys.stderr.isatty() or _tqdm() is not None


class CountedBar:
    """A bar over what is not counted in bytes: how many are done is ``now[done]``, of ``now[total]``."""

    def __init__(self, drawn: Bar | TqdmBar, done: str, total: str) -> None:
        self._drawn, self._done, self._total = drawn, done, total
        self.close = drawn.close

    def __call__(self, now: dict[str, Any]) -> None:
        self._drawn({**now, "done_bytes": now[self._done], "total_bytes": now[self._total]})


class TqdmBar:
    """A tqdm bar over bytes, with the number of records beside it."""

    def __init__(self, drawn: Any) -> None:
        self._bar = drawn

    def __call__(self, now: dict[str, int]) -> None:
        self._bar.total = now["total_bytes"] or None
        if "records" in now:
            self._bar.set_postfix_str(f"{now['records']:,} records", refresh=False)
        self._bar.update(now["done_bytes"] - self._bar.n)

    def close(self) -> None:
        """No more calls come."""
        self._bar.close()


class Bar:
    """One line that is drawn over itself on a terminal; a line every few seconds elsewhere, as in a log."""

    def __init__(self, out: TextIO, amount: Callable[[float], str] | None = None) -> None:
        self._out = out
        self._amount = amount or _bytes
        self._is_terminal = out.isatty()
        self._began = time.monotonic()
        self._told = self._began
        self._width = 0

    def __call__(self, now: dict[str, int]) -> None:
        done, total = now["done_bytes"], now["total_bytes"]
        at = time.monotonic()
        # A total of 0 is one that is not known.
        if not self._is_terminal and at - self._told < BETWEEN_LINES_SECS and (done < total or not total):
            return
        self._told = at
        share = min(done / total, 1.0) if total else 0.0
        speed = done / max(at - self._began, 1e-9)
        amount = self._amount
        line = f"{now['records']:,} records  {amount(speed)}/s" if "records" in now else f"{amount(speed)}/s"
        line = f"{share:4.0%}  {amount(done)} of {amount(total)}  {line}" if total else f"{amount(done)}  {line}"
        if not self._is_terminal:
            print(line, file=self._out, flush=True)
            return
        if total:
            full = round(share * WIDTH)
            line = f"[{'#' * full}{'.' * (WIDTH - full)}] {line}"
        print(f"\r{line:<{self._width}}", end="", file=self._out, flush=True)
        self._width = len(line)

    def close(self) -> None:
        """No more calls come: what is written next begins on a line of its own."""
        if self._width:
            print(file=self._out, flush=True)
            self._width = 0


def _tqdm() -> Any:
    """tqdm in a notebook, if it is installed."""
    # Only a program that runs in IPython has imported it.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    try:
        with warnings.catch_warnings():
            # Without ipywidgets tqdm draws a bar of text, which is as good.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


def _counted(what: str) -> Callable[[float], str]:
    return lambda count: f"{count:,.0f} {what}" if count == int(count) else f"{count:,.2f} {what}"


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
