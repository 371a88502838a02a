"""Encodes sound, trains a small codec language model on the codes, stops, resumes, and shows that nothing was lost.

    python examples/train_codes.py                # under a minute on two cores
    python examples/train_codes.py --audio DIR --weights weights.pth

Without `--audio`, five clips of testdata/audio are used with their prompts, one of each kind of file. The weights in
testdata/dac are random and small: what they make are codes of a real codec, but nobody would want to listen to them. A run of 20 steps is compared with one that stops after 10, saves model,
optimiser and `loader.state_dict()`, and continues in fresh objects: the losses of steps 10 to 19 must be equal to the last bit.
"""

import argparse
import pathlib
import shutil
import tempfile

import torch
from torch import nn

import windrow as wr

DATA = pathlib.Path(__file__).resolve().parent.parent / "testdata"
PAD = 1025


class Layer(nn.Module):
    """Attention to what came before, attention to the text, and a feed-forward layer, each added to what it reads."""

    def __init__(self, width, heads):
        super().__init__()
        self.own = nn.MultiheadAttention(width, heads, batch_first=True)
        self.text = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)])

    def forward(self, x, text, own_mask, text_mask):
        seen = self.norms[0](x)
        x = x + self.own(seen, seen, seen, attn_mask=own_mask, need_weights=False)[0]
        x = x + self.text(self.norms[1](x), text, text, attn_mask=text_mask, need_weights=False)[0]
        return x + self.mlp(self.norms[2](x))


class CodecLM(nn.Module):
    """Bytes of the prompt in; at every frame, logits for each channel of the next frame."""

    def __init__(self, channels, text_length, frames, codes=1028, width=64, heads=4, layers=2):
        super().__init__()
        self.heads, self.channels, self.codes = heads, channels, codes
        self.bytes, self.text_places = nn.Embedding(256, width), nn.Embedding(text_length, width)
        self.frames, self.places = nn.Embedding(channels * codes, width), nn.Embedding(frames, width)
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(layers)])
        self.head = nn.Linear(width, channels * codes)

    def forward(self, batch):
        text = self.bytes(batch["src_tokens"]) + self.text_places(batch["src_positions"])
        tokens = batch["tgt_tokens"]
        own = tokens + torch.arange(self.channels) * self.codes
        x = self.frames(own).sum(dim=2) + self.places(batch["tgt_positions"])
        # True in windrow's masks is "attend"; here True is "do not", and a row that attends to nothing would be no number.
        own_mask = self.spread(~batch["dec_self_attn_mask"] & ~torch.eye(tokens.shape[1], dtype=torch.bool))
        nothing = torch.zeros_like(batch["dec_cross_attn_mask"])
        nothing[..., 0] = True
        text_mask = self.spread(~(batch["dec_cross_attn_mask"] | nothing))
        for layer in self.layers:
            x = layer(x, text, own_mask, text_mask)
        return self.head(x).view(*tokens.shape, self.codes)

    def spread(self, mask):
        return mask.repeat_interleave(self.heads, dim=0).flatten(0, 1)


def clips(folder):
    """A folder with a few of the clips, and their prompts beside them."""
    folder.mkdir(exist_ok=True)
    for clip in (DATA / "audio").glob("cards_00?.*"):
        shutil.copy(clip, folder)
        prompt = DATA / "audio_prompts" / f"{clip.stem}_prompt.txt"
        shutil.copy(prompt, folder / f"{clip.stem}.txt")
    return folder


def start(data, args):
    """Fresh model, optimiser and loader: what a new process would make."""
    torch.manual_seed(args.seed)
    view = data.codes(args.frames, text_length=args.text_length, tag_shuffle=True, unconditional=0.15)
    loader = wr.Loader(view, batch_size=args.batch_size, seed=args.seed, framework="torch")
    model = CodecLM(data[0].shape[1], args.text_length, args.frames + 2)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3), loader


def train(model, optimiser, loader, steps):
    """Trains for `steps` steps; returns the losses."""
    losses = []
    for _, batch in zip(range(steps), loader.stream()):
        logits = model(batch)
        wanted = batch["tgt_tokens"][:, 1:]
        loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 2), wanted.flatten(), ignore_index=PAD)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audio", type=pathlib.Path, help="a folder of sound files")
    parser.add_argument("--weights", type=pathlib.Path, default=DATA / "dac" / "small.pth", help="of the codec")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--frames", type=int, default=48)
    parser.add_argument("--text-length", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, help="where to keep codes and checkpoint")
    args = parser.parse_args()
    torch.set_num_threads(1)  # the same sums in the same order, run for run

    with tempfile.TemporaryDirectory() as scratch:
        out = args.out or pathlib.Path(scratch)
        done = wr.encode(args.audio or clips(out / "clips"), out / "codes", wr.Codec(args.weights), to="shards")
        for failure in done["failed"]:
            print(f"left out: {failure['error'].splitlines()[0]}")
        data = wr.open(out / "codes")
        print(f"{len(data)} tracks, {done['seconds']:.0f} s of sound, {data[0].shape[1]} codes a frame")
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

    for step in range(0, args.steps, max(1, args.steps // 5)):
        print(f"step {step:>4}   unbroken {unbroken[step]:.6f}   stopped and resumed {(first + second)[step]:.6f}")
    if unbroken != first + second:
        raise SystemExit("the resumed run differs from the unbroken one")
    print(f"{args.steps} losses equal to the last bit; loader state: {saved['loader']}")


if __name__ == "__main__":
    main()
