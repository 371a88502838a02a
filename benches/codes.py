"""l: audio codes with prompts and masks."""

import json
import time

import windrow as wr
from measure import DATA, forever, in_turns, limit, per_second, table, warm


def tracks(n=2_000):
    """Pre-encoded tracks of about 1,500 frames by torch, and the same as shards."""
    import torch

    folder, shards = DATA / "tracks", DATA / "track-shards"
    if not (folder / "metadata.json").exists():
        (folder / "encoded_audio").mkdir(parents=True, exist_ok=True)
        generator = torch.Generator().manual_seed(0)
        told = {}
        for i in range(n):
            frames = int(torch.randint(1_200, 1_800, (), generator=generator))
            codes = torch.randint(0, 1024, (frames, 18), generator=generator).to(torch.int16)
            torch.save(codes, folder / "encoded_audio" / f"track{i}.pt")
            told[f"track{i}.pt"] = {"text": ", ".join(f"tag {i % k}" for k in range(2, 22))}
        (folder / "metadata.json").write_text(json.dumps(told))
    if not shards.exists():
        wr.convert(folder, shards, to="shards")
    for path in [*(folder / "encoded_audio").iterdir(), *shards.iterdir()]:
        warm(path)
    return folder, shards


def bench_l(passes, seconds):
    import torch

    folder, shards = tracks()
    length, text_length, batch = 600, 512, 16
    delays = torch.tensor([*range(9), *range(9)])

    def windrow(path, threads, masks):
        view = wr.open(path).codes(length, text_length=text_length, masks=masks)
        with wr.Loader(view, batch_size=batch, num_threads=threads) as loader:
            return per_second(loader, seconds, batch)

    def size(masks):
        with wr.Loader(wr.open(shards).codes(length, masks=masks), batch_size=batch) as loader:
            return sum(array.nbytes for array in next(loader).values())

    def fill(masks, threads):
        found = limit("fill", size(masks), threads, seconds)
        return found["batches"] * batch / found["secs"]

    class Loaded(torch.utils.data.Dataset):
        # What the document describes: torch.load of the whole track, a random crop.
        def __init__(self):
            self.files = sorted((folder / "encoded_audio").glob("*.pt"))
            self.told = json.loads((folder / "metadata.json").read_text())

        def __len__(self):
            return len(self.files)

        def __getitem__(self, i):
            codes = torch.load(self.files[i], weights_only=True)
            start = int(torch.randint(0, len(codes) - length + 1, ()))
            return self.told[self.files[i].name]["text"], codes[start : start + length].long()

    def collate(items, dense=True):
        longest = max(len(codes) for _, codes in items)
        src = torch.zeros(len(items), text_length, dtype=torch.long)
        codes = torch.full((len(items), longest, 18), 1025)
        lens = torch.tensor([len(c) for _, c in items])
        for row, (text, own) in enumerate(items):
            text = text.encode()[:text_length]
            src[row, : len(text)] = torch.tensor(list(text))
            codes[row, : len(own)] = own
        at = torch.arange(longest)[:, None] - delays
        delayed = torch.where(at < 0, 1026, codes[:, at.clamp(min=0), torch.arange(18)])
        tgt = torch.full((len(items), longest + 2, 18), 1025)
        tgt[:, 0] = 1026
        for row, n in enumerate(lens.tolist()):
            tgt[row, 1 : n + 1] = delayed[row, :n]
            tgt[row, n + 1] = 1024
        tensors = {
            "src_tokens": src,
            "src_positions": torch.arange(text_length).expand(len(items), -1).contiguous(),
            "tgt_tokens": tgt,
            "tgt_positions": torch.arange(longest + 2).expand(len(items), -1).contiguous(),
            "seq_lens": lens,
            "tgt_lens": lens + 2,
        }
        if dense:
            text, frames = src != 0, (tgt != 1025).any(-1)
            causal = torch.ones(longest + 2, longest + 2, dtype=torch.bool).tril()
            tensors["enc_self_attn_mask"] = (text[:, :, None] & text[:, None, :])[:, None]
            tensors["dec_self_attn_mask"] = (frames[:, :, None] & frames[:, None, :] & causal)[:, None]
            tensors["dec_cross_attn_mask"] = (frames[:, :, None] & text[:, None, :])[:, None]
        return tensors

    def data_loader(workers):
        loader = torch.utils.data.DataLoader(
            Loaded(), batch_size=batch, shuffle=True, num_workers=workers, drop_last=True, collate_fn=collate
        )
        return per_second(forever(lambda: loader), seconds, batch)

    def opened(path):
        start = time.perf_counter()
        wr.open(path)
        return 1 / (time.perf_counter() - start)

    found = in_turns(
        passes,
        **{
            "torch.load and collate, 0 workers": lambda: data_loader(0),
            "torch.load and collate, 2 workers": lambda: data_loader(2),
            "windrow, dense, 1 thread": lambda: windrow(folder, 1, "dense"),
            "windrow, dense, 2 threads": lambda: windrow(folder, 2, "dense"),
            "windrow, lengths, 1 thread": lambda: windrow(folder, 1, "lengths"),
            "windrow, lengths, 2 threads": lambda: windrow(folder, 2, "lengths"),
            "shards, dense, 2 threads": lambda: windrow(shards, 2, "dense"),
            "limit: write as much, dense, 2 threads": lambda: fill("dense", 2),
            "shards, lengths, 2 threads": lambda: windrow(shards, 2, "lengths"),
            "limit: write as much, lengths, 2 threads": lambda: fill("lengths", 2),
        },
    )
    opening = in_turns(passes, folder=lambda: opened(folder), shards=lambda: opened(shards))
    result = table("(l) tracks/s, crops of 600 of 1,500 frames, batch 16", found, "torch.load and collate, 0 workers")
    for name, per_sec in opening.items():
        result[f"milliseconds to open the {name}"] = 1e3 / per_sec
        print(f"  opening the {name}: {1e3 / per_sec:.1f} ms")
    return result
