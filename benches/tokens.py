"""a: shuffled token batches."""

import os

import numpy as np

import windrow as wr
from data import tokens
from measure import DATA, forever, in_turns, limit, per_second, table


def bench_a(passes, seconds):
    import torch

    path, batch = tokens(), 32
    result = {}
    for length in (1024, 2048):
        flat = np.memmap(path, dtype=np.uint16, mode="r")
        n = (len(flat) - 1) // length

        def windrow(threads, framework="numpy", labels="next"):
            view = wr.open(path, format="tokens", dtype="uint16").pack(length, labels=labels)
            with wr.Loader(view, batch_size=batch, num_threads=threads, framework=framework) as loader:
                return per_second(loader.stream(), seconds, batch)

        def fancy(contiguous):
            # The strongest numpy there is: rows of one strided view, gathered at once, widened once.
            rows = np.lib.stride_tricks.as_strided(flat, (n, length + 1), (2 * length, 2))

            def epoch():
                order = np.random.default_rng(0).permutation(n)
                for i in range(0, n - batch + 1, batch):
                    block = rows[order[i : i + batch]].astype(np.int64)
                    inputs, labels = block[:, :-1], block[:, 1:]
                    if contiguous:
                        inputs, labels = np.ascontiguousarray(inputs), np.ascontiguousarray(labels)
                    yield {"input_ids": inputs, "labels": labels}

            return per_second(forever(epoch), seconds, batch)

        class Memmap(torch.utils.data.Dataset):
            def __init__(self):
                self.data = np.memmap(path, dtype=np.uint16, mode="r")

            def __len__(self):
                return n

            def __getitem__(self, i):
                block = torch.from_numpy(self.data[i * length : i * length + length + 1].astype(np.int64))
                return {"input_ids": block[:-1], "labels": block[1:]}

        def data_loader(data, workers):
            loader = torch.utils.data.DataLoader(data, batch_size=batch, shuffle=True, num_workers=workers, drop_last=True)
            return per_second(forever(lambda: loader), seconds, batch)

        def forager():
            from data_forager.datasets.tokens import TokensDataset

            base = DATA / f"forager{length}"
            if not (base / "index").exists():
                (base / "index").mkdir(parents=True)
                (base / "index" / "file_location.txt").write_text(f"../{path.name}\n")
                rows = np.zeros((n, 3), dtype=np.uint64)
                rows[:, 1] = np.arange(n, dtype=np.uint64) * (2 * length)
                rows[:, 2] = 2 * (length + 1)
                rows.tofile(base / "index" / "sample_locations.bin")
            data = TokensDataset.create_from_index_on_filesystem(str(base), token_dtype=np.uint16)

            def epoch():
                order = np.random.default_rng(0).permutation(n)
                for i in range(0, n - batch + 1, batch):
                    block = np.stack([data[int(k)] for k in order[i : i + batch]]).astype(np.int64)
                    yield {"input_ids": block[:, :-1], "labels": block[:, 1:]}

            return per_second(forever(epoch), seconds, batch)

        def rust(kind, threads):
            found = limit(kind, path, length, batch, threads, seconds)
            return found["samples"] / found["secs"]

        view = wr.open(path, format="tokens", dtype="uint16").pack(length)
        found = in_turns(
            passes,
            **{
                "limit: widen, 1 thread": lambda: rust("widen", 1),
                "windrow, 1 thread": lambda: windrow(1),
                "limit: widen, 2 threads": lambda: rust("widen", 2),
                "windrow, Rust, 2 threads": lambda: rust("batches", 2),
                "windrow, 2 threads": lambda: windrow(2),
                "windrow, 2 threads, torch tensors": lambda: windrow(2, "torch"),
                "windrow, 2 threads, labels the inputs": lambda: windrow(2, labels="same"),
                "windrow, 2 threads, no labels": lambda: windrow(2, labels=None),
                "numpy memmap, fancy index, contiguous": lambda: fancy(True),
                "numpy memmap, fancy index, views": lambda: fancy(False),
                "DataLoader over a memmap, 0 workers": lambda: data_loader(Memmap(), 0),
                "DataLoader over a memmap, 2 workers": lambda: data_loader(Memmap(), 2),
                "DataLoader over a windrow view, 0 workers": lambda: data_loader(view, 0),
                "DataLoader over a windrow view, 2 workers": lambda: data_loader(view, 2),
                "data-forager": forager,
                "limit: memcpy, 1 thread (u16 as they are)": lambda: rust("memcpy", 1),
            },
        )
        result[str(length)] = table(f"(a) samples/s, length {length}, batch {batch}", found, "windrow, 2 threads")
        print(f"  of the limit: 1 thread {found['windrow, 1 thread'] / found['limit: widen, 1 thread']:.3f},"
              f" 2 threads {found['windrow, 2 threads'] / found['limit: widen, 2 threads']:.3f}")
    return result
