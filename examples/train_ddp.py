"""Trains a small GPT with torchrun and DistributedDataParallel, stops, and resumes on another number of processes.

    python examples/train_ddp.py                  # under a minute on two cores; launches torchrun itself

A run of one process is compared with one that stops twice: four processes begin it, two "nodes" of two processes continue, and three
processes end it. At every step all ranks together train on the same batch, so the losses are equal: up to the order in which floats are
added, which is why everything is computed in float64. The training alone, as on a cluster:

    torchrun --nproc-per-node 8 examples/train_ddp.py --data tokens --out run --steps 1000
"""

import argparse
import json
import math
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from train_gpt import GPT, prepare

import windrow as wr

LENGTH, ROWS = 32, 24


def train(args):
    """One process of a run: takes the checkpoint in the folder if there is one, trains, and leaves a checkpoint."""
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = GPT(vocab_size=257, length=LENGTH).double()
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    # ROWS are those of all ranks together: the number of processes changes who reads a row, not what a step trains on.
    loader = wr.Loader(wr.open(args.data).pack(LENGTH), global_batch_size=ROWS, seed=1, framework="torch")
    losses = []

    checkpoint = args.out / "checkpoint.pt"
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        loader.load_state_dict(saved["data"])
        losses = saved["losses"]
    wr.torch.check_ranks(loader)

    ranked = nn.parallel.DistributedDataParallel(model)
    for _, batch in zip(range(args.steps), loader.stream()):
        logits = ranked(batch["input_ids"])
        # The mean over this rank's rows; DDP takes the mean of the ranks' gradients.
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        total = loss.detach() * len(batch["labels"])
        dist.all_reduce(total)
        losses.append(total.item() / ROWS)

    if dist.get_rank() == 0:
        state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "data": loader.state_dict(), "losses": losses}
        torch.save(state, checkpoint)
        (args.out / "losses.json").write_text(json.dumps(losses))
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {len(batch['labels'])} of {ROWS} rows a step, {loader.samples} samples so far")
    dist.barrier()
    dist.destroy_process_group()
    # gloo's threads may still hold tensors, and would abort a Python that ends meanwhile.
    sys.stdout.flush()
    os._exit(0)


def launch(data, out, steps, processes, nodes=1):
    """Runs torchrun on `nodes` nodes, here all on this machine, and waits for them."""
    out.mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = ["--data", data, "--out", out, "--steps", steps]
    running = []
    try:
        for node in range(nodes):
            of_all = ["--nnodes", nodes, "--node-rank", node, "--nproc-per-node", processes]
            command = ["-m", "torch.distributed.run", *of_all, "--master-addr", "127.0.0.1", "--master-port", port, __file__, *arguments]
            running.append(subprocess.Popen([sys.executable, *map(str, command)], env={**os.environ, "OMP_NUM_THREADS": "1"}))
        if any([process.wait() for process in running]):
            raise SystemExit("a node failed")
    finally:
        for process in running:
            process.terminate()
    return json.loads((out / "losses.json").read_text())


def compare(out, steps):
    """The unbroken run, and the one that stops twice."""
    data, third = out / "tokens", steps // 3
    prepare(data)
    unbroken = launch(data, out / "unbroken", steps, processes=1)
    launch(data, out / "resumed", third, processes=4)
    launch(data, out / "resumed", third, processes=2, nodes=2)
    resumed = launch(data, out / "resumed", steps - 2 * third, processes=3)

    for step, (one, other) in enumerate(zip(unbroken, resumed)):
        print(f"step {step:>4}   unbroken {one:.9f}   stopped and resumed {other:.9f}")
    if len(unbroken) != len(resumed) or not all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(unbroken, resumed)):
        raise SystemExit("the resumed run differs from the unbroken one")
    print(f"{steps} losses equal")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, help="tokens to train on, under torchrun")
    parser.add_argument("--out", type=pathlib.Path, help="where the checkpoint is kept, which all nodes must reach")
    parser.add_argument("--steps", type=int, default=9)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if "RANK" in os.environ:
        train(args)
    with tempfile.TemporaryDirectory() as scratch:
        compare(args.out or pathlib.Path(scratch), args.steps)


if __name__ == "__main__":
    main()
