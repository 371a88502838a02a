"""Fine-tunes a small GPT on conversations: the loss is that of what the assistant says. Stops, resumes, and loses nothing.

    python examples/train_sft.py                  # some seconds on one core

A run of 40 steps is compared with one that stops after 20, saves model, optimiser and `loader.state_dict()`, and continues
in fresh objects: the losses of steps 20 to 39 must be equal to the last bit.
"""

import argparse
import itertools
import json
import pathlib
import tempfile

import torch
from train_gpt import GPT

import windrow as wr


def conversations(path):
    """Sums, asked and answered in two turns."""
    with path.open("w") as out:
        for a, b in itertools.product(range(20), repeat=2):
            texts = [f"{a}+{b}?", str(a + b), "And twice?", str(2 * (a + b))]
            messages = [{"role": role, "content": text} for role, text in zip(["user", "assistant"] * 2, texts)]
            out.write(json.dumps({"messages": messages}) + "\n")


def start(view, args):
    """Fresh model, optimiser and loader: what a new process would make."""
    torch.manual_seed(args.seed)
    model = GPT(vocab_size=257, length=args.length, width=48, layers=1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    return model, optimiser, wr.Loader(view, batch_size=args.batch_size, seed=args.seed, framework="torch")


def train(model, optimiser, loader, steps):
    """Trains for `steps` steps; returns the losses."""
    losses = []
    for _, batch in zip(range(steps), loader.stream()):
        logits = model(batch["input_ids"])[:, :-1]
        # -100 wherever a token is not the assistant's: cross_entropy leaves those out.
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"][:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in {"--steps": 40, "--length": 192, "--batch-size": 8, "--seed": 0}.items():
        parser.add_argument(name, type=int, default=value)
    args = parser.parse_args()
    torch.set_num_threads(1)  # the same sums in the same order, run for run

    with tempfile.TemporaryDirectory() as folder:
        out, half = pathlib.Path(folder), args.steps // 2
        conversations(out / "chat.jsonl")
        wr.tokenize(out / "chat.jsonl", out / "tokens", tokenizer="bytes", chat=True, chat_template="chatml")
        view = wr.open(out / "tokens").records(args.length, labels="same")
        unbroken = train(*start(view, args), args.steps)

        parts = start(view, args)
        first = train(*parts, half)
        torch.save([part.state_dict() for part in parts], out / "checkpoint.pt")
        parts = start(view, args)
        for part, state in zip(parts, torch.load(out / "checkpoint.pt", weights_only=True)):
            part.load_state_dict(state)
        resumed = first + train(*parts, args.steps - half)

    if unbroken != resumed:
        raise SystemExit("the resumed run differs from the unbroken one")
    print(f"{args.steps} losses equal to the last bit, {unbroken[0]:.3f} at first and {unbroken[-1]:.3f} at last")


if __name__ == "__main__":
    main()
