"""An option is declared once: Python, the command line and the pages have what its table says."""

import inspect
import re
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import pytest

import windrow as wr
from windrow import _native, dataset

PAGES = Path(__file__).parents[2] / "docs"
TABLES = _native._options()
VIEWS = TABLES["views"]
# What the table keeps by other means: numbers for `view[i]`, the dtype, which is no part of a recipe, the name of a function.
OF_PYTHON = {"dtype", "seed", "scaler_name"}
# What only a program holds: functions, groups of processes, lists of records, arrays.
LOADER_OF_PYTHON = {"view", "group", "whole", "skip", "exclude", "framework", "pin_memory", "dtype", "collate", "map"}
# What a run has, and a plan, which the command shows, does not.
OF_A_RUN = {"rank", "world_size", "epochs", "num_threads", "prefetch", "names", "dtypes"}
TOKENIZE_OF_PYTHON = {
    "inputs", "out", "text_function", "vocab_size", "overwrite", "num_threads", "allow_empty", "fsync", "progress", "store_options",
    "timeout", "options",
}  # fmt: skip


def words_of(annotation: object) -> set[str] | None:
    """The words that an annotation lists, None as the word for it."""
    text = str(annotation)
    if "Literal[" not in text:
        return None
    found = set(re.findall(r"'(\w+)'", text[text.index("Literal[") :]))
    return found | {"none"} if "None" in text else found


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_a_method_has_the_options_of_its_table(view: str) -> None:
    signature = inspect.signature(getattr(wr.Dataset, view))
    method = {name: p for name, p in signature.parameters.items() if name != "self" and name not in OF_PYTHON}
    table = {option["name"]: option for option in VIEWS[view]}
    assert set(method) == set(table)
    for name, parameter in method.items():
        default = None if parameter.default is inspect.Parameter.empty else parameter.default
        expected = table[name]["default"]
        given = {"none": None, False: None}.get(expected, expected) if not isinstance(expected, list) else None
        assert (default or None) == (given or None), name
        words = words_of(parameter.annotation)
        if words is not None and table[name]["words"]:
            assert words <= set(table[name]["words"]) | {"none"}, name


def flags_of(command: str) -> set[str]:
    told = subprocess.run([sys.executable, "-m", "windrow", command, "--help"], capture_output=True, text=True, check=True)
    return set(re.findall(r"--([a-z][a-z-]*)", told.stdout))


def flag(option: dict[str, Any]) -> str:
    name: str = option["flag"].replace("_", "-")
    # Given once for each of them.
    return name.removesuffix("s") if option["name"] == "store_options" else name


FUNCTIONS = [("open", wr.open, {"path", "progress"}), ("loader", wr.Loader, LOADER_OF_PYTHON), ("tokenize", wr.tokenize, TOKENIZE_OF_PYTHON)]


@pytest.mark.parametrize(("table", "function", "others"), FUNCTIONS)
def test_a_function_has_the_options_of_its_table(table: str, function: Any, others: set[str]) -> None:
    parameters = {name: p for name, p in inspect.signature(function).parameters.items() if name not in others}
    rows = {option["name"]: option for option in TABLES[table]}
    assert set(parameters) == set(rows)
    for name, parameter in parameters.items():
        words = words_of(parameter.annotation)
        if words is not None and rows[name]["words"]:
            assert words <= set(rows[name]["words"]) | {"none"}, name
    positional = [name for name, p in inspect.signature(function).parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert len(positional) <= 2


@pytest.mark.parametrize("method", ["split_by_time", "split", *VIEWS])
def test_at_most_two_arguments_are_positional(method: str) -> None:
    parameters = inspect.signature(getattr(wr.Dataset, method)).parameters.values()
    assert len([p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"]) <= 2


@pytest.mark.parametrize(("table", "command"), [("open", "inspect"), ("open", "trace"), ("tokenize", "tokenize"), ("loader", "trace")])
def test_the_command_has_the_options_of_a_table(table: str, command: str) -> None:
    flags = flags_of(command)
    left_out = OF_A_RUN if table == "loader" else set()
    assert not {flag(option) for option in TABLES[table] if option["name"] not in left_out} - flags


@pytest.mark.parametrize("table", ["open", "loader", "tokenize"])
def test_the_pages_name_every_option_of_a_table(table: str) -> None:
    pages = "\n".join(page.read_text() for page in PAGES.glob("*.md"))
    for option in TABLES[table]:
        assert re.search(rf"\b{option['name']}\b", pages), option["name"]
        assert option["help"][:1].isupper() or option["help"].startswith(("`", "dtype")), option["name"]
        assert option["help"].endswith("."), option["name"]


def test_the_command_has_the_options_of_every_view() -> None:
    flags = flags_of("trace")
    for view, options in VIEWS.items():
        assert view in flags
        numbered = {"length", "context_length"}
        missing = {o["name"] for o in options if o["flag"].replace("_", "-") not in flags} - numbered
        assert not missing, f"{view}: {missing}"


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_the_docstring_of_a_view_names_every_option(view: str) -> None:
    said = (getattr(wr.Dataset, view).__doc__ or "") + (wr.Dataset.windows.__doc__ or "" if view == "segments" else "")
    for option in VIEWS[view]:
        assert re.search(rf"\b{option['name']}\b", said), f"{view} {option['name']}"


def test_the_page_of_the_command_names_what_is_called_otherwise() -> None:
    page = (PAGES / "cli.md").read_text()
    rows = [option for options in [*VIEWS.values(), TABLES["open"]] for option in options]
    for option in rows:
        if option["flag"] != option["name"]:
            assert f"`--{option['flag'].replace('_', '-')}`" in page, option["name"]


def test_every_option_has_a_sentence() -> None:
    for view, options in VIEWS.items():
        for option in options:
            assert option["help"][:1].isupper() and option["help"].endswith("."), f"{view} {option['name']}"


def test_an_option_that_is_another_ones_is_refused_with_the_one_that_is_meant(tmp_path: Path) -> None:
    (tmp_path / "series.json").write_text("[[1, 2, 3], [4, 5]]")
    ds = wr.open(tmp_path / "series.json")
    with pytest.raises(TypeError, match=r"bins\(\) got an unexpected keyword argument 'pad_id'; use pad_value="):
        ds.bins(8, pad_id=1)
    with pytest.raises(wr.ConfigError, match="eos is not an option of bins"):
        ds._view("bins", {"length": 8, "eos": 1}, None, 0)
    assert typing.get_type_hints(dataset.rows, vars(_native) | {"View": wr.View})["stack"] is bool


# Options that the command line calls by another name than Python and Rust, and what their own name is there.
OTHER_FLAGS = {
    ("codes", "codebook_size"): "codebook",  # the size that the pages of `report` show
    ("windows", "channels"): "window_channels",  # a number of channels, of codes
    ("rows", "columns"): "row_columns",  # the columns that are opened
    ("loader", "multiple"): "batch_multiple",  # that of documents in a row
    ("open", "tokenizer"): "made_with",  # what `peek` and `trace` decode with
}


def test_one_thing_has_one_name() -> None:
    rows = {(table, option["name"]): option["flag"] for table, options in {**TABLES, **VIEWS}.items() if table != "views" for option in options}
    assert {key: flag for key, flag in rows.items() if flag not in (key[1], f"no_{key[1]}")} == OTHER_FLAGS


# What a function takes and its command does not: objects of Python, and what a command shows on stderr.
OF_FUNCTIONS = {
    "tokenize": {"inputs", "text_function", "vocab_size", "progress", "options"},
    "index": {"path", "progress"},
    "convert": {"ds_or_path", "progress", "options"},
    "encode": {"audio_dir", "codec", "progress"},
    "verify": {"path"},
    "manifest": {"path"},
    "cache": set(),
    "bench": {"loader"},
    "trace": {"plan"},
    "find": {"plan", "most"},
    "coverage": {"plan"},
    "extract": {"plan"},
    "diff": {"a", "b"},
    "rebuild_metadata": {"path"},
    "create_dummy_data": {"num_tokens"},  # `windrow dummy --tokens`: the command writes a file, the function gives an array
    "prep.run": {"job", "executor", "workers", "retries", "progress"},
    "prep.run_task": {"job", "progress"},
    "prep.join": {"job", "progress"},
}
COMMANDS = {"create_dummy_data": "dummy", "prep.run_task": "prep run"}


@pytest.mark.parametrize("name", sorted(OF_FUNCTIONS))
def test_a_function_has_the_names_of_its_command(name: str) -> None:
    function: Any = wr
    for part in name.split("."):
        function = getattr(function, part)
    command = COMMANDS.get(name, name.replace(".", " ").replace("_", "-"))
    told = subprocess.run([sys.executable, "-m", "windrow", *command.split(), "--help"], capture_output=True, text=True, check=True).stdout
    flags = {flag.replace("-", "_") for flag in re.findall(r"^ +(?:-\w, )?--([a-z][a-z-]*)", told, re.M)}
    flags |= {flag.removeprefix("no_") for flag in flags} | {"store_options" for flag in flags if flag == "store_option"}
    placed = {place.lower() for place in re.findall(r"^  [<\[]([A-Z_]+)", told, re.M)} | {"out" for _ in re.findall(r"^  \[OUTPUT\]", told, re.M)}
    assert set(inspect.signature(function).parameters) - flags - placed == OF_FUNCTIONS[name] - placed


# What an EOS token is said to be, in the words of the table: where documents end in data that is opened, what is put between records
# of a block, what is written after a document, and after a record.
@pytest.mark.parametrize(
    ("table", "name", "function"),
    [("open", "document_eos", wr.open), ("tokenize", "eos", wr.tokenize), ("pack", "eos", wr.Dataset.pack)],
)
def test_each_eos_says_which_it_is(table: str, name: str, function: Any) -> None:
    (option,) = [option for option in {**TABLES, **VIEWS}[table] if option["name"] == name]
    says = re.split("[:;]", option["help"])[0].strip()
    said = " ".join((function.__doc__ or "").split())
    assert says.removeprefix("The ").removeprefix("the ") in said and len(says) > 30
    page = (PAGES / "raw-tokens.md").read_text()
    assert says in " ".join(page.split()), says
