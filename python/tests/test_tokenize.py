"""Preparing data from Python: index, tokenise with windrow's tokenizers or one's own function, dummy tokens."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from conftest import running


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "a.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps({"text": "wörd " * i, "n": i}) + "\n" for i in range(20)))
    return path


def texts(path: Path) -> list[str]:
    return [json.loads(line)["text"] for line in path.read_text().splitlines()]


def test_index_makes_each_line_a_record(corpus: Path) -> None:
    report = wr.index(corpus.parent)
    assert (report["records"], report["files"], report["unchanged"]) == (20, 1, False)
    assert wr.index(corpus.parent)["unchanged"]
    ds = wr.open(corpus.parent)
    assert ds.format == "forager"
    assert [record["n"] for record in ds] == list(range(20))


def test_index_refuses_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        wr.index(tmp_path)
    assert wr.index(tmp_path, allow_empty=True)["records"] == 0


def test_an_end_is_appended_to_each_record(corpus: Path, tmp_path: Path) -> None:
    wr.tokenize(corpus, tmp_path / "out", tokenizer="bytes", eos="append")
    assert [record.tolist() for record in wr.open(tmp_path / "out")] == [
        [*text.encode(), 256] for text in texts(corpus)
    ]
    command = [sys.executable, "-m", "windrow", "tokenize", str(corpus), "--tokenizer", "bytes", "--eos", "append"]
    subprocess.run([*command, "--out", str(tmp_path / "again"), "-q"], check=True)
    assert [len(record) for record in wr.open(tmp_path / "again")] == [len(r) for r in wr.open(tmp_path / "out")]
    with pytest.raises(wr.ConfigError, match="append"):
        wr.tokenize(corpus, tmp_path / "own", tokenizer=lambda text: [*text.encode()], eos="append", vocab_size=256)


def test_a_named_tokenizer_and_its_end(corpus: Path, tmp_path: Path) -> None:
    report = wr.tokenize(corpus, tmp_path / "out", tokenizer="bytes", sample_size=64)
    stream = [id for text in texts(corpus) for id in [*text.encode(), 256]]
    assert report["documents"] == 20
    assert report["dropped_tokens"] == len(stream) % 64
    ds = wr.open(tmp_path / "out")
    assert np.concatenate(ds[:]).tolist() == stream[: len(ds) * 64]
    assert ds[0].dtype == np.uint16


def test_a_tokenizer_json(corpus: Path, tmp_path: Path, testdata: Path) -> None:
    path = testdata / "tokenizer" / "tiny4k" / "tokenizer.json"
    import tokenizers
    reference = tokenizers.Tokenizer.from_file(str(path))
    wr.tokenize([corpus], tmp_path / "out", tokenizer=path, eos=None)
    expected = [reference.encode(text, add_special_tokens=False).ids for text in texts(corpus)]
    assert [record.tolist() for record in wr.open(tmp_path / "out")] == expected


def test_a_loaded_tokenizer_is_as_good_as_its_name(corpus: Path, tmp_path: Path) -> None:
    loaded = wr.Tokenizer("cl100k_base")
    first = wr.tokenize(corpus, tmp_path / "out", tokenizer=loaded, sample_size=64)
    assert not first["unchanged"]
    assert wr.tokenize(corpus, tmp_path / "out", tokenizer="cl100k_base", sample_size=64)["unchanged"]
    ids = wr.tokenize(corpus, tmp_path / "other", tokenizer=wr.Tokenizer("bytes"), to="tokens")
    assert ids["tokens"] > first["tokens"]


def test_ones_own_function_and_one_stream(corpus: Path, tmp_path: Path) -> None:
    wr.tokenize(
        corpus.parent,
        tmp_path / "out",
        tokenizer=lambda text: np.array([len(text), 1]),
        text_function=lambda line: str(json.loads(line)["n"]),
        to="tokens",
        eos=7,
        dtype="uint32",
    )
    ds = wr.open(tmp_path / "out")
    assert ds[0].tolist() == [1, 1, 7] * 10 + [2, 1, 7] * 10
    assert ds[0].dtype == np.uint32


def test_exceptions_of_ones_own_function_come_out_as_they_are(corpus: Path, tmp_path: Path) -> None:
    class Mine(Exception):
        pass

    def fails(text: str) -> list[int]:
        if len(text) > 30:
            raise Mine("at last")
        return [1]

    with pytest.raises(Mine, match="at last"):
        wr.tokenize(corpus, tmp_path / "out", tokenizer=fails, vocab_size=9, eos=None)
    with pytest.raises(KeyError):
        wr.tokenize(
            corpus, tmp_path / "out", tokenizer="bytes", text_function=lambda line: str(json.loads(line)["nope"])
        )
    with pytest.raises(TypeError, match="list of whole numbers"):
        wr.tokenize(corpus, tmp_path / "out", tokenizer=lambda text: "ids", vocab_size=9, eos=None)  # type: ignore[arg-type, return-value]
    assert not (tmp_path / "out" / "index").exists()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"tokenizer": "no such tokenizer"}, wr.NotFoundError),
        ({"tokenizer": "bytes", "text_field": "nope"}, wr.CorruptError),
        ({"tokenizer": "bytes", "dtype": "uint8", "sample_size": 4}, wr.ConfigError),
        ({"tokenizer": "bytes", "eos": "<nope>"}, wr.ConfigError),
        ({"tokenizer": "bytes", "to": "parquet"}, wr.ConfigError),
        ({"tokenizer": "bytes", "remainder": "eat"}, wr.ConfigError),
        ({"tokenizer": lambda text: [70_000], "dtype": "uint16", "eos": None}, wr.ConfigError),
        ({"tokenizer": lambda text: [1], "vocab_size": 9}, wr.ConfigError),
        ({"tokenizer": 3}, TypeError),
    ],
)
def test_what_cannot_work_is_refused_and_leaves_nothing(
    corpus: Path, tmp_path: Path, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        wr.tokenize(corpus, tmp_path / "out", **options)
    assert not (tmp_path / "out" / "index").exists()


def test_an_error_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n{"text": 5}\n')
    with pytest.raises(wr.CorruptError) as found:
        wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes")
    assert (found.value.path, found.value.record) == (str(tmp_path / "a.jsonl"), 1)


def test_progress_is_told_and_may_stop(corpus: Path, tmp_path: Path) -> None:
    told: list[dict[str, int]] = []
    wr.tokenize(corpus, tmp_path / "out", tokenizer="bytes", progress=told.append)
    assert told[-1]["done_bytes"] == told[-1]["total_bytes"] == corpus.stat().st_size

    def stop(now: dict[str, int]) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        wr.tokenize(corpus, tmp_path / "other", tokenizer="bytes", progress=stop)
    assert not (tmp_path / "other" / "index").exists()


def test_ctrl_c_stops_and_a_rerun_completes(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "some words to read"}\n' * 20_000)
    script = tmp_path / "slow.py"
    script.write_text(
        textwrap.dedent("""
        import sys, time
        import windrow as wr

        def ids(text):
            if sys.argv[3] == "slow":
                time.sleep(0.001)
            return list(text.encode())

        print("ready", flush=True)
        wr.tokenize(sys.argv[1], sys.argv[2], tokenizer=ids, eos=None, vocab_size=256)
        """)
    )
    command = [sys.executable, str(script), str(path), str(tmp_path / "out")]
    with running([*command, "slow"], stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=15)
    assert "KeyboardInterrupt" in err
    assert not (tmp_path / "out" / "index").exists()
    subprocess.run([*command, "quick"], check=True, timeout=60)
    assert len(wr.open(tmp_path / "out")) == 20_000


def test_dummy_data_is_the_same_for_a_seed() -> None:
    a, b, c = wr.create_dummy_data(50, 1000), wr.create_dummy_data(50, 1000), wr.create_dummy_data(50, 1000, seed=1)
    assert (a.dtype, a.shape) == (np.uint32, (1000,))
    assert np.array_equal(a, b) and not np.array_equal(a, c)
    assert set(a.tolist()) == set(range(50))
    with pytest.raises(ValueError):
        wr.create_dummy_data(0, 10)


def test_a_tokenizer_encodes_and_decodes() -> None:
    tokenizer = wr.Tokenizer("cl100k_base")
    ids = tokenizer.encode("Hello <|endoftext|> wörld")
    assert tokenizer.decode(ids) == tokenizer.decode(np.array(ids)) == "Hello <|endoftext|> wörld"
    assert tokenizer.eos not in ids
    assert tokenizer.eos in tokenizer.encode("Hello <|endoftext|> wörld", special_tokens=True)
    assert max(ids) < tokenizer.vocab_size
    assert tokenizer.name == "cl100k_base"
    with pytest.raises(IndexError):
        tokenizer.decode([2**31])
    for wrong in (-1, 2**32, 2**70):
        with pytest.raises(wr.ConfigError, match=rf"ids\[1\] is {wrong}"):
            tokenizer.decode([1, wrong])
    with pytest.raises(FileNotFoundError):
        wr.Tokenizer("no such")


def test_formats_name_what_open_takes() -> None:
    rows = wr.formats()
    assert {"forager", "jsonl", "tokens"} <= {row["name"] for row in rows}
    texts = {"name", "title", "layout", "records", "written_by"}
    assert all(set(row) == texts | {"holds", "open_options", "write_options"} for row in rows)
    assert all(row[text] for row in rows for text in (*texts, "holds"))
    kinds = {"tokens", "series", "codes", "rows"}
    assert all(set(row["holds"]) <= kinds for row in rows)
    by_name = {row["name"]: row for row in rows}
    assert "document_eos" in by_name["tokens"]["open_options"]
    assert by_name["shards"]["write_options"] == ["max_shard_bytes", "normalize"]


def test_verify_finds_what_changed(corpus: Path, tmp_path: Path) -> None:
    wr.tokenize(corpus, tmp_path / "out", tokenizer="bytes", sample_size=8)
    found = wr.verify(tmp_path / "out")
    assert found["problems"] == [] and found["checked_files"] > 0
    (path,) = (tmp_path / "out" / "tokenized-samples").glob("*.bin")
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    problems = wr.verify(tmp_path / "out")["problems"]
    assert any(path.name in problem["file"] for problem in problems)
    assert all(set(problem) >= {"file", "what", "expected", "found"} for problem in problems)


def test_another_function_of_the_same_name_is_another_task(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "ab"}\n')
    first, second = (lambda text: [ord(c) for c in text]), (lambda text: [1 for _ in text])
    done = wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer=first, eos=None, dtype="uint16")
    assert not done["unchanged"]
    again = wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer=first, eos=None, dtype="uint16")
    assert again["unchanged"]
    with pytest.raises(wr.ExistsError):
        wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer=second, eos=None, dtype="uint16")


def test_tokens_are_refused_to_another_tokenizer_by_name_object_or_hash(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "ab"}\n')
    wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes")
    mine, other = wr.Tokenizer("bytes"), wr.Tokenizer("gpt2")
    for same in ("bytes", mine, mine.hash):
        assert len(wr.open(tmp_path / "out", tokenizer=same)) == 1
    for another in ("gpt2", other, other.hash):
        with pytest.raises(wr.MismatchError, match="bytes"):
            wr.open(tmp_path / "out", tokenizer=another)
    info = wr.open(tmp_path / "out").info()
    assert (info["tokenizer"], info["eos"]) == ("bytes", 256)


def words(folder: Path, first: int, *ends: str) -> Path:
    """A tokenizer.json of the words a and b, and of special tokens."""
    names = {"[UNK]": 0, "a": first, "b": first + 1}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0",
        "added_tokens": [{"id": 50 + at, "content": end, **flags} for at, end in enumerate(ends)],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {**names, **{end: 50 + at for at, end in enumerate(ends)}}},
    }))  # fmt: skip
    return folder / "tokenizer.json"


def test_the_end_is_the_one_that_lies_beside_a_tokenizer(tmp_path: Path) -> None:
    path = words(tmp_path / "m", 1, "<|endoftext|>", "</s>")
    (tmp_path / "a.jsonl").write_text('{"text": "a b"}\n')
    assert wr.Tokenizer(path).eos == 50
    (path.parent / "tokenizer_config.json").write_text('{"eos_token": {"content": "</s>"}}')
    assert wr.Tokenizer(path).eos == 51
    wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer=path, eos="append")
    assert wr.open(tmp_path / "out")[0].tolist() == [1, 2, 51]
    (path.parent / "tokenizer_config.json").write_text("{")
    with pytest.raises(wr.CorruptError, match=r"tokenizer_config\.json"):
        wr.Tokenizer(path)


def test_an_end_that_the_vocabulary_lacks_is_an_error_and_not_another_token(tmp_path: Path) -> None:
    path = words(tmp_path / "m", 1, "<|endoftext|>")
    (tmp_path / "a.jsonl").write_text('{"text": "a b"}\n')
    (path.parent / "tokenizer_config.json").write_text('{"eos_token": "<|eot|>"}')
    with pytest.raises(wr.ConfigError, match=r"<\|eot\|>.*not a token of tokenizer\.json") as error:
        print(wr.Tokenizer(path).eos)
    assert error.value.field == "eos_token" and error.value.path == str(path.parent / "tokenizer_config.json")
    with pytest.raises(wr.ConfigError, match=r"<\|eot\|>"):
        wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer=path)
    wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer=path, eos="<|endoftext|>", append_eos=True)
    assert wr.open(tmp_path / "out")[0].tolist() == [1, 2, 50]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpt-2", "did you mean gpt2?"),
        ("GPT2", "did you mean gpt2?"),
        ("meta-llama/Llama-3", "windrow download https://huggingface.co/meta-llama/Llama-3/resolve/main/tokenizer.json --out Llama-3"),
    ],
)
def test_a_name_that_is_not_there_says_what_is_meant_or_how_to_fetch_it(corpus: Path, tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(wr.NotFoundError, match="no tokenizer of this name") as error:
        wr.tokenize(corpus, tmp_path / "out", tokenizer=name)
    assert says in str(error.value.hint)


@pytest.mark.parametrize("to", ["forager", "megatron"])
def test_an_output_of_another_version_is_unchanged(corpus: Path, tmp_path: Path, to: str) -> None:
    wr.tokenize(corpus, tmp_path / "out", tokenizer="gpt2", to=to)
    (path,) = (tmp_path / "out").rglob("windrow.json")
    manifest = json.loads(path.read_text())
    # The text has a hash of its own, which goes.
    del manifest["xxh3"]
    manifest["windrow"] = manifest["tokenizer"]["windrow"] = "0.0.1"
    path.write_text(json.dumps(manifest))
    assert wr.tokenize(corpus, tmp_path / "out", tokenizer="gpt2", to=to)["unchanged"]
    manifest["tokenizer"]["hash"] = "0123456789abcdef"
    path.write_text(json.dumps(manifest))
    with pytest.raises(wr.ExistsError):
        wr.tokenize(corpus, tmp_path / "out", tokenizer="gpt2", to=to)


def test_a_tokenizer_pickles_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = words(tmp_path / "m", 1), words(tmp_path / "other", 5)
    monkeypatch.chdir(mine.parent)
    pickled = [pickle.dumps(wr.Tokenizer(path)) for path in ("tokenizer.json", ".")]
    monkeypatch.chdir(other.parent)
    assert [pickle.loads(one).encode("a b") for one in pickled] == [[1, 2]] * 2
    assert pickle.loads(pickle.dumps(wr.Tokenizer("bytes"))).name == "bytes"


def test_a_loaded_tokenizer_is_planned_with_the_path_it_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = words(tmp_path / "m", 1), words(tmp_path / "other", 5)
    (tmp_path / "a.jsonl").write_text('{"text": "a b"}\n')
    monkeypatch.chdir(tmp_path)
    for at, tokenizer in enumerate([wr.Tokenizer(mine), wr.Tokenizer("m"), "m", Path("m") / "tokenizer.json"]):
        monkeypatch.chdir(tmp_path)
        job = wr.prep.plan("tokenize", tmp_path / "a.jsonl", tmp_path / f"out{at}", tokenizer=tokenizer, eos=None)
        # Where another one has the name.
        monkeypatch.chdir(other.parent)
        assert wr.prep.run_task(job, 0)
        wr.prep.merge(job)
        assert wr.open(tmp_path / f"out{at}")[0].tolist() == [1, 2], tokenizer
    loaded = wr.Tokenizer(mine)
    mine.write_text(other.read_text())
    with pytest.raises(wr.MismatchError, match="another tokenizer is in the file"):
        wr.prep.plan("tokenize", tmp_path / "a.jsonl", tmp_path / "no", tokenizer=loaded, eos=None)
    assert not (tmp_path / "no").exists()


def test_a_built_in_name_is_planned_where_a_folder_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words(tmp_path / "bytes", 1)
    (tmp_path / "a.jsonl").write_text('{"text": "a b"}\n')
    monkeypatch.chdir(tmp_path)
    for at, (tokenizer, ids) in enumerate([("bytes", [97, 32, 98]), (wr.Tokenizer("bytes"), [97, 32, 98]), ("./bytes", [1, 2])]):
        job = wr.prep.plan("tokenize", "a.jsonl", f"out{at}", tokenizer=tokenizer, eos=None)
        assert wr.prep.run_task(job, 0)
        wr.prep.merge(job)
        assert wr.open(f"out{at}")[0].tolist() == ids


@pytest.mark.parametrize(("eos", "given", "pad"), [("auto", None, 256), (7, None, 7), (None, 0, 0), ("auto", 9, 9)])
def test_a_job_pads_with_what_ends_a_document(
    corpus: Path, tmp_path: Path, eos: Any, given: int | None, pad: int
) -> None:
    options: dict[str, Any] = {"tokenizer": "bytes", "sample_size": 1000, "remainder": "pad", "eos": eos, "pad_value": given}
    job = wr.prep.plan("tokenize", corpus, tmp_path / "parts", **options)
    assert json.loads(Path(job).read_text())["settings"]["remainder"] == {"pad": pad}
    assert wr.prep.run_task(job, 0)
    wr.prep.join(job, tmp_path / "joined")
    assert wr.tokenize(corpus, tmp_path / "joined", **options)["unchanged"]
    assert wr.open(tmp_path / "joined")[-1].tolist()[-1] == pad


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"remainder": "pad", "eos": None}, "no token ends a document"),
        ({"remainder": "pad", "pad_value": -1}, "pad_value -1 is not a token ID"),
        ({"pad_value": 3}, "nothing is padded"),
    ],
)
def test_padding_needs_an_id_of_a_token(corpus: Path, tmp_path: Path, options: dict[str, Any], says: str) -> None:
    for prepare in (wr.tokenize, lambda *paths, **given: wr.prep.plan("tokenize", *paths, **given)):
        with pytest.raises(wr.ConfigError, match=says) as raised:
            prepare(corpus, tmp_path / "out", tokenizer="bytes", sample_size=1000, **options)
        assert raised.value.field == "pad_value"
        assert not (tmp_path / "out").exists()


def test_a_field_within_a_field_is_the_same_in_lines_rows_and_dicts(tmp_path):
    record = {"meta": {"text": "a", "mask": [1]}, "meta.text": "b"}
    for name, records, text in (("both", [record], "b"), ("inside", [{"meta": record["meta"]}], "a")):
        lines = tmp_path / f"{name}.jsonl"
        lines.write_text("".join(json.dumps(one) + "\n" for one in records))
        wr.write(tmp_path / f"{name}.parquet", records, to="parquet")
        for n, source in enumerate((lines, tmp_path / f"{name}.parquet", iter(records))):
            out = tmp_path / f"{name}-{n}"
            wr.tokenize(source, out, tokenizer="bytes", text_field="meta.text", eos=None)
            assert bytes(wr.open(out)[0].tolist()).decode() == text
    fields = {"text_field": "meta.text", "mask_field": "meta.mask"}
    wr.tokenize(tmp_path / "inside.jsonl", tmp_path / "masked", tokenizer="bytes", eos=None, **fields)
    assert len(wr.open(tmp_path / "masked")) == 1
    said = {"chat": {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}}
    (tmp_path / "chat.jsonl").write_text(json.dumps(said) + "\n")
    options = {"tokenizer": "bytes", "chat": True, "chat_template": "chatml", "messages_field": "chat.messages"}
    wr.tokenize(tmp_path / "chat.jsonl", tmp_path / "from-lines", **options)
    wr.tokenize(iter([said]), tmp_path / "from-dicts", **options)
    batches = [wr.open(tmp_path / name).records(60)[0] for name in ("from-lines", "from-dicts")]
    assert batches[0]["input_ids"].tolist() == batches[1]["input_ids"].tolist()
