"""A worker process that gets no shared memory: an error in the training loop, never a batch that is waited for for ever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

# A process may write no file of more than 8 kB; shared memory is a file.
SCRIPT = """
    import resource, sys
    import torch
    import windrow as wr
    from torch.utils.data import DataLoader, Subset, default_collate

    def rows_as_they_come(rows):
        return rows

    def stacked(rows):
        return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}

    def added(rows):
        batch = default_collate(rows)
        return {**batch, "mask": batch["labels"] > 5}

    class Batches(torch.utils.data.IterableDataset):
        def __init__(self, view):
            self.view = view
        def __iter__(self):
            return iter(wr.Loader(self.view, 4, framework="torch", rank=0, world_size=1))

    def main():
        ds = wr.open(sys.argv[1], dtype="uint16")
        view = ds.pack(2048)
        mix = wr.mix({"a": (view, 1.0), "b": (ds.pack(2048, eos=3), 1.0)})
        cases = {
            "view": (view, dict(batch_size=4)),
            "mix": (mix, dict(batch_size=4)),
            "subset": (Subset(view, [1, 3, 5]), dict(batch_size=2)),
            "rows": (view, dict(batch_size=4, collate_fn=rows_as_they_come)),
            "list": (view, dict(batch_size=4, collate_fn=list)),
            "stacked": (view, dict(batch_size=4, collate_fn=stacked)),
            "added": (view, dict(batch_size=4, collate_fn=added)),
            "one by one": (view, dict(batch_size=None)),
            "records": (ds, dict(batch_size=None)),
            "a loader's": (Batches(view), dict(batch_size=None)),
        }
        for what in sys.argv[2].split(","):
            until_there_is_none(what, *cases[what])

    def until_there_is_none(what, data, options):
        loader = DataLoader(data, num_workers=2, multiprocessing_context=sys.argv[3], timeout=60, **options)
        enough = len(list(zip(loader, range(2))))
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
        try:
            for _ in loader:
                pass
            print(what, "read all")
        except RuntimeError as error:
            assert "shared memory" in str(error) and "--shm-size" in str(error), error
            print(what, enough, isinstance(error, wr.OutOfMemoryError))
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    if __name__ == "__main__":
        main()
"""


def test_no_shared_memory_is_an_error_in_the_loop(tokens: Path, run_script: Callable[..., str]) -> None:
    whats = ["view", "mix", "subset", "rows", "list", "stacked", "added", "one by one", "records", "a loader's"]
    said = run_script(SCRIPT, tokens, ",".join(whats), "fork", limit=240).splitlines()
    assert said == [f"{what} {1 if what == 'records' else 2} True" for what in whats]


def test_spawned_workers_say_it_too(tokens: Path, run_script: Callable[..., str]) -> None:
    assert run_script(SCRIPT, tokens, "stacked", "spawn", limit=240) == "stacked 2 True\n"


def test_rows_of_a_large_batch_need_one_descriptor(tokens: Path, run_script: Callable[..., str]) -> None:
    code = """
        import resource, sys
        import torch
        import windrow as wr

        if __name__ == "__main__":
            view = wr.open(sys.argv[1], dtype="uint16").pack(16)
            loader = torch.utils.data.DataLoader(view, batch_size=600, num_workers=1, collate_fn=list, timeout=60)
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            for batch in loader:
                batch[0]["labels"][:] = -1
                print(len(batch), sum(int(row["input_ids"][0]) for row in batch[1:]))
    """
    starts = [sum(range(16, 16 * 600, 16)), sum(range(16 * 601, 16 * 1200, 16)), sum(range(16 * 1201, 16 * 1249, 16))]
    assert run_script(code, tokens) == "".join(f"{n} {start}\n" for n, start in zip((600, 600, 49), starts, strict=True))
