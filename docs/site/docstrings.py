"""Docstrings for the reference: those of the compiled module are comments of its Rust code, read from there without building it."""

from __future__ import annotations

import copy
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from griffe import Alias, Class, Docstring, Extension, Module, Object, get_logger

RUST = Path(__file__).resolve().parents[2] / "crates" / "windrow-py" / "src"
COMMENT = re.compile(r"\s*/// ?(.*)")
IMPL = re.compile(r"impl (\w+) \{")
ITEM = re.compile(r"( *)(?:pub(?:\(crate\))? )?(?:struct|fn) (\w+)")
LOG = get_logger("docstrings")


def documented(code: str) -> Iterator[tuple[str, str]]:
    """What has a doc comment in a Rust file, by the name that Python gives it: `open`, `Dataset`, `Dataset.split`."""
    owner, comment = "", []
    for line in code.splitlines():
        if found := IMPL.match(line):
            owner = found[1]
        elif line.startswith("}"):
            owner = ""
        if found := COMMENT.match(line):
            comment.append(found[1])
        elif found := ITEM.match(line):
            if comment:
                yield f"{owner}.{found[2]}" if found[1] else found[2], "\n".join(comment)
            comment = []
        elif not line.strip():
            comment = []


def fenced(text: str) -> str:
    """A docstring whose examples stand in fences, as Markdown has them."""
    lines: list[str] = []
    is_example = False
    for line in [*textwrap.dedent(text).strip("\n").splitlines(), ""]:
        if line.startswith(">>>") and not is_example:
            # A blank line ends the section before, too.
            lines += ["", "```pycon"]
            is_example = True
        elif not line.strip() and is_example:
            lines.append("```")
            is_example = False
        lines.append(line)
    return "\n".join(lines).strip("\n")


def _add_overloaded(holder: Module | Class) -> None:
    # In stubs overloads have no implementation after them, which griffe waits for.
    for name, overloads in holder.overloads.items():
        if name not in holder.members:
            function = copy.copy(overloads[-1])
            function.overloads = overloads
            holder.set_member(name, function)


def _show_new(made: Class) -> None:
    # The signature of a class is shown from `__init__`; PyO3's classes have `__new__`.
    if "__new__" in made.members and "__init__" not in made.members:
        init = copy.copy(made.members["__new__"])
        init.name, init.returns = "__init__", None
        made.set_member("__init__", init)
        made.del_member("__new__")


def _add_methods(holder: Class, functions: Module) -> None:
    # What the stub takes from a module of the package, by its name, is a method.
    for name, function in functions.functions.items():
        if name in holder.members and not name.startswith("_"):
            method = copy.copy(function)
            method.parent = holder
            holder.set_member(name, method)


class Docstrings(Extension):
    """Gives objects of `windrow._native` the comments of their Rust code, and examples their fences."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Called with the loaded package."""
        native = pkg["_native"]
        for holder in (native, *native.classes.values()):
            _add_overloaded(holder)
        for made in native.classes.values():
            _show_new(made)
        _add_methods(native["Dataset"], pkg["dataset"])
        native["Loader"].docstring = pkg["loader"]["_new"].docstring
        for file in sorted(RUST.rglob("*.rs")):
            for name, text in documented(file.read_text(encoding="utf-8")):
                owner, _, member = name.rpartition(".")
                holder = native.members.get(owner) if owner else native
                thing = holder.members.get(member) if isinstance(holder, (Module, Class)) else None
                # An alias is a name that the stub imports: Rust may have one of the same name.
                if thing is not None and not isinstance(thing, Alias) and not member.startswith("_"):
                    thing.docstring = Docstring(text, parent=thing)
        public = {alias.target_path for alias in pkg.members.values() if isinstance(alias, Alias)}
        for name, thing in native.members.items():
            if thing.path in public and not thing.docstring and not name.startswith("_"):
                LOG.warning("%s has no docstring", name)
        self._fence(pkg)

    def _fence(self, thing: Object | Alias) -> None:
        if isinstance(thing, Alias):
            return
        if thing.docstring:
            thing.docstring = Docstring(fenced(thing.docstring.value), parent=thing)
        for member in thing.members.values():
            self._fence(member)
