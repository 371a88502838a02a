"""Views in Hugging Face's Trainer: a causal model with `labels="same"` learns the next token, and nothing across documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

import windrow as wr

VOCAB = 64


def gpt2() -> Any:
    torch.manual_seed(0)
    off = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_positions=64, n_embd=16, n_layer=2, n_head=2, **off))


def llama() -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCAB, max_position_embeddings=64, **sizes))


MODELS = [gpt2, llama]


@pytest.fixture
def ds(tmp_path: Path) -> wr.Dataset:
    """Documents of 3 to 14 random tokens, in text order."""
    draw = np.random.default_rng(5)
    documents = [draw.integers(1, VOCAB, n).tolist() for n in draw.integers(3, 15, 30)]
    (tmp_path / "texts.jsonl").write_text("".join(f'{{"text": "{i}"}}\n' for i in range(len(documents))))
    wr.tokenize(
        tmp_path / "texts.jsonl",
        tmp_path / "tokens",
        tokenizer=lambda text: documents[int(text)],
        eos=None,
        vocab_size=VOCAB,
    )
    return wr.open(tmp_path / "tokens")


def trained_loss(model: Any, view: wr.View, folder: Path) -> float:
    """The loss that Trainer reports for one step over all rows, at a learning rate of 0."""
    options = TrainingArguments(
        str(folder), max_steps=1, per_device_train_batch_size=len(view), learning_rate=0.0, use_cpu=True, report_to="none",
        save_strategy="no", disable_tqdm=True,
    )
    found: float = Trainer(model=model, args=options, train_dataset=view).train().training_loss
    return found


def learned(model: Any, ids: torch.Tensor, **more: torch.Tensor) -> torch.Tensor:
    """The loss of each token but the first, from those before it."""
    model.eval()
    with torch.no_grad():
        logits = model(input_ids=ids, **more).logits
    return cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none")


def test_the_trainers_loss_is_that_of_the_next_token(ds: wr.Dataset, tmp_path: Path) -> None:
    view = ds.pack(16, labels="same")
    ids = torch.from_numpy(view.batch(range(len(view)))["input_ids"])
    by_hand = learned(llama(), ids).mean().item()
    assert trained_loss(llama(), view, tmp_path) == pytest.approx(by_hand, rel=1e-4)
    # With the token after as label the model shifts once more: that is the loss of the token after the next.
    assert abs(trained_loss(llama(), ds.pack(16), tmp_path) - by_hand) > 1e-3


@pytest.mark.parametrize("make", MODELS)
def test_a_models_loss_is_that_of_the_next_token(ds: wr.Dataset, make: Any) -> None:
    batch = next(wr.Loader(ds.pack(16, labels="same"), 8, framework="torch"))
    found = make().eval()(**batch).loss.item()
    assert found == pytest.approx(learned(make(), batch["input_ids"]).mean().item(), rel=1e-5)
    twice = next(wr.Loader(ds.pack(16), 8, framework="torch"))
    stream = torch.cat([twice["input_ids"], twice["labels"][:, -1:]], 1)
    logits = make().eval()(input_ids=twice["input_ids"]).logits
    after_next = cross_entropy(logits[:, :-1].flatten(0, 1), stream[:, 2:].flatten()).item()
    assert make().eval()(**twice).loss.item() == pytest.approx(after_next, rel=1e-5)


@pytest.mark.parametrize("make", MODELS)
def test_documents_in_bins_are_learned_one_by_one(ds: wr.Dataset, tmp_path: Path, make: Any) -> None:
    view = ds.bins(32, labels="same")
    assert max(row["segment_ids"].max() for row in view) >= 2
    # Each document by itself, as if there were no others.
    alone = torch.cat([learned(make(), torch.from_numpy(ds[i].astype(np.int64))[None]) for i in range(len(ds))])
    assert trained_loss(make(), view, tmp_path) == pytest.approx(alone.mean().item(), rel=1e-4)


@pytest.mark.parametrize("make", MODELS)
def test_documents_in_one_flat_row_are_learned_one_by_one(ds: wr.Dataset, make: Any) -> None:
    for view in (ds.bins(32, labels="same"), ds.pack(32, documents=True, labels="same", positions="document")):
        row = wr.torch.varlen(next(wr.Loader(view, 4, framework="torch")), names="transformers")
        ends = row["cu_seq_lens_q"].tolist()
        assert ends == row["cu_seq_lens_k"].tolist() and row["max_length_q"] == row["max_length_k"] == int(np.diff(ends).max())
        assert {name: (row[name].dtype, row[name].shape) for name in ("input_ids", "labels", "position_ids")} == {
            name: (torch.int64, (1, ends[-1])) for name in ("input_ids", "labels", "position_ids")
        }
        alone = torch.cat([learned(make(), row["input_ids"][:, a:b]) for a, b in zip(ends, ends[1:], strict=False)])
        assert make().eval()(**row, use_cache=False).loss.item() == pytest.approx(alone.mean().item(), rel=1e-4)


def test_labels_that_a_model_would_shift_twice_are_refused(ds: wr.Dataset) -> None:
    batch = next(wr.Loader(ds.bins(32), 4, framework="torch"))
    with pytest.raises(wr.ConfigError, match="labels are not the inputs") as caught:
        wr.torch.varlen(batch, names="transformers")
    assert 'labels="same"' in caught.value.hint
    with pytest.raises(wr.ConfigError, match="names="):
        wr.torch.varlen(batch, names="trl")


@pytest.mark.parametrize("view", ["records", "windows"])
def test_padding_is_not_learned(ds: wr.Dataset, tmp_path: Path, view: str) -> None:
    rows = getattr(ds, view)(16, labels="same")
    alone = torch.cat([learned(llama(), torch.from_numpy(ds[i].astype(np.int64))[None]) for i in range(len(ds))])
    assert trained_loss(llama(), rows, tmp_path) == pytest.approx(alone.mean().item(), rel=1e-4)


def test_a_loaders_batch_goes_into_the_model(ds: wr.Dataset) -> None:
    batch = next(wr.Loader(ds.records(16, labels="same"), 8, framework="torch", shuffle=False))
    model = gpt2().eval()
    found = model(input_ids=batch["input_ids"], labels=batch["labels"]).loss
    told = batch["loss_masks"][:, 1:].flatten() == 1
    assert found.item() == pytest.approx(learned(model, batch["input_ids"])[told].mean().item(), rel=1e-5)
