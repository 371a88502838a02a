"""Texts from Python iterables: what they become is what a file of them becomes, also where a run was stopped and continued."""

import functools
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import windrow as wr
from windrow import _function
from conftest import running
from foreign_cases import with_loaders

LAYOUTS = {
    "forager": {"sample_size": 64},
    "tokens": {},
    "shards": {},
    "megatron": {},
    "flat-tokens": {"tokens_chunk_size": 4096},
    "llmc": {},
    "datatrove": {},
}
# Empty ones, several bytes a character, a byte order mark, a NUL, a long one.
TEXTS = ["wörd %d " % i * (i % 5) + "雨" * (i % 3) for i in range(700)]
TEXTS[10:14] = ["\ufeffmark", "a\0b", "😀\r\n", "line\nline"]
TEXTS[300] = "long " * 300_000


def lines(path, texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def data(out):
    """The files of an output, but what says what they were made of."""
    made = {path.relative_to(out): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    found = {
        name: data for name, data in made.items() if not name.name.endswith(("windrow.json", "windrow.sums", ".metadata"))
    }
    if Path("meta.json") in found:
        found[Path("meta.json")] = json.dumps(json.loads(found[Path("meta.json")])["scales"]).encode()
    return found


def nothing_is_seen(out):
    return not out.exists() or all(path.name.startswith(".") for path in out.iterdir())


def generator(texts=TEXTS):
    yield from texts


class Rows:
    """An iterable that is read from its beginning each time, as data sets are."""

    def __iter__(self):
        return ({"id": i, "text": text} for i, text in enumerate(TEXTS))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("to", LAYOUTS)
def test_the_files_are_those_of_the_same_lines(tmp_path, to, threads):
    options = {"tokenizer": "gpt2", "to": to, "num_threads": threads, "fsync": False, **LAYOUTS[to]}
    expected = wr.tokenize(lines(tmp_path / "texts.jsonl", TEXTS), tmp_path / "lines", **options)
    given = {
        "generator": generator(),
        "iterator": iter(TEXTS),
        "dicts": ({"text": text} for text in TEXTS),
        "rows": Rows(),
    }
    for name, texts in given.items():
        report = wr.tokenize(texts, tmp_path / name, **options)
        assert {key: report[key] for key in ("records", "documents", "tokens", "dropped_tokens", "files")} == {
            key: expected[key] for key in ("records", "documents", "tokens", "dropped_tokens", "files")
        }
        assert report["input_bytes"] == sum(len(text.encode()) for text in TEXTS)
        assert data(tmp_path / name) == data(tmp_path / "lines"), name
        assert wr.verify(tmp_path / name)["problems"] == []
    assert wr.tokenize(generator(), tmp_path / "rows", **options)["unchanged"]


def test_the_manifest_says_where_they_came_from(tmp_path):
    wr.tokenize(generator(), tmp_path / "out", tokenizer="bytes")
    manifest = json.loads((tmp_path / "out" / "index" / "windrow.json").read_text())
    assert "inputs" not in manifest
    assert (manifest["options"]["from"], manifest["tokenizer"]["name"]) == ("iterable", "bytes")
    assert manifest["statistics"]["documents"] == len(TEXTS)
    assert manifest["statistics"]["text_bytes"] == sum(len(text.encode()) for text in TEXTS)
    assert len(manifest["statistics"]["text_xxh3"]) == 16


def test_a_field_is_a_key_or_a_path_of_keys(tmp_path):
    items = [{"meta": {"a.b": "one"}}, {"meta.a": {"b": "two"}}, {"meta": {"a": {"b": "three"}}}, {"meta.a.b": "four"}]
    wr.tokenize(iter(items), tmp_path / "out", tokenizer="bytes", text_field="meta.a.b")
    assert [bytes(ids.tolist()).decode() for ids in wr.open(tmp_path / "out")] == ["one", "two", "three", "four"]


def test_items_are_taken_on_the_calling_thread_and_before_all_are_encoded(tmp_path):
    threads, told = set(), []

    def texts():
        for i in range(60):
            threads.add(threading.get_ident())
            # Slow ones do not wait for a full chunk.
            time.sleep(0.02)
            yield f"text {i}"
        yield {"text": "last"}

    wr.tokenize(texts(), tmp_path / "out", tokenizer="bytes", progress=told.append)
    assert threads == {threading.get_ident()}
    assert told[-1]["done_bytes"] == told[-1]["total_bytes"] > 0
    assert told[-1]["records"] == 61
    assert told[0]["records"] < 61 and told[0]["total_bytes"] == 0


def test_other_iterables_of_an_output_that_is_there(tmp_path):
    wr.tokenize(generator(), tmp_path / "out", tokenizer="bytes")
    before = data(tmp_path / "out")
    for other in (TEXTS[1:], [*TEXTS, "x"], ["x", *TEXTS[1:]]):
        with pytest.raises(wr.ExistsError, match="from other inputs"):
            wr.tokenize(iter(other), tmp_path / "out", tokenizer="bytes")
    with pytest.raises(wr.ExistsError):
        wr.tokenize(lines(tmp_path / "texts.jsonl", TEXTS), tmp_path / "out", tokenizer="bytes")
    assert data(tmp_path / "out") == before
    report = wr.tokenize(iter(["x"]), tmp_path / "out", tokenizer="bytes", overwrite=True)
    assert (report["documents"], len(wr.open(tmp_path / "out"))) == (1, 1)


@pytest.mark.parametrize("to", ["forager", "megatron"])
def test_an_exception_comes_out_as_it_was_and_the_same_call_continues(tmp_path, to):
    class Mine(Exception):
        pass

    encoded = []

    def tokenizer(text):
        encoded.append(text)
        return [*text.encode()]

    def fails():
        yield from TEXTS[:500]
        raise Mine("at last")

    options = {"tokenizer": tokenizer, "vocab_size": 256, "eos": None, "to": to}
    with pytest.raises(Mine, match="at last") as raised:
        wr.tokenize(fails(), tmp_path / "out", **options)
    assert any(frame.name == "fails" for frame in raised.traceback)
    assert nothing_is_seen(tmp_path / "out")
    encoded.clear()
    report = wr.tokenize(generator(), tmp_path / "out", **options)
    # The first are those that every function of one's own is asked for: whether it gives masks, and whether it gives the same again.
    assert encoded[2:] == TEXTS[500:]
    assert report["resumed_bytes"] == sum(len(text.encode()) for text in TEXTS[:500])
    assert report["documents"] == len(TEXTS)
    wr.tokenize(lines(tmp_path / "texts.jsonl", TEXTS), tmp_path / "lines", **options)
    assert data(tmp_path / "out") == data(tmp_path / "lines")


def test_other_texts_than_those_of_a_stopped_run_are_told(tmp_path):
    def fails():
        yield from TEXTS[:50]
        raise KeyError("no")

    for others, says in ((["x", *TEXTS[1:]], "other texts up to number 50"), (TEXTS[:20], "there are 20 texts")):
        with pytest.raises(KeyError):
            wr.tokenize(fails(), tmp_path / "out", tokenizer="bytes", overwrite=True)
        with pytest.raises(wr.StaleError, match=says):
            wr.tokenize(iter(others), tmp_path / "out", tokenizer="bytes", overwrite=True)
        report = wr.tokenize(iter(others), tmp_path / "out", tokenizer="bytes", overwrite=True)
        assert (report["documents"], report["resumed_bytes"]) == (len(others), 0)


class NoText(dict):
    pass


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (3, "the item is int; expected text, or a dict"),
        (None, "leave such items out"),
        (float("nan"), "the item is float"),
        (b"bytes", "the item is bytes"),
        (["x"], "the item is list"),
        (Path("a.jsonl"), "paths are given as a list"),
        ({"body": "x", "id": 1}, "it has body, id; choose one with text_field"),
        (NoText(), 'no "text" in the dict'),
        ({"text": None}, "leave such items out"),
        ({"text": 3}, '"text" holds int; expected text'),
        ({"text": "half \ud83d of a pair"}, "lone surrogate"),
        ("half \udc00 of a pair", "lone surrogate"),
    ],
)
@pytest.mark.parametrize("at", [0, 123])
def test_what_is_no_text_is_an_error_with_its_number(tmp_path, item, says, at):
    with pytest.raises(wr.CorruptError) as raised:
        wr.tokenize(iter([*TEXTS[:at], item, "x"]), tmp_path / "out", tokenizer="bytes")
    assert says in str(raised.value)
    assert f"record {at}" in str(raised.value) and raised.value.record == at
    assert nothing_is_seen(tmp_path / "out")
    # Those before it are kept: mended, it continues.
    report = wr.tokenize(iter([*TEXTS[:at], "mended", "x"]), tmp_path / "out", tokenizer="bytes")
    assert report["documents"] == at + 2
    assert report["resumed_bytes"] == sum(len(text.encode()) for text in TEXTS[:at])


def test_a_token_id_that_does_not_fit_names_the_item(tmp_path):
    with pytest.raises(wr.ConfigError, match="does not fit uint8") as raised:
        wr.tokenize(iter(["a", "b"]), tmp_path / "out", tokenizer=lambda text: [ord(text) * 3], dtype="uint8", eos=None)
    assert raised.value.record == 0
    assert nothing_is_seen(tmp_path / "out")


def test_texts_where_paths_are_expected(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n')
    for texts in (["some text", "another"], ("a text?",), [str(tmp_path / "a.jsonl"), "b" * 5000], "a text", [""]):
        with pytest.raises((wr.NotFoundError, wr.IoError)) as raised:
            wr.tokenize(texts, tmp_path / "out", tokenizer="bytes")
        assert "texts are given as a generator or iter(list)" in str(raised.value), texts
    with pytest.raises(TypeError, match=r"inputs\[1\] is dict; a list is of paths: texts are given as"):
        wr.tokenize([tmp_path / "a.jsonl", {"text": "x"}], tmp_path / "out", tokenizer="bytes")
    # What is missing elsewhere is not a matter of texts.
    with pytest.raises(wr.NotFoundError) as raised:
        wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="no such tokenizer")
    assert "iter(list)" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"train": ["x"]}, "which gives its keys; give one of its values"),
        ({"x", "y"}, "which has no order"),
        (frozenset("x"), "which has no order"),
        (b"a.jsonl", "a path is text"),
        (3, "expected a path, a list of paths, or an iterable of texts or dicts"),
        (type("DataFrame", (), {"__iter__": lambda self: iter(["text"])})(), "which gives its columns"),
    ],
)
def test_what_would_give_something_else_is_refused(tmp_path, given, says):
    with pytest.raises(TypeError, match=says):
        wr.tokenize(given, tmp_path / "out", tokenizer="bytes")


def test_options_of_paths_are_refused(tmp_path):
    for option in ({"split": "train"}, {"text_function": lambda line: "x"}):
        with pytest.raises(wr.ConfigError) as raised:
            wr.tokenize(generator(), tmp_path / "out", tokenizer="bytes", **option)
        assert raised.value.field == next(iter(option))


def test_no_texts_at_all(tmp_path):
    with pytest.raises(wr.NotFoundError, match="there are no texts"):
        wr.tokenize(iter([]), tmp_path / "out", tokenizer="bytes")
    assert nothing_is_seen(tmp_path / "out")
    assert wr.tokenize(iter([]), tmp_path / "out", tokenizer="bytes", allow_empty=True)["documents"] == 0


SLOW = """
import sys, time
import windrow as wr

out, stop = sys.argv[1], int(sys.argv[2])

def texts():
    for i in range(150):
        if i == stop:
            print("waits", flush=True)
            time.sleep(600)
        yield f"{i:04} " * 200_000

report = wr.tokenize(texts(), out, tokenizer="bytes", to=sys.argv[3], fsync=False)
print(report["resumed_bytes"], report["documents"])
"""


@pytest.fixture
def slow(tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(textwrap.dedent(SLOW))
    return [sys.executable, str(script)]


@pytest.mark.parametrize("to", ["forager", "shards"])
def test_killed_it_continues_by_number(tmp_path, slow, to):
    out = tmp_path / "place" / "out"
    with running([*slow, str(out), "130", to]) as process:
        assert process.stdout is not None and process.stdout.readline() == "waits\n"
        limit = time.monotonic() + 60
        while not [*out.parent.rglob("progress.json")]:
            assert time.monotonic() < limit
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert nothing_is_seen(out) and not (out / "index").exists()
    command = [*slow, str(out), "-1", to]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    resumed, documents = map(int, done.stdout.split())
    assert resumed > 60 << 20 and documents == 150
    subprocess.run([*slow, str(tmp_path / "whole"), "-1", to], check=True, capture_output=True, timeout=120)
    assert data(out) == data(tmp_path / "whole")


def test_ctrl_c_ends_it_at_once_and_it_continues(tmp_path, slow):
    out = tmp_path / "out"
    with running([*slow, str(out), "40", "tokens"], stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in err and "in texts" in err
    assert nothing_is_seen(out)
    done = subprocess.run([*slow, str(out), "-1", "tokens"], check=True, capture_output=True, text=True, timeout=120)
    resumed, documents = map(int, done.stdout.split())
    assert resumed > 0 and documents == 150


LIBRARIES = """
import json, sys
from pathlib import Path
import datasets, pandas as pd
import windrow as wr

datasets.disable_progress_bars()
folder, texts = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
ds = datasets.Dataset.from_dict({"id": list(range(len(texts))), "text": texts})

def rows(texts):
    for text in texts:
        yield {"text": text}

streamed = datasets.load_dataset("json", data_files=sys.argv[3], split="train", streaming=True, cache_dir=folder / "hf")
given = {
    "dataset": ds,
    "shuffled": ds.select(range(len(ds))).with_format("numpy"),
    "column": ds["text"],
    "streaming": ds.to_iterable_dataset(num_shards=3),
    "lazily": datasets.IterableDataset.from_generator(rows, gen_kwargs={"texts": texts}),
    "streamed file": streamed,
    "mapped": streamed.map(lambda row: {"text": row["text"][::-1]}).map(lambda row: {"text": row["text"][::-1]}),
    "series": pd.Series(texts),
    "of a frame": pd.DataFrame({"text": texts, "n": 1})["text"],
    "strings": pd.Series(texts, dtype="string"),
}
done = {}
for name, one in given.items():
    if isinstance(one, list):
        one = iter(one)
    done[name] = wr.tokenize(one, folder / name, tokenizer="bytes", sample_size=64, fsync=False)["tokens"]
    assert wr.tokenize(iter(one) if name != "column" else iter(texts), folder / name, tokenizer="bytes", sample_size=64)["unchanged"]
refused = {}
frame = pd.DataFrame({"text": ["a"]})
for name, one in {"DataFrame": frame, "DatasetDict": datasets.DatasetDict({"train": ds})}.items():
    try:
        wr.tokenize(one, folder / "no", tokenizer="bytes")
    except TypeError as e:
        refused[name] = str(e)
try:
    wr.tokenize(pd.Series(["a", None]), folder / "no", tokenizer="bytes")
except wr.CorruptError as e:
    refused["missing"] = str(e)
print(json.dumps([done, refused]))
"""


def test_data_sets_and_columns_of_other_libraries(tmp_path):
    texts = [text for text in TEXTS if "\0" not in text]
    path = lines(tmp_path / "texts.jsonl", texts)
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    expected = wr.tokenize(path, tmp_path / "lines", tokenizer="bytes", sample_size=64)
    (tmp_path / "made").mkdir()
    done, refused = with_loaders(LIBRARIES, tmp_path / "made", tmp_path / "texts.json", path)
    assert len(done) == 10 and set(done.values()) == {expected["tokens"]}
    for name in done:
        assert data(tmp_path / "made" / name) == data(tmp_path / "lines"), name
    assert 'frame["text"]' in refused["DataFrame"]
    assert "which gives its keys" in refused["DatasetDict"]
    assert "record 1" in refused["missing"]


class Field:
    """A function that is an object."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __call__(self, row: bytes) -> str:
        return str(json.loads(row)[self.key])

    def get(self, row: bytes) -> str:
        return str(json.loads(row)[self.key])


def field(row: bytes, *, key: str = "title") -> str:
    return str(json.loads(row)[key])


def different(parameter: str) -> Any:
    def pick(row: bytes) -> str:
        return field(row, key=parameter)

    return pick


def of_default(parameter: str) -> Any:
    def pick(row: bytes, *, key: str = parameter) -> str:
        return str(json.loads(row)[key])

    return pick


@pytest.mark.parametrize("made", [lambda key: functools.partial(field, key=key), Field, lambda key: Field(key).get, different, of_default])
def test_functions_that_hold_something_else_are_told_apart(tmp_path: Path, made: Any) -> None:
    (tmp_path / "a.jsonl").write_text('{"title": "ab", "body": "cd"}\n')

    def tokenized(key: str) -> Any:
        return wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes", text_function=made(key))

    assert not tokenized("title")["unchanged"]
    assert tokenized("title")["unchanged"]
    with pytest.raises(wr.ExistsError):
        tokenized("body")


def test_numbers_of_a_function_are_not_run_together() -> None:
    described = _function.word
    functions = [lambda x: (x - 1) / 23, lambda x: (x - 12) / 3, lambda x: (x - 1) / 23.0]
    assert len({described(function).partition("#")[2] for function in functions}) == 3
    assert "#" not in described(str.lower)


FIELD, WANTED = "title", {"of": ["title"]}
FILLED_CACHE: list[int] = []


def cleaned(text: str) -> str:
    return text.strip()


def of_globals(row: bytes) -> str:
    FILLED_CACHE.append(1)
    return cleaned(str(json.loads(row)[FIELD if WANTED["of"] else "body"]))


def test_what_a_function_reads_of_its_module_tells_it_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    described, here = _function.word, sys.modules[__name__]
    before = described(of_globals)
    of_globals(b'{"title": "ab"}')
    assert described(of_globals) == before
    changes: list[tuple[str, Any]] = [("FIELD", "body"), ("WANTED", {"of": ["body"]}), ("cleaned", lambda text: text.lower())]
    found = {before}
    for name, other in changes:
        with monkeypatch.context() as patched:
            patched.setattr(here, name, other)
            found.add(described(of_globals))
    assert len(found) == 4
    assert described(of_globals) == before


def holding(held: Any) -> Any:
    def function(row: bytes) -> Any:
        return row in held

    return function


def test_containers_that_a_function_holds_tell_it_apart() -> None:
    described = _function.word
    nothing: list[Any] = []
    nothing.append(nothing)
    dicts = [{}, {"f": "title"}, {"f": "body"}, {"f": {"x": [1]}}, {"f": {"x": [2]}}]
    held = [*dicts, [1, 2], [2, 1], {1, 2}, {1, 3}, (1, [2]), (1, [3]), nothing]
    assert len({described(holding(one)) for one in held}) == len(held)
    assert described(holding({"b", "a", "c"})) == described(holding({"c", "b", "a"}))
    # By their number alone; an address is not part of it.
    assert described(holding([object()])) == described(holding([object()]))
    assert described(holding(list(range(2_000_000)))) != described(holding([0]))


def test_a_set_in_any_order_and_functions_that_call_each_other_are_the_same_in_every_run(tmp_path: Path) -> None:
    script = """
import windrow
names = {"alpha", "beta", "gamma", "delta"}
def even(n): return n == 0 or odd(n - 1)
def odd(n): return n != 0 and even(n - 1)
def function(text): return [even(len(text)), text in names, text in {"a", "b", "c"}]
import windrow._function
print(windrow._function.word(function))
"""
    (tmp_path / "x.py").write_text(script)

    def run(seed: int) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        return subprocess.run([sys.executable, "x.py"], cwd=tmp_path, env=environment, capture_output=True, check=True).stdout

    assert len({run(seed) for seed in range(4)}) == 1
