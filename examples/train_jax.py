"""Trains a small model in two JAX processes, stops, and resumes in one.

    python examples/train_jax.py                  # some seconds on two cores; starts the processes itself

Each process reads its rows of a batch, and `wr.jax.global_batches` makes one array of them, sharded over all devices. A
run of one process is compared with one that two processes begin and a single one ends: the losses are equal, up to the order in
which floats are added, which is why everything is computed in float64. The training alone, one process of two:

    python examples/train_jax.py --data tokens --out run --steps 1000 --coordinator host:1234 --processes 2 --process 0
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

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import windrow as wr

CORPUS = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "demo" / "corpus.jsonl"
VOCABULARY, LENGTH, ROWS, WIDTH = 257, 32, 24, 32


def fresh():
    """Parameters of a model that predicts a token from the one before it."""
    random = np.random.default_rng(0)
    return {"embed": random.normal(size=(VOCABULARY, WIDTH)), "out": random.normal(size=(WIDTH, VOCABULARY)) / WIDTH}


def loss_of(parameters, inputs, labels):
    """The mean over all rows of all processes."""
    logits = jnp.tanh(parameters["embed"][inputs]) @ parameters["out"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1).mean()


@jax.jit
def step(parameters, inputs, labels):
    """One step of gradient descent; every process gets the same parameters and the same loss."""
    loss, gradients = jax.value_and_grad(loss_of)(parameters, inputs, labels)
    return jax.tree.map(lambda value, gradient: value - 3 * gradient, parameters, gradients), loss


def train(args):
    """One process of a run: takes the checkpoint in the folder if there is one, trains, and leaves a checkpoint."""
    if args.processes > 1:
        jax.distributed.initialize(args.coordinator, num_processes=args.processes, process_id=args.process)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    by_rows, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())

    # The loader finds which process this is; ROWS are those of all processes together.
    loader = wr.Loader(wr.open(args.data).pack(LENGTH), global_batch_size=ROWS, seed=1, dtype="int32")
    parameters, losses = fresh(), []
    checkpoint = args.out / "parameters.npz"
    if checkpoint.exists():
        parameters = dict(np.load(checkpoint))
        saved = json.loads((args.out / "state.json").read_text())
        loader.load_state_dict(saved["data"])
        losses = saved["losses"]

    parameters = jax.device_put(parameters, everywhere)
    for _, batch in zip(range(args.steps), wr.jax.global_batches(loader, by_rows)):
        parameters, loss = step(parameters, batch["input_ids"], batch["labels"])
        losses.append(float(loss))

    if jax.process_index() == 0:
        np.savez(checkpoint, **parameters)
        (args.out / "state.json").write_text(json.dumps({"data": loader.state_dict(), "losses": losses}))
    print(f"process {jax.process_index()} of {jax.process_count()}: {ROWS // jax.process_count()} of {ROWS} rows a step, {loader.samples} samples so far")


def launch(data, out, steps, processes):
    """Runs `processes` processes, here all on this machine, and waits for them."""
    out.mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, __file__, "--data", data, "--out", out, "--steps", steps, "--coordinator", coordinator]
    running = []
    try:
        for process in range(processes):
            numbers = ["--processes", processes, "--process", process]
            running.append(subprocess.Popen([str(word) for word in [*command, *numbers]], env={**os.environ, "JAX_PLATFORMS": "cpu"}))
        if any([process.wait() for process in running]):
            raise SystemExit("a process failed")
    finally:
        for process in running:
            process.terminate()
    return json.loads((out / "state.json").read_text())["losses"]


def compare(out, steps):
    """The unbroken run, and the one that stops."""
    data, half = out / "tokens", steps // 2
    wr.tokenize([CORPUS], data, tokenizer="bytes", to="tokens", eos="auto")
    unbroken = launch(data, out / "unbroken", steps, processes=1)
    launch(data, out / "resumed", half, processes=2)
    resumed = launch(data, out / "resumed", steps - half, processes=1)

    for number, (one, other) in enumerate(zip(unbroken, resumed)):
        print(f"step {number:>4}   unbroken {one:.9f}   stopped and resumed {other:.9f}")
    if len(unbroken) != len(resumed) or not all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(unbroken, resumed)):
        raise SystemExit("the resumed run differs from the unbroken one")
    print(f"{steps} losses equal")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, help="tokens to train on")
    parser.add_argument("--out", type=pathlib.Path, help="where the checkpoint is kept, which all processes must reach")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--coordinator", help="host and port of process 0")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--process", type=int, default=0)
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    if args.data:
        train(args)
        return
    with tempfile.TemporaryDirectory() as scratch:
        compare(args.out or pathlib.Path(scratch), args.steps)


if __name__ == "__main__":
    main()
