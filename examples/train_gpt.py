"""Trains a small GPT on the demo corpus, stops, resumes from a checkpoint, and shows that nothing was lost.

    python examples/train_gpt.py                  # about a minute on two cores

A run of 40 steps is compared with one that stops after 20, saves model, optimiser and `loader.state_dict()`, and continues
in fresh objects: the losses of steps 20 to 39 must be equal to the last bit.
"""

import argparse
import pathlib
import tempfile

import torch
from torch import nn

import windrow as wr

CORPUS = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "demo" / "corpus.jsonl"


class Block(nn.Module):
    """Attention and a feed-forward layer, each added to what it reads."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.before_attention(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.before_mlp(x))


class GPT(nn.Module):
    """Token and position embeddings, blocks, and a projection back to the vocabulary."""

    def __init__(self, vocab_size, length, width=64, heads=4, layers=2):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab_size, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def prepare(folder):
    """Tokenises the corpus by bytes, once; a second call finds the work done."""
    wr.tokenize([CORPUS], folder, tokenizer="bytes", to="tokens", eos="auto")
    return wr.open(folder)


def start(data, args):
    """Fresh model, optimiser and loader: what a new process would make."""
    torch.manual_seed(args.seed)
    model = GPT(vocab_size=257, length=args.length)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loader = wr.Loader(data.pack(args.length), batch_size=args.batch_size, seed=args.seed, framework="torch")
    return model, optimiser, loader


def train(model, optimiser, loader, steps):
    """Trains for `steps` steps; returns the losses."""
    losses = []
    for _, batch in zip(range(steps), loader.stream()):
        logits = model(batch["input_ids"])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, help="where to keep tokens and checkpoint")
    args = parser.parse_args()
    torch.set_num_threads(1)  # the same sums in the same order, run for run

    with tempfile.TemporaryDirectory() as scratch:
        out = args.out or pathlib.Path(scratch)
        data = prepare(out / "tokens")
        half = args.steps // 2

        unbroken = train(*start(data, args), args.steps)

        model, optimiser, loader = start(data, args)
        first = train(model, optimiser, loader, half)
        checkpoint = out / "checkpoint.pt"
        state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "loader": loader.state_dict()}
        torch.save(state, checkpoint)

        model, optimiser, loader = start(data, args)
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        loader.load_state_dict(saved["loader"])
        second = train(model, optimiser, loader, args.steps - half)

    for step in range(0, args.steps, max(1, args.steps // 8)):
        print(f"step {step:>4}   unbroken {unbroken[step]:.6f}   stopped and resumed {(first + second)[step]:.6f}")
    if unbroken != first + second:
        raise SystemExit("the resumed run differs from the unbroken one")
    print(f"{args.steps} losses equal to the last bit; loader state: {saved['loader']}")


if __name__ == "__main__":
    main()
