"""One JSON array of objects, as sets for fine-tuning are: records for open, tokenize and chat, as `json.load` gives them."""

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

import windrow as wr
from chat_templates import TEMPLATES, saved

ROWS: list[dict[str, Any]] = [
    {"id": i, "instruction": f"Do {i}.", "input": "", "output": f"Done {i}:\n}} ]\\\" ü", "ids": [1, i], "meta": {"kind": f"k{i}"}}
    for i in range(5)
]
TEXTS = [row["output"] for row in ROWS]

FORMS = {
    "pretty": json.dumps(ROWS, indent=4).encode(),
    "oneline": json.dumps(ROWS, ensure_ascii=False).encode(),
    "marked": b"\xef\xbb\xbf\r\n" + json.dumps(ROWS, indent=1).replace("\n", "\r\n").encode(),
}


def tokenized(path: Path, field: str = "output", **options: Any) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        wr.tokenize(path, f"{folder}/out", tokenizer="bytes", text_field=field, fsync=False, **options)
        return [bytes(tokens.tolist()).decode() for tokens in wr.open(f"{folder}/out")[:]]


@pytest.mark.parametrize("name", ["data.json", "data.json.gz"])
@pytest.mark.parametrize("form", FORMS)
def test_the_objects_are_the_records(tmp_path: Path, form: str, name: str) -> None:
    packed = gzip.compress(FORMS[form]) if name.endswith(".gz") else FORMS[form]
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / name).write_bytes(packed)
    for path in (folder / name, folder):
        ds = wr.open(path)
        assert (ds.format, ds[:]) == ("json-array", ROWS)
        assert wr.open(path, columns=["output", "id"])[3] == {"output": TEXTS[3], "id": 3}
        assert tokenized(path) == TEXTS
        assert tokenized(path, "meta.kind") == [f"k{i}" for i in range(5)]
        assert wr.verify(path)["bad_files"] == 0


def test_a_record_lies_where_it_is_said_to_lie(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(FORMS["pretty"])
    loader = wr.Loader(wr.open(tmp_path / "a.json").rows(), 1, seed=1, rank=0, world_size=1)
    for step in range(5):
        (traced,) = wr.trace(loader, step, row=0)
        ((place,),) = [read["locations"] for read in traced["reads"]]
        assert json.loads(FORMS["pretty"][place["start"] : place["start"] + place["size"]]) in ROWS


def test_it_converts_to_lines_and_columns(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(FORMS["pretty"])
    for to in ("jsonl", "parquet"):
        wr.convert(tmp_path / "a.json", tmp_path / f"a.{to}", to=to)  # type: ignore[arg-type]
        got = wr.open(tmp_path / f"a.{to}")[:]
        assert [row["output"] for row in got] == TEXTS
    assert (tmp_path / "a.jsonl").read_bytes().count(b"\n") == 5


def test_splits_parts_and_patterns(tmp_path: Path) -> None:
    for name in ("train/x2.json", "train/x10.json", "test/x.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps([{"text": name}, {"text": "b"}], indent=1))
    (tmp_path / "dataset_info.json").write_text("[{}]")
    with pytest.raises(wr.ConfigError, match="several splits"):
        wr.open(tmp_path)
    assert [row["text"] for row in wr.open(tmp_path, split="train")[:]] == ["train/x2.json", "b", "train/x10.json", "b"]
    assert len(wr.open(tmp_path, split="all")) == 6
    assert len(wr.open(f"{tmp_path}/train/*.json")) == 4
    assert tokenized(tmp_path, "text", split="test") == ["test/x.json", "b"]


def test_an_array_of_series_stays_series(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps([{"sequence": [1, 2]}, {"sequence": [3]}]))
    (tmp_path / "t.json").write_text(json.dumps([{"start": "2020-01-01", "target": [1, 2]}]))
    (tmp_path / "r.json").write_bytes(FORMS["pretty"])
    assert [wr.open(tmp_path / name).format for name in ("s.json", "t.json")] == ["series-json"] * 2
    assert wr.open(tmp_path / "r.json", column="ids")[4].tolist() == [1, 4]


@pytest.mark.parametrize(
    ("text", "says", "byte"),
    [
        ('[{"a": 1},\n {"a": 2}', "does not end: 2 whole objects", 20),
        ('[{"a": 1},\n {"a": "2', "does not end: 1 whole object", 20),
        ('[{"a": 1},\n 5]', 'expected an object, found "5', 12),
        ('[{"a": 1}] x', "expected nothing more", 11),
        ('[{"a": 1} {"a": 2}]', "expected ',' or ']'", 10),
    ],
)
def test_what_is_not_one_is_named_by_its_byte(tmp_path: Path, text: str, says: str, byte: int) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(wr.CorruptError, match=says) as caught:
        wr.open(tmp_path / "a.json")
    assert caught.value.byte == byte


def test_a_record_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"text": "a"}, {"text": nope}]')
    with pytest.raises(wr.CorruptError) as caught:
        wr.open(tmp_path / "a.json")[1]
    assert caught.value.record == 1
    with pytest.raises(wr.CorruptError) as caught:
        tokenized(tmp_path / "a.json", "text")
    assert caught.value.record == 1


def test_lines_are_not_made_of_an_array(tmp_path: Path) -> None:
    for form in ("pretty", "oneline"):
        (tmp_path / "a.json").write_bytes(FORMS[form])
        with pytest.raises(wr.CorruptError, match="one array of objects") as caught:
            wr.open(tmp_path / "a.json", format="jsonl")
        assert 'format="json-array"' in str(caught.value)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.json").write_bytes(FORMS["pretty"])
    with pytest.raises(wr.NotFoundError) as caught:
        wr.index(folder)
    assert "array" in str(caught.value)


def test_conversations_are_those_of_the_lines(tmp_path: Path) -> None:
    name = next(iter(TEMPLATES))
    saved("bytes", TEMPLATES[name], tmp_path / "tokenizer")
    turns = [{"role": "user", "content": "Hay?"}, {"role": "assistant", "content": "Straw."}]
    records = [{"id": i, "messages": turns[: 2 - i % 2] or turns} for i in range(4)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / "a.json").write_text(json.dumps(records, indent=2))
    made = []
    for source in ("a.jsonl", "a.json"):
        out = tmp_path / f"out-{source}"
        wr.tokenize(tmp_path / source, out, tokenizer=tmp_path / "tokenizer", chat=True, fsync=False)
        made.append([(row["tokens"].tolist(), row["loss_mask"].tolist()) for row in wr.open(out)[:]])
    assert made[0] == made[1]
    assert len(made[0]) == 4
