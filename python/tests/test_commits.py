"""The moment at which an output is made visible: killed while leftovers are removed, without a disk, with names in any order."""

from __future__ import annotations

import errno
import itertools
import random
from pathlib import Path

import changes
import pytest
import tree
from cases import Bench, Case
from changes import Kind
from crash import Disk
from jobs import inputs, jobs

import windrow as wr

MARKER = "commit.json"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))
    return Bench(tmp_path)


def case_of(bench: Bench, name: str) -> Case:
    return Case(bench, next(job for job in jobs() if job.name == name))


# In place of nothing, of an older output, and of an older one that changes places with it.
NAMES = [
    "wr.write to parquet",
    "convert to tfrecord",
    "convert to tfrecord, older output",
    "wr.write to mds, older output",
    "tokenize to megatron, older output",
    "dummy",
]


@pytest.mark.parametrize("name", NAMES)
def test_killed_while_it_removes_what_a_killed_run_left(bench: Bench, name: str) -> None:
    case = case_of(bench, name)
    left = []
    for n in range(1, case.n + 1):
        case.reset()
        bench.ran(case.job.command, "kill", at=n)
        found = tree.take(bench.run)
        if any(Path(path).name == MARKER for path in found):
            left.append((n, found))
    assert left
    for n, found in left:
        for again in range(1, 1 + case.n):
            tree.put(found, bench.run)
            ran = bench.ran(case.job.command, "kill", at=again)
            assert case.wrong_with() is None, (n, again)
            assert case.wrong_after_rerun(case.is_whole()) is None, (n, again)
            if again > 12 or ran.code != -9:
                break


@pytest.mark.parametrize("name", ["tokenize to flat-tokens, older output", "append to zarr 2", "dummy, older output", "index, older output"])
def test_what_a_killed_run_had_not_begun_to_show_is_not_shown_by_tidying_up(bench: Bench, name: str) -> None:
    case = case_of(bench, name)
    n_left = 0
    for n in range(1, case.n + 1):
        case.reset()
        bench.ran(case.job.command, "kill", at=n)
        if case.is_unchanged() and any(Path(path).name == MARKER for path in tree.take(bench.run)):
            n_left += 1
            assert bench.ran(["verify", "--gc", "-q", "."]).code in (0, 1, 3)
            assert case.is_unchanged(), n
            assert case.wrong_after_rerun(False) is None, n
    assert n_left > 0


@pytest.mark.parametrize("name", ["append to zarr 2", "append to shards of zarr 3", "wr.write to parquet, older output"])
def test_without_a_sync_it_fails_and_is_not_done(bench: Bench, name: str) -> None:
    case = case_of(bench, name)
    for n in range(1, case.calls.sync + 1):
        for ever in (0, 1):
            case.reset()
            ran = bench.ran(case.job.command, "error", of="sync", at=n, errno=5, ever=ever)
            assert ran.code == 1, (n, ever, ran)
            assert case.is_unchanged(), (n, ever, tree.difference(case.before, tree.visible(tree.take(bench.run))))
            assert case.wrong_after_rerun(False) is None, (n, ever)


def test_an_append_that_is_in_place_though_it_failed_says_so(bench: Bench) -> None:
    # The disk takes no change any more once the new data has its place, so that it cannot be taken back either.
    case = case_of(bench, "append to zarr 2")
    n_in_place = 0
    for n in range(1, case.calls.change + 1):
        case.reset()
        ran = bench.ran(case.job.command, "error", of="change", at=n, errno=errno.EROFS, ever=1)
        if ran.code == 1 and case.is_whole():
            n_in_place += 1
            assert "in place and could not be taken back" in ran.err, (n, ran)
    assert n_in_place > 0


@pytest.mark.parametrize("name", ["convert to tfrecord", "convert to tfrecord, older output", "dummy, older output"])
def test_names_in_any_order_never_show_a_mixture(bench: Bench, name: str) -> None:
    case = case_of(bench, name)
    case.reset()
    start = case.start
    bench.ran(case.job.command, "record")
    made = changes.read(bench.preload.log, bench.preload.below)
    # What makes the others visible is the file that has been asked for.
    shows = min((new for new in case.after if new not in case.kept), key=len)
    old, new = ({path: tree.visible(found).get(path) for path in case.after if path.startswith(shows)} for found in (start, tree.take(bench.run)))
    first = next(i for i, change in enumerate(made) if change.kind == Kind.RENAMED and Path(change.to).name == MARKER)
    seen = set()
    for n in range(first, len(made) + 1):
        disk = Disk(start)
        for change in made[:n]:
            disk.make(change)
        for seed in range(60):
            image = tree.visible(disk.after_loss(random.Random(seed), in_order=False))
            if image.get(shows) is not None:
                there = {path: image.get(path) for path in new}
                assert there in (old, new), (n, seed, tree.difference(case.after, image))
                seen.add(there == new)
    assert True in seen


def test_a_name_that_the_work_folder_needs_is_refused(tmp_path: Path) -> None:
    for name in ("commit.json", "progress.json"):
        with pytest.raises(wr.ConfigError, match=f"the name \"{name}\" is needed while an output is made"):
            wr.write(tmp_path / name, [[1, 2]], to="mds")
        assert list(tmp_path.iterdir()) == []
    wr.write(tmp_path / "old-data", [[1, 2]], to="mds")
    assert len(wr.open(tmp_path / "old-data")) == 1


# Into an empty folder, and where nothing is.
OWN = {
    "dummy": ("dummy --vocab-size 300 --tokens 2000 --out out -q", "out"),
    "tokenize": ("tokenize in -q --tokenizer bytes --out out --to flat-tokens --tokens-chunk-size 512 --num-threads 1", "out/own.txt"),
}


@pytest.mark.parametrize("name", OWN)
def test_what_came_there_since_it_was_killed_stays(bench: Bench, name: str) -> None:
    line, own = OWN[name]
    for n in itertools.count(1):
        tree.put({}, bench.run)
        inputs(bench.run)
        if "/" in own:
            (bench.run / "out").mkdir()
        if bench.ran(line.split(), "kill", at=n).code == 0:
            break
        path = bench.run / own
        if path.is_file() or any(found.name.startswith("out") and found.is_file() for found in bench.run.iterdir()):
            # Some of it can be seen already.
            continue
        path.parent.mkdir(exist_ok=True)
        if path.parent != bench.run and any(path.parent.iterdir()):
            continue
        path.write_text("somebody's own")
        ran = bench.ran(line.split())
        assert ran.code == 1, (n, ran)
        assert "exists already" in ran.err or "is not" in ran.err, (n, ran)
        assert path.read_text() == "somebody's own", n
    assert n > 10
