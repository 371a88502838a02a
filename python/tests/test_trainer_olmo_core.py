"""examples/trainers/olmo_core.py in OLMo-core's own Trainer: killed, and resumed on another number of ranks; and in its model.
"""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest
import torch
from adapters import adapter
from trainer_jobs import Job, documents, run_job
from torch.nn.functional import scaled_dot_product_attention

import windrow as wr

LATE = 8


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("olmo_core")
    documents(folder / "tokens", n=25)
    return run_job("olmo_core_job.py", folder)


def test_a_run_that_was_killed_in_an_epoch_is_one_that_never_stopped(job: Job) -> None:
    job.check("1 to 2", 1, 2, unbroken=1)


def test_a_run_that_was_killed_after_an_epoch_is_one_that_never_stopped(job: Job) -> None:
    Job(job.folder, LATE).check("2 to 1", 2, 1, unbroken=1)


def dense(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ends: torch.Tensor, *_: Any, causal: bool, **__: Any) -> torch.Tensor:
    """What flash attention gives on a GPU: attention of each document by itself; tensors are [tokens, heads, width]."""
    parts = zip(*(t.transpose(0, 1).split(ends.diff().tolist(), dim=1) for t in (q, k, v)), strict=True)
    return torch.cat([scaled_dot_product_attention(*part, is_causal=causal) for part in parts], dim=1).transpose(0, 1).contiguous()


@pytest.mark.parametrize("cut", ["pack", "bins"])
def test_no_document_of_a_row_sees_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: str) -> None:
    from olmo_core.nn.attention import flash_attn_api
    from olmo_core.nn.transformer import TransformerConfig

    monkeypatch.setattr(flash_attn_api, "flash_attn_2", types.SimpleNamespace(flash_attn_varlen_func=dense))
    # So that its model takes flash attention without a GPU.
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    documents(tmp_path / "tokens", n=60)
    ds = wr.open(tmp_path / "tokens")
    view = ds.pack(64, eos=0, documents=True) if cut == "pack" else ds.bins(64)
    model = TransformerConfig.llama_like(d_model=16, vocab_size=200, n_layers=2, n_heads=2, attn_backend="flash_2").build(init_device="cpu")
    common = {"sequence_length": 64, "seed": 5, "documents": True, "work_dir": tmp_path, "global_batch_size": 256}
    loader = adapter("olmo_core").WindrowDataLoader(view, **common)
    loader.reshuffle()
    for inputs, batch in zip(range_of(loader, 3), wr.Loader(view, 4, seed=5, framework="torch"), strict=False):
        documents_of_row = {name: inputs[name] for name in ("doc_lens", "max_doc_lens")}
        assert torch.equal(inputs["input_ids"], batch["input_ids"])
        wr.testing.check_no_leak(lambda batch, more=documents_of_row: model(batch["input_ids"], **more), batch)


def range_of(loader: Any, n: int) -> list[dict[str, Any]]:
    """Its first batches."""
    return [batch for _, batch in zip(range(n), loader, strict=False)]
