"""What the tables in docs say of arguments: those behind `*` are given by their names alone, and defaults are the real ones. Options
of the command line are on its page.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import windrow as wr

DOCS = Path(__file__).resolve().parents[2] / "docs"
CALL = re.compile(r"`((?:wr\.|ds\.)?)([a-z_]+)\(([^`]*)\)`")
BY_NAME = inspect.Parameter.KEYWORD_ONLY


def views() -> list[tuple[str, str]]:
    """The name and the arguments of each view in the table of docs/loading.md, and of codes in docs/audio.md."""
    cells = [line.split("|")[1] for line in (DOCS / "loading.md").read_text().splitlines() if line.startswith("| `")]
    cells += [line for line in (DOCS / "audio.md").read_text().splitlines() if line.startswith("`codes(")]
    found = [CALL.search(cell) for cell in cells]
    return [(call[2], call[3]) for call in found if call and hasattr(wr.Dataset, call[2])]


@pytest.mark.parametrize(("name", "arguments"), views())
def test_a_table_shows_what_is_given_by_name_alone(name: str, arguments: str) -> None:
    real = inspect.signature(getattr(wr.Dataset, name)).parameters
    tree = ast.parse(f"def f({arguments.replace(', …', ', **_')}): pass".replace("*, **_", "**_")).body[0]
    assert isinstance(tree, ast.FunctionDef)
    for argument in tree.args.args:
        assert real[argument.arg].kind is not BY_NAME, f"{name}: {argument.arg} stands before `*`"
    for argument in tree.args.kwonlyargs:
        assert real[argument.arg].kind is BY_NAME, f"{name}: {argument.arg} stands behind `*`"
    shown = dict(zip(reversed(tree.args.args), reversed(tree.args.defaults), strict=False))
    shown |= {argument: default for argument, default in zip(tree.args.kwonlyargs, tree.args.kw_defaults, strict=True) if default}
    for argument, default in shown.items():
        if argument.arg != "shifted":
            assert ast.literal_eval(default) == real[argument.arg].default, f"{name}: {argument.arg}"


def test_all_views_are_in_the_tables() -> None:
    assert {name for name, _ in views()} == {"pack", "records", "windows", "segments", "crop", "bins", "codes", "rows"}


def test_the_table_of_the_loader_names_its_options() -> None:
    text = (DOCS / "loading.md").read_text()
    table = text[text.index("| option | means | default |") :].split("\n\n")[0]
    named = {name for line in table.splitlines()[2:] for name in re.findall(r"`([a-z_]+)`", line.split("|")[1])}
    real = inspect.signature(wr.Loader).parameters
    assert named == set(real) - {"view"}
    assert {name for name in named if real[name].kind is not BY_NAME} == {"batch_size"}


def helps(*command: str) -> str:
    ran = subprocess.run([sys.executable, "-m", "windrow", *command, "--help"], capture_output=True, text=True, check=True)
    return ran.stdout


def commands() -> list[str]:
    """Names in the list of `windrow --help`."""
    listed = helps().partition("Look at data:\n")[2].partition("Options:\n")[0]
    return [name for name in re.findall(r"^  ([a-z-]+)  ", listed, re.MULTILINE) if name != "help"]


def test_every_option_of_the_command_line_is_on_its_page() -> None:
    text = (DOCS / "cli.md").read_text() + (DOCS / "download.md").read_text()
    # Those of views are on the pages of Python, whose names they have.
    of_views = {"--" + option["flag"].replace("_", "-") for rows in wr._native._options()["views"].values() for option in rows}
    of_all = {"--help", "--version", "--quiet"} | of_views
    missing = {}
    for command in commands():
        options = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", helps(command), re.MULTILINE)) - of_all
        missing[command] = sorted(option for option in options if not re.search(re.escape(option) + r"(?![a-z-])", text))
    assert len(missing) > 15
    assert not {command: options for command, options in missing.items() if options}
