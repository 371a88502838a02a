"""A bar for what ``progress=True`` asks for: tqdm's in notebooks, a line of text on stderr elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

__all__ = ["bar"]

BETWEEN_LINES_SECS = 3.0
WIDTH = 30


def bar() -> Bar | TqdmBar:
    """The bar that fits where the program runs. It is called as a ``progress`` function is, and closed at the end."""
    if _is_notebook():
        try:
            from tqdm.auto import tqdm
        except ImportError:
            pass
        else:
            return TqdmBar(tqdm)
    return Bar(sys.stderr)


class TqdmBar:
    """A tqdm bar over bytes, with the number of records beside it."""

    def __init__(self, tqdm: Any) -> None:
        self._bar = tqdm(unit="B", unit_scale=True)

    def __call__(self, now: dict[str, int]) -> None:
        self._bar.total = now["total_bytes"] or None
        self._bar.set_postfix_str(f"{now['records']:,} records", refresh=False)
        self._bar.update(now["done_bytes"] - self._bar.n)

    def close(self) -> None:
        """No more calls come."""
        self._bar.close()


class Bar:
    """One line that is drawn over itself on a terminal; a line every few seconds elsewhere, as in a log."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
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
        line = f"{now['records']:,} records  {_bytes(speed)}/s"
        line = f"{share:4.0%}  {_bytes(done)} of {_bytes(total)}  {line}" if total else f"{_bytes(done)}  {line}"
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


def _is_notebook() -> bool:
    # Only a program that runs in IPython has imported it.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
