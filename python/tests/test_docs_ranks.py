"""Loops of the pages that share rows out among processes: the very blocks, on two ranks, each row once."""

from __future__ import annotations

import ast
import json
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import windrow as wr
from test_docs import ROOT, blocks_of

LOADERS = Path(sys.prefix) / "loaders"


def code_of(page: str, *names: str) -> str:
    """The statements that define these names, of the block of a page that defines them all."""
    for block in blocks_of((ROOT / "docs" / page).read_text(encoding="utf-8")):
        defined: dict[str, str] = {}
        for statement in ast.parse(block.text).body if block.lang == "python" else []:
            first = statement.targets[0] if isinstance(statement, ast.Assign) else statement
            defined[getattr(first, "id", getattr(first, "name", ""))] = ast.unparse(statement)
        if defined.keys() >= set(names):
            return "\n".join(defined[name] for name in names)
    raise AssertionError(f"no block of docs/{page} defines {names}")


SAMPLES = """
    import json, os, sys
    sys.path.append(sys.argv[4])
    import numpy as np
    import torch
    import windrow as wr
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration
    from torch.utils.data import DataLoader

    ds = wr.open(sys.argv[1])
    exec(sys.argv[3])

    def collate(rows):
        return {"input_ids": torch.tensor(np.array([row["input_ids"] for row in rows]))}

    seen = []
    for dispatch in (True, False):
        accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(dispatch_batches=dispatch))
        batches = accelerator.prepare(DataLoader(rows, batch_size=4, collate_fn=collate))
        seen.append([row.tolist() for _, batch in zip(range(6), batches) for row in batch["input_ids"]])
    with open(f"{sys.argv[2]}/{accelerator.process_index}.json", "w") as file:
        json.dump(seen, file)
    accelerator.wait_for_everyone()
    os._exit(0)
"""


@pytest.fixture
def conversations(tmp_path: Path) -> Path:
    """50 conversations, as the page makes them."""
    chat = [{"messages": [{"role": "user", "content": f"{a}?"}, {"role": "assistant", "content": f"{a}."}]} for a in range(50)]
    (tmp_path / "chat.jsonl").write_text("".join(json.dumps(one) + "\n" for one in chat))
    wr.tokenize(tmp_path / "chat.jsonl", tmp_path / "tokens", tokenizer="bytes", chat=True, chat_template="chatml")
    return tmp_path / "tokens"


def test_trl_gets_each_conversation_once_on_two_ranks(conversations: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SAMPLES))
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    common = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    environment = {**os.environ, **common, "HF_HOME": str(tmp_path / "hf")}
    command = [sys.executable, script, conversations, tmp_path, code_of("chat.md", "view", "rows"), LOADERS]
    processes = [
        subprocess.Popen(command, env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    try:
        ends = [process.communicate(timeout=300)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], "\n".join(ends)[-6000:]
    ranks = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    for first, second in zip(*ranks, strict=True):
        assert (len(first), len(second)) == (24, 24)
        assert len({tuple(row) for row in first + second}) == 48


PACKED = """
    import sys
    sys.path.append(sys.argv[3])
    import numpy as np
    import torch
    import windrow as wr
    from transformers import GPT2Config, GPT2LMHeadModel
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    ds = wr.open(sys.argv[1])
    exec(sys.argv[2])
    first = list(parts.take(2))
    batch = DataCollatorForLanguageModeling(pad_token_id=0, padding_free=True)(first)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=257, n_positions=512, n_embd=16, n_layer=1, n_head=2)).eval()

    def logits(ids):
        return model(input_ids=ids, position_ids=batch["position_ids"], use_cache=False).logits[0]

    end = int(batch["cu_seq_lens_q"][1])
    changed = batch["input_ids"].clone()
    changed[0, :end] = (changed[0, :end] + 1) % 257
    moved = ~torch.isclose(logits(batch["input_ids"]), logits(changed), atol=1e-5).all(-1)
    known = sum(int((row["cu_seqlens"][1:] > row["cu_seqlens"][:-1]).sum()) for row in first)
    print(moved[:end].all().item(), moved[end:].any().item(), len(batch["cu_seq_lens_q"]) - 1, known)
"""


def test_trl_keeps_packed_conversations_apart(conversations: Path, run_script: Callable[..., str]) -> None:
    said = run_script(PACKED, conversations, code_of("chat.md", "packed", "parts"), LOADERS, limit=300)
    own, others, n_documents, known = said.split()
    assert (own, others) == ("True", "False") and n_documents == known and int(known) > 4


MEGATRON = """
    import json, os, sys
    import torch.distributed as dist
    import torch.multiprocessing as mp
    import windrow as wr
    from megatron.core import parallel_state

    def work(rank, tokens, out, page):
        dist.init_process_group("gloo", init_method=f"file://{out}/store", rank=rank, world_size=4)
        parallel_state.initialize_model_parallel(tensor_model_parallel_size=2)
        names = {}
        exec(page, names)
        loader = names["loader_of"](wr.open(tokens, dtype="uint16").pack(16), 2)
        rows = [(next(loader)["input_ids"][:, 0] // 16).tolist() for _ in range(3)]
        with open(f"{out}/{rank}.json", "w") as file:
            json.dump(rows, file)
        dist.barrier()
        os._exit(0)

    if __name__ == "__main__":
        mp.start_processes(work, args=tuple(sys.argv[1:]), nprocs=4, start_method="fork")
"""


def test_megatrons_ranks_of_one_model_get_the_same_rows(tokens: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(MEGATRON))
    (block,) = [b for b in blocks_of((ROOT / "docs" / "loading.md").read_text(encoding="utf-8")) if "parallel_state" in b.text]
    done = subprocess.run([sys.executable, script, tokens, tmp_path, block.text], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-6000:]
    ranks = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(4)]
    assert ranks[0] == ranks[1] and ranks[2] == ranks[3]
    rows = sum(ranks[0] + ranks[2], [])
    assert len(rows) == len(set(rows)) == 12


@pytest.mark.parametrize("page", ["transformers.md", "packing.md"])
def test_pages_with_documents_ask_whether_the_model_leaks(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    asked = [b for b in blocks_of(text) if b.lang == "python" and "check_no_leak(" in b.text]
    assert asked, "the page itself runs it"
    calls = [line for line in text.splitlines() if "model(" in line and "position_ids" in line and "lambda" not in line]
    assert all("use_cache=False" in line for line in calls), calls
