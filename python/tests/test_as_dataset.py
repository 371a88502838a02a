"""`Stream.as_dataset()`: the rows of a run as `datasets` has them, for the trainers that take nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign_cases import with_loaders

import windrow as wr

# What the programs share: 24 rows of documents, 4 to 9 tokens each.
COMMON = """
import doctest, json, pickle, sys
from itertools import islice
import numpy as np
import windrow as wr
from datasets.distributed import split_dataset_by_node
from torch.utils.data import DataLoader

ds = wr.open(sys.argv[1])
view = ds.bins(16, labels="same")

def made(view=view, **options):
    return wr.torch.Stream(view, seed=3, **options).as_dataset()

def firsts(rows):
    return [int(row["input_ids"][0]) for row in rows]

def refused(call):
    try:
        call()
    except (wr.WindrowError, TypeError) as error:
        return f"{type(error).__name__}: {error}"

found = {}
"""

DATASETS = (
    COMMON
    + """
loader = wr.Loader(view, 1, seed=3, epochs=3)
run = [int(batch["input_ids"][0, 0]) for batch in loader.stream()]
n = len(view)
found["run"], found["n"] = run, n
found["endless"] = firsts(made().take(3 * n))
found["columns"] = made().column_names
found["types"] = {name: str(feature) for name, feature in made().features.items()}
row = next(iter(made()))
found["row"] = {name: [str(value.dtype), value.shape] for name, value in row.items()}
found["lengths"] = [[row["seq_lengths"].tolist(), row["cu_seqlens"].tolist()] for row in made(epochs=1)]

# Epochs of a host, and the stream's own place.
one = made(epochs=1)
epochs = []
for epoch in (0, 1, 1, 2):
    one.set_epoch(epoch)
    epochs.append(firsts(one))
found["epochs"] = epochs
stream = wr.torch.Stream(view, seed=3)
stream.load_state_dict({**stream.state_dict(), "epoch": 1, "samples": 5})
found["later"] = firsts(stream.as_dataset().take(n))

# States, at each place of two epochs, in JSON, also of what was made of the data set.
def continued(make, at):
    rows = make()
    iterator = iter(rows)
    for _ in range(at):
        next(iterator)
    again = make()
    again.load_state_dict(json.loads(json.dumps(rows.state_dict())))
    return firsts(islice(again, 4))

def mapped():
    return made().map(lambda row: {"input_ids": row["input_ids"][:4]}).filter(lambda row: True)

places = [0, 1, n - 1, n, n + 3]
found["continued"] = [continued(made, at) for at in places]
found["mapped"] = [continued(mapped, at) for at in places]
found["pickled"] = firsts(pickle.loads(pickle.dumps(made())).take(5))
other = made(ds.bins(32))
rows = made()
next(iter(rows))
other.load_state_dict(rows.state_dict())
found["other plan"] = refused(lambda: next(iter(other)))

# Ranks, before and after a state, and workers.
def of_ranks(n_ranks, take=6):
    ranks = []
    for rank in range(n_ranks):
        rows = made()
        ranks.append(firsts(islice(split_dataset_by_node(rows, rank=rank, world_size=n_ranks), take)))
    return ranks

found["two"] = of_ranks(2)
found["three"] = of_ranks(3)
rows = split_dataset_by_node(made(), rank=1, world_size=2)
list(islice(rows, 3))
three = [split_dataset_by_node(made(), rank=rank, world_size=3) for rank in range(3)]
for part in three:
    part.load_state_dict(rows.state_dict())
found["two, then three"] = [firsts(islice(part, 4)) for part in three]
found["workers"] = sorted(sum((firsts(b) for b in DataLoader(made(epochs=1), 4, num_workers=2, collate_fn=list)), []))

# The example of its documentation.
example = doctest.DocTestParser().get_doctest(wr.torch.Stream.as_dataset.__doc__, {}, "as_dataset", None, 0)
found["example"] = [len(example.examples), doctest.DocTestRunner(verbose=False).run(example).failed]

# Data of other kinds.
wr.write(sys.argv[1] + "-rows.parquet", [{"text": f"row {i}", "score": i / 2} for i in range(6)], to="parquet")
texts = made(wr.open(sys.argv[1] + "-rows.parquet").rows(), epochs=1)
found["texts"] = [texts.column_names, sorted(row["text"] for row in texts)]
mix = wr.mix({"a": (view, 1.0), "b": (view, 2.0)}, stop="never")
batches = wr.Loader(mix, 1, seed=3)
found["mix"] = [firsts(made(mix).take(9)), [int(next(batches)["input_ids"][0, 0]) for _ in range(9)]]

found["refused"] = {
    "batches": refused(lambda: wr.torch.Stream(view, 4).as_dataset()),
    "a loader's": refused(lambda: wr.Loader(view, 4).dataset.as_dataset()),
    "a rank's": refused(lambda: wr.torch.Stream(view, rank=1, world_size=2).as_dataset()),
    "a shard": refused(lambda: next(iter(made().shard(2, 1)))),
}
print(json.dumps(found))
"""
)

TRL = (
    COMMON
    + """
import torch
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

def trained(view, **options):
    model = LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1))
    options = SFTConfig(sys.argv[1] + "-out", max_steps=1, per_device_train_batch_size=2, use_cpu=True, bf16=False, report_to="none",
                        logging_strategy="no", disable_tqdm=True, save_strategy="no", **options)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), pad_token="<pad>", eos_token="<eos>")
    SFTTrainer(model, options, train_dataset=made(view), processing_class=tokenizer).train()

fields = ["input_ids", "labels", "position_ids"]
found = {
    "padding_free": refused(lambda: trained(view, padding_free=True, max_length=None)),
    "records": refused(lambda: trained(ds.records(16, labels="same"))),
    "records, packed by TRL": refused(lambda: trained(ds.records(16, labels="same"), packing=True, max_length=16)),
    "padded": refused(lambda: trained(view)),
    "packing": refused(lambda: trained(view, packing=True, max_length=16)),
    "wrapped": refused(lambda: trained(view, packing=True, packing_strategy="wrapped", max_length=16)),
    "without lengths": refused(lambda: trained(ds.pack(16, documents=True, labels="same", fields=fields), padding_free=True, max_length=None)),
    "shifted": refused(lambda: trained(ds.bins(16), padding_free=True, max_length=None)),
}
print(json.dumps(found))
"""
)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("as_dataset") / "tokens"
    draws = np.random.default_rng(4)
    wr.write(path, [np.full(draws.integers(4, 10), i, np.uint16) for i in range(1, 49)], to="shards", dtype="uint16")
    return path


@pytest.fixture(scope="module")
def found(tokens: Path) -> Any:
    return with_loaders(DATASETS, tokens)


@pytest.fixture(scope="module")
def trl(tokens: Path) -> Any:
    return with_loaders(TRL, tokens)


def test_rows_are_those_of_the_loader_epoch_after_epoch(found: Any) -> None:
    assert found["endless"] == found["run"] and len(found["run"]) == 3 * found["n"]
    assert found["pickled"] == found["run"][:5]


def test_columns_and_types_are_those_of_a_row(found: Any) -> None:
    assert found["columns"] == [*found["row"]] == [*found["types"]]
    assert found["columns"][-2:] == ["cu_seqlens", "seq_lengths"]
    assert found["types"]["input_ids"] == "List(Value('int64'))" and found["types"]["position_ids"] == "List(Value('int32'))"
    assert found["row"]["input_ids"] == ["int64", [16]]


def test_lengths_are_those_of_documents_and_of_the_padding(found: Any) -> None:
    assert any(ends[-1] < 16 for _, ends in found["lengths"])
    for lengths, ends in found["lengths"]:
        known = [n for n in np.diff(ends) if n]
        assert lengths == known + ([16 - ends[-1]] if ends[-1] < 16 else []) and sum(lengths) == 16


def test_set_epoch_begins_an_epoch(found: Any) -> None:
    n, run = found["n"], found["run"]
    assert found["epochs"] == [run[:n], run[n : 2 * n], run[n : 2 * n], run[2 * n :]]


def test_it_begins_where_the_stream_is(found: Any) -> None:
    assert found["later"] == found["run"][found["n"] + 5 :][: found["n"]]


def test_a_state_continues_at_the_row(found: Any) -> None:
    places = [0, 1, found["n"] - 1, found["n"], found["n"] + 3]
    assert found["continued"] == found["mapped"] == [found["run"][at : at + 4] for at in places]
    assert found["other plan"].startswith("MismatchError") and "view=" in found["other plan"]


def test_ranks_and_workers_share_rows_out(found: Any) -> None:
    run = found["run"]
    assert found["two"] == [run[rank:12:2] for rank in range(2)] and found["three"] == [run[rank:18:3] for rank in range(3)]
    assert found["two, then three"] == [run[6 + rank : 18 : 3] for rank in range(3)]
    assert found["workers"] == sorted(run[: found["n"]])


def test_rows_of_tables_and_mixtures(found: Any) -> None:
    assert found["texts"] == [["text", "score"], [f"row {i}" for i in range(6)]]
    assert found["mix"][0] == found["mix"][1]


def test_its_example_runs(found: Any) -> None:
    assert found["example"] == [6, 0]


def test_what_would_be_shared_out_twice_is_refused(found: Any) -> None:
    refused = found["refused"]
    assert all(said.startswith("ConfigError") for said in refused.values()), refused
    assert "as_dataset()" in refused["batches"] and "as_dataset()" in refused["a loader's"]
    assert "split_dataset_by_node" in refused["a rank's"] and "split_dataset_by_node" in refused["a shard"]


def test_trl_trains_on_documents_that_stay_apart(trl: Any) -> None:
    assert trl["padding_free"] is None and trl["records"] is None and trl["records, packed by TRL"] is None


@pytest.mark.parametrize("how", ["padded", "packing", "wrapped", "without lengths", "shifted"])
def test_what_trl_would_lose_in_silence_is_refused(trl: Any, how: str) -> None:
    expected = {"packing": "packing=True packs rows again", "wrapped": "packing=True packs rows again", "shifted": "token after the next"}
    assert trl[how].startswith("ConfigError: ") and expected.get(how, "TRL drops position_ids") in trl[how], trl[how]
    assert ('labels="same"' if how == "shifted" else "padding_free=True") in trl[how]


def test_without_datasets_it_says_what_to_install(tokens: Path) -> None:
    code = "import sys, windrow as wr; wr.torch.Stream(wr.open(sys.argv[1]).pack(8)).as_dataset()"
    blocked = "import sys; sys.modules['datasets'] = None; " + code
    done = subprocess.run([sys.executable, "-c", blocked, tokens], capture_output=True, text=True, timeout=120, check=False)
    assert "ConfigError: as_dataset() needs the package datasets" in done.stderr and 'pip install "datasets>=5"' in done.stderr
