"""An option of a view is declared once: Python, the command line and the pages have what the table says."""

import inspect
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import windrow as wr
from windrow import _native, dataset

PAGES = Path(__file__).parents[2] / "docs"
VIEWS = _native._views()
# What the table keeps by other means: numbers for `view[i]`, and the dtype, which is no part of a recipe.
OF_PYTHON = {"dtype", "seed"}


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


def test_the_command_has_the_options_of_every_table() -> None:
    told = subprocess.run([sys.executable, "-m", "windrow", "trace", "--help"], capture_output=True, text=True, check=True)
    flags = set(re.findall(r"--([a-z][a-z-]*)", told.stdout))
    for view, options in VIEWS.items():
        assert view in flags
        numbered = {"length", "context_length"}
        missing = {o["name"] for o in options if o["flag"].replace("_", "-") not in flags} - numbered
        assert not missing, f"{view}: {missing}"


def test_the_pages_name_every_option() -> None:
    pages = "\n".join(page.read_text() for page in PAGES.glob("*.md"))
    rows = {row.split("`")[1].split()[0]: row for row in (PAGES / "cli.md").read_text().splitlines() if row.startswith("| `--")}
    labels = re.search(r"All but (.*?) take `--labels", (PAGES / "cli.md").read_text(), re.DOTALL)
    for view, options in VIEWS.items():
        for option in options[view != "rows" :]:
            assert re.search(rf"\b{option['name']}\b", pages), f"{view} {option['name']}"
            flag = f"--{option['flag'].replace('_', '-')}"
            said = flag in rows[f"--{view}"] if flag != "--labels" else labels and f"`--{view}`" not in labels[1]
            assert said, f"cli.md, --{view}: {flag}"


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
