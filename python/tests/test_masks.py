"""Loss masks that come with the texts: from a tokenizer of one's own or a field, they reach the model through every view."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import windrow as wr

TEXTS = ["2+2=|4", "|yes", "say nothing|", "|", "wörd|ü"]
AS = {
    "lists": lambda ids, mask: (ids, mask),
    "bools": lambda ids, mask: (tuple(ids), [bool(m) for m in mask]),
    "arrays": lambda ids, mask: (np.array(ids, np.int32), np.array(mask, bool)),
    "tensors": lambda ids, mask: (torch.tensor(ids, dtype=torch.long), torch.tensor(mask, dtype=torch.uint8)),
}


def split(text: str) -> tuple[list[int], list[int]]:
    # Fails with any other text: what the texts give is known from them alone.
    question, answer = text.split("|")
    return [ord(c) for c in question + answer], [0] * len(question) + [1] * len(answer)


def lines(folder: Path, texts: list[str] = TEXTS) -> Path:
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def learned(out: Path) -> list[str]:
    return ["".join(chr(c) for c in one["tokens"][one["loss_mask"] == 0]) for one in wr.open(out)]


@pytest.mark.parametrize("kind", AS)
def test_a_function_gives_ids_and_a_mask(tmp_path: Path, kind: str) -> None:
    def tokenizer(text: str) -> Any:
        return AS[kind](*split(text))

    options: dict[str, Any] = {"tokenizer": tokenizer, "vocab_size": 256, "eos": None}
    path = lines(tmp_path)
    wr.tokenize(path, tmp_path / "out", **options)
    assert learned(tmp_path / "out") == ["4", "yes", "", "", "ü"]
    assert wr.tokenize(path, tmp_path / "out", **options)["unchanged"]
    assert wr.verify(tmp_path / "out")["problems"] == []
    wr.tokenize(iter(TEXTS), tmp_path / "iterable", **options)
    assert learned(tmp_path / "iterable") == learned(tmp_path / "out")
    assert wr.tokenize(iter(TEXTS), tmp_path / "iterable", **options)["unchanged"]


def test_every_view_has_the_mask(tmp_path: Path) -> None:
    wr.tokenize(lines(tmp_path), tmp_path / "out", tokenizer=split, vocab_size=257, eos=256, append_eos=True)
    ds = wr.open(tmp_path / "out")
    ids, mask = map(np.concatenate, zip(*((one["tokens"].astype(int), 1 - one["loss_mask"]) for one in ds), strict=True))
    # An EOS token is learned.
    assert (ids == 256).sum() == len(TEXTS) and mask[ids == 256].all()
    pack = ds.pack(8, labels="same")[0]
    assert pack["labels"].tolist() == np.where(mask, ids, -100)[:8].tolist()
    assert ds.pack(8)[0]["loss_masks"].tolist() == mask[1:9].tolist()
    # In bins nothing predicts the first token of a record.
    first = sum(1 - int(one["loss_mask"][0]) for one in ds)
    for view, expected in [(ds.records(16, labels="same"), mask.sum()), (ds.bins(16, labels="same"), mask.sum() - first)]:
        assert sum((view[i]["labels"] != -100).sum() for i in range(len(view))) == expected
    wr.tokenize(
        tmp_path / "texts.jsonl", tmp_path / "cut", tokenizer=split, vocab_size=257, eos=256, sample_size=8, remainder="pad"
    )
    assert np.concatenate([1 - one["loss_mask"] for one in wr.open(tmp_path / "cut")])[: len(mask)].tolist() == mask.tolist()


def given(answers: list[Any]) -> Callable[[str], Any]:
    # By the number of the text; no other text has an answer.
    return lambda text: answers[int(text)]


@pytest.mark.parametrize("as_iterable", [False, True])
@pytest.mark.parametrize(
    ("answers", "record", "says"),
    [
        ([([1, 2], [1, 0]), ([1, 2], [1])], 1, "gave 2 token IDs and a mask of 1 value"),
        ([([1], [1]), ([1, 2], [0, 2])], 1, "value 1 is 2; expected 0, 1, True or False"),
        ([([1], [0.5])], 0, "value 0 is 0.5"),
        ([([1], 1)], 0, "gave int as mask"),
        ([([1], [1]), [1]], 1, "gave no mask with this text"),
        ([[1], ([1], [1])], 1, "gave a mask with this text"),
    ],
)
def test_what_does_not_fit_is_an_error_with_its_place(
    tmp_path: Path, answers: list[Any], record: int, says: str, as_iterable: bool
) -> None:
    texts = [str(i) for i in range(len(answers))]
    path = lines(tmp_path, texts)
    inputs: Path | Iterator[str] = iter(texts) if as_iterable else path
    with pytest.raises(wr.ConfigError, match=says) as error:
        wr.tokenize(inputs, tmp_path / "out", tokenizer=given(answers), dtype="uint16", eos=None)
    assert error.value.record == record
    assert as_iterable or error.value.path == str(path)
    assert not (tmp_path / "out").exists() or all(one.name.startswith(".") for one in (tmp_path / "out").iterdir())


def test_two_ids_are_no_ids_with_a_mask(tmp_path: Path) -> None:
    both = [(5, 7), (np.uint16(6), np.int64(8))]
    wr.tokenize(iter("01"), tmp_path / "out", tokenizer=given(both), dtype="uint16", eos=None)
    assert [one.tolist() for one in wr.open(tmp_path / "out")] == [[5, 7], [6, 8]]


def test_other_formats_have_no_place_for_a_mask(tmp_path: Path) -> None:
    for inputs in (lines(tmp_path), iter(TEXTS)):
        with pytest.raises(wr.ConfigError, match="tokens has no place for a loss_mask"):
            wr.tokenize(inputs, tmp_path / "out", tokenizer=split, to="tokens", vocab_size=256, eos=None)


# As IDs, as a text, with what NumPy, Arrow and JSON have for 0 and 1.
ROWS: list[dict[str, Any]] = [
    {"text": [50, 43, 61], "mask": [0, 0, 1], "meta": {"ids": [1, 2], "learned": [True, False]}},
    {"text": [], "mask": [], "meta": {"ids": [], "learned": []}},
    {"text": [7], "mask": [1], "meta": {"ids": [300], "learned": [True]}},
]


def masked(out: Path) -> list[tuple[list[int], list[int]]]:
    return [(one["tokens"].tolist(), (1 - one["loss_mask"]).tolist()) for one in wr.open(out)]


def test_ids_with_a_mask_in_another_field(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    wr.write(tmp_path / "rows.parquet", ROWS, to="parquet")
    arrays = ({**row, "text": np.array(row["text"], np.uint16), "mask": np.array(row["mask"], bool)} for row in ROWS)
    for name, inputs in {"lines": path, "rows": tmp_path / "rows.parquet", "items": iter(ROWS), "arrays": arrays}.items():
        wr.tokenize(inputs, tmp_path / name, tokenizer="bytes", mask_field="mask")
        assert masked(tmp_path / name) == [(row["text"], row["mask"]) for row in ROWS], name
    wr.tokenize(tmp_path / "rows.parquet", tmp_path / "path", tokenizer="gpt2", text_field="meta.ids", mask_field="meta.learned")
    assert masked(tmp_path / "path") == [([1, 2], [1, 0]), ([], []), ([300], [1])]


def test_a_text_with_a_mask_of_its_tokens(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "ab", "mask": [0, 1]}\n{"mask": [true], "text": "\\u0063"}\n')
    options: dict[str, Any] = {"tokenizer": "bytes", "mask_field": "mask", "append_eos": True}
    wr.tokenize(path, tmp_path / "out", **options)
    assert masked(tmp_path / "out") == [([97, 98, 256], [0, 1, 1]), ([99, 256], [1, 1])]
    assert wr.tokenize(path, tmp_path / "out", **options)["unchanged"]


def test_other_fields_of_a_record_may_hold_what_only_python_writes(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"score": NaN, "text": "NaN", "mask": [0, 1, 1], "x": [-Infinity]}\n')
    wr.tokenize(path, tmp_path / "out", tokenizer="bytes", mask_field="mask")
    assert masked(tmp_path / "out") == [([78, 97, 78], [0, 1, 1])]
    for wrong in ('{"text": "a", "mask": [NaN]}', '{"text": [NaN], "mask": [1]}'):
        path.write_text(wrong + "\n")
        with pytest.raises(wr.CorruptError, match="value 0 of"):
            wr.tokenize(path, tmp_path / "wrong", tokenizer="bytes", mask_field="mask")


@pytest.mark.parametrize(
    ("line", "field", "says"),
    [
        ({"text": "ab"}, "mask", "no field .mask. in the record"),
        ({"mask": [1]}, "text", "no field .text. in the record"),
        ({"text": "ab", "mask": [1]}, "mask", ".text. is 2 tokens, and .mask. has 1 values"),
        ({"text": [1, 2], "mask": [1]}, "mask", ".text. is 2 tokens, and .mask. has 1 values"),
        ({"text": [1], "mask": [2]}, "mask", "value 0 of .mask. is 2; expected 0, 1, true or false"),
        ({"text": [1], "mask": "1"}, "mask", "field .mask. holds a string; expected a list of 0 and 1"),
        ({"text": [1.5], "mask": [1]}, "text", "value 0 of .text. is 1.5; expected a token ID"),
        ({"text": 1, "mask": [1]}, "text", "field .text. holds a number; expected a text, or a list of token IDs"),
        ({"text": [300], "mask": [1]}, None, "the encoder gave id 300; its vocabulary has the IDs 0..257"),
        ([1], None, "the record is not a JSON object"),
    ],
)
def test_lines_without_a_mask_that_fits_are_errors_with_their_place(
    tmp_path: Path, line: Any, field: str | None, says: str
) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "x", "mask": [1]}\n' + json.dumps(line) + "\n")
    with pytest.raises(wr.CorruptError, match=says) as error:
        wr.tokenize(path, tmp_path / "out", tokenizer="bytes", mask_field="mask")
    assert (error.value.path, error.value.record, error.value.field) == (str(path), 1, field)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tokenizer": split, "eos": None, "vocab_size": 256}, "mask_field is set, but a function gives the mask itself"),
        ({"text_function": bytes.decode}, "text_function is set, but mask_field names a field of the line"),
        ({"chat": True, "chat_template": "chatml"}, "mask_field is set, but a conversation is what its template says"),
        ({"text_field": "mask"}, "text and mask are both in field .mask."),
        ({"to": "tokens"}, "tokens has no place for a loss_mask"),
    ],
)
def test_options_that_do_not_go_with_a_field_of_masks(tmp_path: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(wr.ConfigError, match=says):
        wr.tokenize(lines(tmp_path), tmp_path / "out", **{"tokenizer": "bytes", "mask_field": "mask", **options})
