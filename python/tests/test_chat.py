"""Conversations have the token IDs and the mask of transformers' `apply_chat_template`, and reach the model through every view.

    python test_chat.py [CONVERSATIONS [SEED]]     compares that many, spread over all templates and tokenizers
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import pytest

import windrow as wr
from chat_templates import TEMPLATES, WITH_TOOLS, Conversations, saved

KINDS = ["bytes", "trimmed", "characters"]


def differences(name: str, kind: str, n: int, seed: int, folder: Path) -> list[str]:
    """The first conversations whose token IDs, or mask where the template says it, are not those of transformers."""
    tokenizer, has_mask = saved(kind, TEMPLATES[name], folder / "tokenizer"), "generation" in name
    make = Conversations(seed)
    records = [make.one(name in WITH_TOOLS) for _ in range(n)]
    lines = "".join(json.dumps(record, ensure_ascii=i % 2 == 0) + "\n" for i, record in enumerate(records))
    (folder / "chat.jsonl").write_text(lines, encoding="utf-8", newline="\n")
    wr.tokenize(folder / "chat.jsonl", folder / "out", tokenizer=folder / "tokenizer", chat=True, durable=False)
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


def test_an_iterable_is_no_file_of_conversations(tmp_path: Path) -> None:
    with pytest.raises(wr.ConfigError, match="takes conversations"):
        wr.tokenize(iter([{"messages": []}]), tmp_path / "out", tokenizer="bytes", chat=True)
