"""Conversations have the token IDs and the mask of transformers' `apply_chat_template`, and reach the model through every view.

    python test_chat.py [CONVERSATIONS [SEED]]     compares that many, spread over all templates and tokenizers
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

import windrow as wr
from chat_templates import TEMPLATES, WITH_TOOLS, Conversations, saved
from foreign_cases import with_loaders

KINDS = ["bytes", "trimmed", "characters"]


def differences(name: str, kind: str, n: int, seed: int, folder: Path) -> list[str]:
    """The first conversations whose token IDs, or mask where the template says it, are not those of transformers."""
    tokenizer, has_mask = saved(kind, TEMPLATES[name], folder / "tokenizer"), "generation" in name
    make = Conversations(seed)
    records = [make.one(name in WITH_TOOLS) for _ in range(n)]
    lines = "".join(json.dumps(record, ensure_ascii=i % 2 == 0) + "\n" for i, record in enumerate(records))
    (folder / "chat.jsonl").write_text(lines, encoding="utf-8", newline="\n")
    wr.tokenize(folder / "chat.jsonl", folder / "out", tokenizer=folder / "tokenizer", chat=True, fsync=False)
    ds, found = wr.open(folder / "out"), []
    assert len(ds) == n
    for i, record in enumerate(records):
        want = tokenizer.apply_chat_template(
            record["messages"], tools=record.get("tools"), return_dict=True, return_assistant_tokens_mask=has_mask
        )
        got = ds[i]
        if got["tokens"].tolist() != want["input_ids"]:
            text = tokenizer.apply_chat_template(record["messages"], tools=record.get("tools"), tokenize=False)
            found.append(f"{name}, {kind}, {record}:\n{tokenizer.decode(got['tokens'].tolist())!r}\ntransformers:\n{text!r}")
        elif has_mask and (1 - got["loss_mask"]).tolist() != want["assistant_masks"]:
            found.append(f"{name}, {kind}, {record}: mask {got['loss_mask'].tolist()}, not {want['assistant_masks']}")
        if len(found) == 3:
            break
    return found


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_masks_are_those_of_transformers(name, kind, tmp_path):
    assert not differences(name, kind, 40, seed=0, folder=tmp_path)


# Tables have each key in each row: those that a call or a message has not are null there.
# Their keys are in the order of the alphabet, as pyarrow puts those of structs.
CALLS: list[dict[str, Any]] = [
    {"id": 1, "messages": [{"content": "1 + 1?", "role": "user"}, {"content": "2", "role": "assistant"}]},
    {
        "id": 2,
        "messages": [
            {"content": "Use tools. 你好", "role": "system"},
            {"content": "Weather?", "role": "user", "name": "Ann"},
            {"role": "assistant", "tool_calls": [{"function": {"arguments": {"city": "Köln"}, "name": "weather"}}]},
            {"content": "rain", "role": "tool", "name": "weather"},
            {"role": "assistant", "tool_calls": [{"function": {"arguments": {"as": 0.5, "of": [1, 2]}, "name": "add"}}]},
            {"content": "", "role": "assistant"},
        ],
        "tools": json.dumps([{"function": {"name": "weather"}, "type": "function"}]),
    },
    {"id": 3, "messages": [{"content": "", "role": "user"}, {"content": "a\n\u2028b", "role": "assistant"}]},
] * 40
# Says all that it is given.
SAYS = (
    "{{ tools | tojson if tools else '' }}{% for m in messages %}{{ m.role }}:"
    "{% generation %}{{ m | tojson }}{% endgeneration %}|{% endfor %}"
)
TABLES = """
import json, sys
import datasets, pyarrow as pa, pyarrow.parquet as pq
import windrow as wr
datasets.disable_progress_bars()
folder = sys.argv[1]
records = [json.loads(line) for line in open(f"{folder}/texts.jsonl", encoding="utf-8")]
table = pa.Table.from_pylist([{"tools": None, **record} for record in records])
pq.write_table(table, f"{folder}/texts.parquet", row_group_size=50)
with pa.OSFile(f"{folder}/texts.arrow", "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
    writer.write_table(table, max_chunksize=30)
ds = datasets.Dataset(datasets.table.InMemoryTable(table))
ds.save_to_disk(f"{folder}/saved")
options = {"tokenizer": "bytes", "chat": True, "chat_template": f"{folder}/says.jinja", "fsync": False}
for name, given in {"dataset": ds, "streaming": ds.to_iterable_dataset()}.items():
    wr.tokenize(given, f"{folder}/{name}", **options)
print(json.dumps(len(ds)))
"""


def data(out: Path) -> tuple[bytes, list[int]]:
    """Its token IDs and masks, and the lengths of its records."""
    (samples,) = out.glob("tokenized-samples/*.bin")
    ds = wr.open(out)
    return samples.read_bytes(), [ds.length(i) for i in range(len(ds))]


def test_conversations_of_tables_and_iterables_are_those_of_lines(tmp_path: Path) -> None:
    lines = "".join(json.dumps(record) + "\n" for record in CALLS)
    (tmp_path / "texts.jsonl").write_text(lines)
    (tmp_path / "says.jinja").write_text(SAYS)
    options: dict[str, Any] = {"tokenizer": "bytes", "chat": True, "chat_template": tmp_path / "says.jinja", "fsync": False}
    expected = wr.tokenize(tmp_path / "texts.jsonl", tmp_path / "lines", **options)
    assert expected["documents"] == len(CALLS)
    assert with_loaders(TABLES, tmp_path) == len(CALLS)
    for name in ("texts.parquet", "texts.arrow", "saved"):
        report = wr.tokenize(tmp_path / name, tmp_path / f"of-{name}", **options)
        assert report["tokens"] == expected["tokens"]
        assert wr.tokenize(tmp_path / name, tmp_path / f"of-{name}", **options)["unchanged"]
    wr.tokenize((record for record in CALLS), tmp_path / "generator", **options)
    assert wr.tokenize(iter(CALLS), tmp_path / "generator", **options)["unchanged"]
    for name in ("of-texts.parquet", "of-texts.arrow", "of-saved", "generator", "dataset", "streaming"):
        assert data(tmp_path / name) == data(tmp_path / "lines"), name
        assert wr.verify(tmp_path / name)["problems"] == []


@pytest.mark.parametrize("name", ["bytes", "gpt2", "cl100k_base", "o200k_base", "deepseek_v3"])
def test_a_template_ends_messages_with_the_eos_token_of_a_built_in_tokenizer(tmp_path: Path, name: str) -> None:
    messages = [{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "2"}]
    (tmp_path / "a.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer=name, chat=True, chat_template="zephyr")
    tokenizer, got = wr.Tokenizer(name), wr.open(tmp_path / "out")[0]
    ids, learned = got["tokens"].tolist(), got["loss_mask"] == 0
    assert ids.count(tokenizer.eos) == 2
    of_answer = [token for token, is_learned in zip(ids, learned, strict=True) if is_learned]
    assert of_answer == [*tokenizer.encode("2"), tokenizer.eos]


def test_messages_may_be_inside_of_a_column(tmp_path: Path) -> None:
    turns = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "ho"}]
    items = [{"json": {"turns": turns, "tools": [{"name": "t"}]}}]
    wr.write(tmp_path / "tars", items, to="webdataset")
    (tmp_path / "says.jinja").write_text(SAYS)
    options: dict[str, Any] = {"tokenizer": "bytes", "chat": True, "chat_template": tmp_path / "says.jinja"}
    wr.tokenize(tmp_path / "tars", tmp_path / "rows", messages_field="json.turns", **options)
    wr.tokenize(iter(items), tmp_path / "items", messages_field="json.turns", **options)
    text = wr.Tokenizer("bytes").decode(wr.open(tmp_path / "rows")[0]["tokens"])
    assert text == '[{"name": "t"}]user:{"role": "user", "content": "hi"}|assistant:{"role": "assistant", "content": "ho"}|'
    assert [one["tokens"].tolist() for one in wr.open(tmp_path / "items")] == [list(text.encode())]


@pytest.mark.parametrize(
    ("item", "options", "says"),
    [
        ("hi", {}, "the item is str; expected a dict with .messages. or .conversations."),
        ({"turns": []}, {}, "no .messages. or .conversations. in the dict"),
        ({"messages": "hi"}, {}, "is not a list of messages"),
        ({"messages": [{"content": "x"}]}, {}, "message 0 of .messages. has no role"),
        ({"messages": [{"role": "user", "content": b"x"}]}, {}, "holds bytes, which is not JSON"),
        ({"messages": [{"role": "user", "content": object()}]}, {}, "cannot be JSON"),
        ({"messages": []}, {"messages_field": "turns"}, "no .turns. in the dict"),
    ],
)
def test_what_is_no_conversation_is_an_error_with_its_number(
    tmp_path: Path, item: Any, options: dict[str, Any], says: str
) -> None:
    good = {"messages": [{"role": "user", "content": "x"}], "turns": [{"role": "user", "content": "x"}]}
    with pytest.raises(wr.CorruptError, match=says) as error:
        wr.tokenize(iter([good, item]), tmp_path / "out", tokenizer="bytes", chat=True, chat_template="chatml", **options)
    assert error.value.record == 1


def test_rows_without_a_conversation_are_an_error_with_their_place(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "x"}]
    wr.write(tmp_path / "a.parquet", [{"messages": messages}, {"messages": None}], to="parquet")
    options: dict[str, Any] = {"tokenizer": "bytes", "chat": True, "chat_template": "chatml"}
    with pytest.raises(wr.CorruptError, match="no field .messages. with a conversation") as corrupt:
        wr.tokenize(tmp_path / "a.parquet", tmp_path / "out", **options)
    assert (corrupt.value.record, corrupt.value.path) == (1, str(tmp_path / "a.parquet"))
    with pytest.raises(wr.ConfigError, match="no column .turns.") as error:
        wr.tokenize(tmp_path / "a.parquet", tmp_path / "out", messages_field="turns", **options)
    assert error.value.field == "messages_field" and "it has messages" in str(error.value.hint)


def main(n: int = 10_000, seed: int = 1) -> int:
    pairs = [(name, kind) for name in TEMPLATES for kind in KINDS]
    each, start, found = -(-n // len(pairs)), time.monotonic(), []
    for i, (name, kind) in enumerate(pairs):
        with tempfile.TemporaryDirectory() as folder:
            found += differences(name, kind, each, seed + i, Path(folder))
    print(*found, sep="\n")
    took = time.monotonic() - start
    print(f"{each * len(pairs)} conversations, {len(TEMPLATES)} templates, {len(found)} differ, {took:.0f} s")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))


def said_by(folder: Path, *roles: str) -> Path:
    path = folder / "conversations.jsonl"
    messages = [[{"role": role, "content": "ho"}] for role in roles]
    lines = [json.dumps({"messages": [{"role": "user", "content": "hi"}, *one]}) + "\n" for one in messages]
    path.write_text("".join(lines))
    return path


def test_roles_are_known_as_people_write_them(tmp_path: Path) -> None:
    roles = ["assistant", "Assistant", "model", "bot", "GPT"]
    path = said_by(tmp_path, *roles)
    wr.tokenize(path, tmp_path / "out", tokenizer="bytes", chat=True, chat_template="chatml")
    for record in wr.open(tmp_path / "out"):
        assert bytes(record["tokens"][record["loss_mask"] == 0].tolist()).startswith(b"ho")
        assert b"<|im_start|>assistant\n" in bytes(record["tokens"].tolist())
    # A template that speaks of a model means that role.
    template = tmp_path / "model.jinja"
    template.write_text("{% for m in messages %}{{ '<' if m.role == 'model' else '' }}{{ m.role }}: {{ m.content }}\n{% endfor %}")
    wr.tokenize(said_by(tmp_path, "model"), tmp_path / "own", tokenizer="bytes", chat=True, chat_template=str(template))
    assert bytes(wr.open(tmp_path / "own")[0]["tokens"].tolist()) == b"user: hi\n<model: ho\n"


def test_conversations_of_which_nothing_is_learned_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options: dict[str, Any] = {"tokenizer": "bytes", "chat": True, "chat_template": "chatml"}
    path = said_by(tmp_path, "assistant", "user", "critic")
    report = wr.tokenize(path, tmp_path / "out", **options)
    assert report["unlearned_documents"] == 2 == wr.open(tmp_path / "out").info()["unlearned_documents"]
    assert "nothing is learned of 2 of 3 documents" in caplog.text
    assert any("nothing is learned of 2 of 3 documents" in note for note in wr.verify(tmp_path / "out")["notes"])
    assert wr.tokenize(path, tmp_path / "out", **options)["unlearned_documents"] == 2
    with pytest.raises(wr.ConfigError, match="nothing is learned of any of 2 documents") as error:
        wr.tokenize(said_by(tmp_path, "user", "critic"), tmp_path / "none", **options)
    assert "assistant, model, bot or gpt" in (error.value.hint or "") and not (tmp_path / "none").exists()
