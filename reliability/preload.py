"""The library that faults come from, and the environment that steers it: see faults.c."""

from __future__ import annotations

import os
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCES = [str(Path(__file__).with_name(name)) for name in ("faults.c", "calls.c", "exchange.c")]


@dataclass
class Counts:
    """How many calls a process made below the folder, and how many of them met a fault."""

    change: int
    write: int
    sync: int
    read: int
    map: int
    fired: int


class Preload:
    """The library, built into a folder, for processes whose files are below `below`."""

    def __init__(self, folder: Path, below: Path) -> None:
        self.library, self.below = folder / "faults.so", below.resolve()
        self._counts, self.log = folder / "counts", folder / "changes.log"
        command = ["cc", "-shared", "-fPIC", "-O1", "-pthread", "-o", str(self.library), *SOURCES, "-ldl"]
        subprocess.run(command, check=True, timeout=120)

    def environment(self, fault: str = "count", *, fast: bool = True, **settings: str | int) -> dict[str, str]:
        """For one process: `at=7` is WINDROW_FAULT_AT. Counts begin at 0; with `fast` an fsync is counted and not made."""
        self._counts.write_bytes(bytes(64))
        if fault == "record":
            self.log.write_bytes(b"")
        return self._steering(fault, fast=fast, **settings)

    def typed(self, fault: str, **settings: str | int) -> str:
        """The command as one types it, for a line that says how to see something again; nothing else depends on what is left out."""
        left_out = ("WINDROW_FAULT_COUNTS", "WINDROW_FAULT_PARENT", "WINDROW_FAULT_LOG", "LD_PRELOAD")
        steering = self._steering(fault, fast=True, **settings)
        return " ".join(f"{name}={value}" for name, value in steering.items() if name not in left_out)

    def _steering(self, fault: str, *, fast: bool, **settings: str | int) -> dict[str, str]:
        said = {"below": self.below, "counts": self._counts, "parent": 1, "fast": int(fast), **settings}
        if fault == "record":
            said["log"] = self.log
        steering = {f"WINDROW_FAULT_{name.upper()}": str(value) for name, value in said.items()}
        return {"LD_PRELOAD": str(self.library), "WINDROW_FAULT": fault, **steering}

    def counts(self) -> Counts:
        """Those of the process that was started last; they outlive it."""
        return Counts(*struct.unpack_from("6Q", self._counts.read_bytes()))


def stripped() -> dict[str, str]:
    """This process's environment without any fault."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("WINDROW_FAULT")}
