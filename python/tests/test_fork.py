"""Forked and spawned children: torch's DataLoader in every way to start a worker, and loaders carried over a fork."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

WORKERS = """
    import sys
    import torch
    import windrow as wr

    def main():
        ds = wr.open(sys.argv[1], format="tokens", dtype="uint16")
        view = ds.pack(16)
        # The parent has used data, and has a loader with threads running, when the workers start.
        view[5]
        loader = wr.Loader(view, 8)
        next(loader)
        if sys.argv[3] == "mix":
            view = wr.mix({"a": (view, 1.0), "b": (ds.pack(16, eos=3), 1.0)})
        batches = torch.utils.data.DataLoader(
            view, batch_size=32, shuffle=False, num_workers=2, multiprocessing_context=sys.argv[2], timeout=60
        )
        at = 0
        for epoch in range(2):
            at = 0
            for batch in batches:
                for name in ("input_ids", "labels"):
                    expected = torch.stack([torch.from_numpy(view[i][name]) for i in range(at, at + len(batch[name]))])
                    assert torch.equal(batch[name], expected), (epoch, at, name)
                at += len(batch["labels"])
        assert at == len(view)
        next(loader)
        print("right")

    if __name__ == "__main__":
        main()
"""


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("what", ["view", "mix"])
def test_workers_give_the_right_samples(tokens: Path, run_script: Callable[..., str], start: str, what: str) -> None:
    assert run_script(WORKERS, tokens, start, what, limit=240) == "right\n"


def test_workers_read_json_records(tmp_path: Path, run_script: Callable[..., str]) -> None:
    (tmp_path / "a.jsonl").write_text("".join(f'{{"n": {i}}}\n' for i in range(500)))
    code = """
        import sys
        import torch
        import windrow as wr

        if __name__ == "__main__":
            ds = wr.open(sys.argv[1])
            ds[3]
            for start in ("fork", "spawn"):
                batches = torch.utils.data.DataLoader(
                    ds, batch_size=10, num_workers=2, multiprocessing_context=start, timeout=60,
                    collate_fn=list,
                )
                assert [r["n"] for batch in batches for r in batch] == list(range(500))
            print("right")
    """
    assert run_script(code, tmp_path / "a.jsonl", limit=240) == "right\n"


CHILD = """
    import os, sys, threading, time
    import windrow as wr

    view = wr.open(sys.argv[1], format="tokens", dtype="uint16").pack(16)

    def ids(loader, n):
        return [(next(loader)["input_ids"][:, 0] // 16).tolist() for _ in range(n)]

    expected = ids(wr.Loader(view, 8, seed=1), 20)
    loader = wr.Loader(view, 8, seed=1, num_threads=2)
    assert ids(loader, 5) == expected[:5]
    busy = wr.Loader(view, 100)
    stop = threading.Event()

    def take():
        while not stop.is_set():
            next(busy)

    # Another thread is inside a loader, holding its lock, at most forks.
    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    for k in range(30):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                assert ids(loader, 5) == expected[5:10]
                assert loader.state_dict()["samples"] == 80
                before = busy.samples
                next(busy)
                assert busy.samples != before
                assert busy.stats()["threads"] == 0
                inner = os.fork()
                if inner == 0:
                    os._exit(0 if ids(loader, 2) == expected[10:12] else 7)
                assert os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) == 0
                del loader, busy
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, k
    stop.set()
    thread.join()
    assert ids(loader, 5) == expected[5:10]
    print("right")
"""


def test_a_loader_works_in_a_forked_child(tokens: Path, run_script: Callable[..., str]) -> None:
    assert run_script(CHILD, tokens, limit=120) == "right\n"


def test_multiprocessing_may_use_a_loader_of_its_parent(tokens: Path, run_script: Callable[..., str]) -> None:
    code = """
        import multiprocessing, sys
        import windrow as wr

        view = wr.open(sys.argv[1], format="tokens", dtype="uint16").pack(16)
        loader = wr.Loader(view, 8, seed=1)
        next(loader)

        def child(queue):
            queue.put(next(loader)["labels"].tolist())

        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        given = queue.get()
        process.join(30)
        assert process.exitcode == 0
        assert given == next(loader)["labels"].tolist()
        print("right")
    """
    assert run_script(code, tokens, limit=60) == "right\n"
