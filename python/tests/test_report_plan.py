"""`windrow report PLAN`: a page about what batches are made of, whose numbers are those of the batches themselves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import windrow as wr


def report(plan: Path, *options: str) -> tuple[str, dict[str, Any]]:
    """The page about a plan, and what the command says in JSON."""
    page = plan.with_suffix(".html")
    command = [sys.executable, "-m", "windrow", "report", str(plan), "-o", str(page), "--overwrite", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return page.read_text(encoding="utf-8"), json.loads(done.stdout)


def refused(*words: str | Path) -> str:
    """What the command says where it is used wrongly."""
    command = [sys.executable, "-m", "windrow", "report", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    return done.stderr


def saved(loader: wr.Loader, path: Path) -> Path:
    """The plan of a loader as a file."""
    path.write_text(json.dumps(loader.recipe()))
    return path


def numbered(folder: Path) -> wr.Dataset:
    """Documents of 1 to 60 values, each of which is the number of its document."""
    lengths = np.random.default_rng(5).integers(1, 61, 80)
    wr.write(folder / "documents", [np.full(n, i, np.uint16) for i, n in enumerate(lengths)], to="shards", dtype="uint16")
    return wr.open(folder / "documents")


def test_neighbours_and_what_is_left_out_are_those_of_five_epochs(tmp_path: Path) -> None:
    ds = numbered(tmp_path)
    view = ds.pack(64, labels=None, reshuffle=True)
    loader = wr.Loader(view, 1, seed=11, shuffle=False, epochs=5, rank=0, world_size=1)
    rows = np.stack([np.concatenate([batch["input_ids"].ravel() for batch in loader]) for _ in range(5)])
    orders = [row[np.flatnonzero(np.diff(row, prepend=-1))] for row in rows]
    pairs = [set(zip(order[:-1].tolist(), order[1:].tolist(), strict=True)) for order in orders]
    html, said = report(saved(loader, tmp_path / "plan.json"))
    (found,) = said["epochs"]
    assert found["reshuffled"] and not found["in_rows"] and found["all_pairs"]
    assert found["pairs"] == len(pairs[0])
    assert found["kept"] == [len(later & pairs[0]) / len(pairs[0]) for later in pairs]
    assert [seen["skipped_records"] for seen in found["coverage"]] == [80 - len(set(order.tolist())) for order in orders]
    assert {seen["unseen"] for seen in found["coverage"]} == {sum(len(record) for record in ds) - rows.shape[1]}
    for epoch, kept in enumerate(found["kept"]):
        assert f"<tr><td>{epoch}</td><td>{100 * kept:.2f} %</td>" in html
    assert html.count("<svg") == 1 and "<script" not in html


def test_a_plan_whose_documents_keep_their_order_says_so(tmp_path: Path) -> None:
    html, said = report(saved(wr.Loader(numbered(tmp_path).pack(64), 2), tmp_path / "plan.json"))
    assert said["epochs"][0]["kept"] == [1.0] * 5
    assert "Documents that follow each other do so in every epoch." in html
    assert html.count("<td>100.00 %</td>") == 5


def test_the_demo_keeps_as_many_neighbours_as_the_page_on_packing_says(tmp_path: Path, testdata: Path) -> None:
    wr.tokenize(testdata / "demo" / "corpus.jsonl", tmp_path / "tokens", tokenizer="bytes")
    loader = wr.Loader(wr.open(tmp_path / "tokens").pack(256, reshuffle=True), 8, seed=42)
    found = report(saved(loader, tmp_path / "plan.json"))[1]["epochs"][0]
    again = [round(kept * found["pairs"]) for kept in found["kept"]]
    assert (found["pairs"], again) == (136, [136, 2, 0, 1, 1])
    said = (testdata.parent / "docs" / "packing.md").read_text(encoding="utf-8")
    assert "Of 136 pairs {}, {}, {} and {} are neighbours again.".format(*again[1:]) in said


def test_waiting_and_padding_are_those_of_the_loader(tmp_path: Path) -> None:
    view = numbered(tmp_path).records(64, pad="longest")
    loader = wr.Loader(view, max_tokens=512, multiple=4, balance="tokens", seed=3, rank=0, world_size=4)
    mixing = loader.mixing()
    html, said = report(saved(loader, tmp_path / "plan.json"), "--world-size", "4")
    assert said["waiting"] == {**mixing["waiting"], "balance": "tokens"}
    padding = {"share": mixing["padding_share"], "at_random": mixing["padding_share_at_random"]}
    assert said["padding"] == {"max_tokens": 512, "parts": [padding]}
    for share in (mixing["waiting"]["before"], mixing["waiting"]["after"]):
        assert f"<td>{100 * share:.2f} %</td>" in html
    assert "The plan is balanced so." in html

    # The same of a plan that has neither: what they would change.
    plain = saved(wr.Loader(view, global_batch_size=16, seed=3, drop_last=False), tmp_path / "plain.json")
    html, said = report(plain, "--world-size", "4")
    assert said["waiting"]["balance"] == "tokens" and said["waiting"]["after"] < said["waiting"]["before"] / 4
    padding = said["padding"]["parts"][0]
    assert padding["share"] < padding["at_random"] / 2
    assert re.search(r"has no balance.*has no budget of tokens", html, re.DOTALL)
    balanced = wr.Loader(view, global_batch_size=16, seed=3, balance="tokens", rank=0, world_size=4)
    assert balanced.mixing()["waiting"] == {name: of for name, of in said["waiting"].items() if name != "balance"}


def test_options_of_data_are_refused_beside_a_plan_and_those_of_plans_beside_data(tmp_path: Path) -> None:
    plan = saved(wr.Loader(numbered(tmp_path).pack(64, reshuffle=True), 2), tmp_path / "plan.json")
    page = tmp_path / "page.html"
    for options in (["--pack", "8"], ["--dtype", "uint16"], ["--tokenizer", "bytes"], ["--sound"]):
        assert "a plan says itself how its data is opened" in refused(plan, "-o", page, *options)
    assert "--hop is an option of audio codes, and these are plans" in refused(plan, "-o", page, "--hop", "4")
    assert "--world-size is an option of plans" in refused(tmp_path / "documents", "-o", page, "--world-size", "4")
    assert "the output would replace its own input" in refused(plan, "-o", plan, "--overwrite")
    assert not page.exists()
    assert json.loads(plan.read_text())["version"] == 1
