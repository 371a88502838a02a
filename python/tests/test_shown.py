"""What handles say of themselves, in a terminal and in a notebook, and of names that they do not have."""

from __future__ import annotations

import html.parser
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import windrow as wr


@pytest.fixture
def handles(view: wr.View, dataset: wr.Dataset) -> dict[str, object]:
    """One of each kind."""
    mix = wr.mix({"<web>": (view, 0.7), "code": (view, 0.3)})
    loader = wr.Loader(view, 10, seed=7)
    next(loader)
    return {"Dataset": dataset, "View": view, "Mix": mix, "Loader": loader}


def test_a_repr_says_what_a_user_asks_first(handles: dict[str, object]) -> None:
    said = {
        "Dataset": ['format="tokens"', "1 records of uint16 [T]"],
        "View": ["pack(length=16", "1,249 samples of input_ids int64 [16], labels int64 [16]"],
        "Mix": ["<web>: 1,249 samples, weight 0.7", "code"],
        "Loader": ["pack(length=16", "10 rows, rank 0 of 1", "seed 7", "0, 10 samples delivered", "124 batches"],
    }
    for name, texts in said.items():
        shown = repr(handles[name])
        assert shown.startswith(f"{name}("), shown
        for text in texts:
            assert text in shown, shown


class Reader(html.parser.HTMLParser):
    """Keeps the open tags and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_a_notebook_gets_a_whole_table_in_which_nothing_is_markup(handles: dict[str, object]) -> None:
    for name, handle in handles.items():
        reader = Reader()
        reader.feed(handle._repr_html_())  # type: ignore[attr-defined]
        reader.close()
        assert reader.open == []
        assert f"windrow.{name}" in reader.text
    assert "<web>" in reader_of(handles["Mix"])


def reader_of(handle: object) -> list[str]:
    reader = Reader()
    reader.feed(handle._repr_html_())  # type: ignore[attr-defined]
    return reader.text


@pytest.mark.parametrize(
    "kind, name, told",
    [
        ("Dataset", "windos", "did you mean 'windows'"),
        ("Dataset", "shuffle", "use wr.Loader(view, shuffle=True)"),
        ("Dataset", "batch", "use wr.Loader(view, batch_size=32)"),
        ("View", "coverag", "did you mean 'coverage'"),
        ("Mix", "map", "collate="),
        ("Loader", "state_dic", "did you mean 'state_dict'"),
    ],
)
def test_a_method_that_is_not_there_names_the_one_that_is(
    handles: dict[str, object], kind: str, name: str, told: str
) -> None:
    with pytest.raises(AttributeError, match=f"'{kind}' object has no attribute '{name}'") as caught:
        getattr(handles[kind], name)
    assert told in str(caught.value)
    assert not hasattr(handles[kind], "_nothing_of_the_kind") and not hasattr(handles[kind], "xyzzyx")


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda view: wr.Loader(view, 8, num_workers=2), "Loader() got an unexpected keyword argument 'num_workers'; use num_threads="),
        (lambda view: view.loader(8, shufle=True), "did you mean 'shuffle'?"),
        (lambda view: wr.tokenize("a", "b", tokenizer="gpt2", remaindr="pad"), "did you mean 'remainder'?"),
        (lambda view: wr.tokenize("a", "b", tokenizer="gpt2", text_column="x"), "use text_field="),
        (lambda view: wr.open("a", dtyp="uint16"), "did you mean 'dtype'?"),
        (lambda view: wr.open("a", format="tokens", eos_token_id=2), "use document_eos="),
        (lambda view: wr.open("a", eos=2), "use document_eos="),
        (lambda view: wr.open("a", verify="always"), "use verify_checksums="),
        (lambda view: wr.tokenize("a", "b", tokenizer="gpt2", threads=2), "use num_threads="),
        (lambda view: wr.write("a", [], to="shards", durable=False), "use fsync="),
        (lambda view: wr.write("a", [], to="shards", normalise=True), "did you mean 'normalize'?"),
        (lambda view: wr.mix({"a": (view, 1.0)}, stopp="all"), "did you mean 'stop'?"),
        (lambda view: wr.Tokenizer("bytes").encode("a", special_token=True), "did you mean 'special_tokens'?"),
        (lambda view: wr.find(wr.Loader(view, 8), 0, xyzzy=1), "find() got an unexpected keyword argument 'xyzzy'"),
    ],
)
def test_an_option_that_is_not_there_names_the_one_that_is(
    view: wr.View, call: Callable[[wr.View], object], told: str
) -> None:
    with pytest.raises(TypeError) as caught:
        call(view)
    assert str(caught.value).endswith(told)


def test_a_bar_is_drawn_where_it_is_asked_for(tmp_path: Path, run_script: Callable[..., str]) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "some words"}\n' * 5000)
    script = """
        import contextlib, io, sys
        import windrow as wr

        class Terminal(io.StringIO):
            def isatty(self):
                return True

        for number, (stream, progress) in enumerate([(Terminal(), True), (io.StringIO(), True), (Terminal(), False)]):
            with contextlib.redirect_stderr(stream):
                wr.tokenize(sys.argv[1], f"{sys.argv[2]}/{number}", tokenizer="bytes", progress=progress)
            print(repr(stream.getvalue()[-70:]))
        try:
            wr.tokenize(sys.argv[1], f"{sys.argv[2]}/4", tokenizer="bytes", progress=3)
        except TypeError as error:
            print(error)
    """
    terminal, log, quiet, refused = run_script(script, tmp_path / "a.jsonl", tmp_path).splitlines()
    assert "100%" in terminal and "5,000 records" in terminal and terminal.endswith("\\n'")
    assert "100%" in log and "\\r" not in log
    assert quiet == "''"
    assert refused == "progress is a function, True or False, not int"


def test_a_notebook_gets_tqdms_bar(tmp_path: Path, run_script: Callable[..., str]) -> None:
    np.arange(1000, dtype="<u2").tofile(tmp_path / "t.bin")
    script = """
        import sys, types
        import windrow as wr

        # What a notebook's kernel looks like to the programs in it.
        ipython = types.ModuleType("IPython")
        ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
        sys.modules["IPython"] = ipython
        ds = wr.open(sys.argv[1], format="tokens", dtype="uint16")
        wr.convert(ds, sys.argv[1] + ".npz", to="npz", progress=True)
        print("tqdm" in sys.modules)
    """
    assert run_script(script, tmp_path / "t.bin").splitlines()[-1] == "True"


def test_written_tokens_are_counted(tmp_path: Path) -> None:
    documents = [[1, 2, 3], [], [4, 5]]
    assert wr.write(tmp_path / "a.bin", documents, to="tokens", dtype="uint16")["tokens"] == 5
    assert wr.write(tmp_path / "b.bin", documents, to="tokens", dtype="uint16", eos=9)["tokens"] == 8
    for to in ("forager", "megatron", "tokens", "flat-tokens"):
        report = wr.convert(tmp_path / "a.bin", tmp_path / to, to=to)  # type: ignore[arg-type]
        assert (to, report["tokens"]) == (to, 5)


def test_find_takes_a_parts_name(view: wr.View, dataset: wr.Dataset) -> None:
    loader = wr.Loader(wr.mix({"web": (view, 0.5), "math": (dataset.pack(16, eos=1), 0.5)}), 10)
    for plan in (loader, loader.recipe()):
        assert wr.find(plan, 0, part="math", most=5) == wr.find(plan, 0, part=1, most=5) != wr.find(plan, 0, most=5)
        with pytest.raises(wr.OutOfRangeError, match="no part is named \"mth\"") as caught:
            wr.find(plan, 0, part="mth")
        assert "web, math" in (caught.value.hint or "")
    with pytest.raises(wr.OutOfRangeError):
        wr.find(wr.Loader(view, 10), 0, part="web")
