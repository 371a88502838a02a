"""Paths as people write them: globs, braces and lists, each opened as one data set."""

from __future__ import annotations

import gzip
import json
import pickle
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from conftest import running
from foreign_cases import resumes_on_other_ranks, with_loaders

N_FILES = 12


def in_tar(path: Path, ids: list[np.ndarray[Any, Any]]) -> None:
    made = path.with_name("made")
    wr.write(made, [{"__key__": f"{path.stem}-{i}", "ids.npy": one} for i, one in enumerate(ids)], to="webdataset")
    next(made.glob("*.tar")).rename(path)
    for left in made.iterdir():
        left.unlink()
    made.rmdir()


def in_npy(path: Path, ids: list[np.ndarray[Any, Any]]) -> None:
    np.save(path, np.stack(ids))


def in_jsonl(path: Path, ids: list[np.ndarray[Any, Any]]) -> None:
    path.write_text("".join(json.dumps({"ids": one.tolist()}) + "\n" for one in ids))


def in_bin(path: Path, ids: list[np.ndarray[Any, Any]]) -> None:
    np.concatenate(ids).tofile(path)


def in_csv(path: Path, ids: list[np.ndarray[Any, Any]]) -> None:
    path.write_text("ids\n" + "".join(f"{n}\n" for n in np.concatenate(ids)))


IN_PARQUET = """
import json, sys
import pyarrow as pa
import pyarrow.parquet as pq
for name, rows in json.load(open(sys.argv[1])).items():
    pq.write_table(pa.Table.from_pylist(rows), name)
print("0")
"""


def in_parquet(files: dict[Path, list[dict[str, Any]]]) -> None:
    """All of them at once: starting the package takes a second."""
    rows = next(iter(files)).with_name("rows")
    rows.write_text(json.dumps({str(path): rows for path, rows in files.items()}))
    with_loaders(IN_PARQUET, rows)
    rows.unlink()


FORMATS: dict[str, tuple[Callable[[Path, list[np.ndarray[Any, Any]]], None], dict[str, Any]]] = {
    "tar": (in_tar, {"column": "ids.npy"}),
    "npy": (in_npy, {}),
    "jsonl": (in_jsonl, {"column": "ids", "format": "series-jsonl"}),
    "bin": (in_bin, {"dtype": "int64"}),
    "csv": (in_csv, {"column": "ids"}),
}


def numbers(file: int) -> list[np.ndarray[Any, Any]]:
    """Three records of 8 numbers, which say where they are: file 7, record 2 are 784 to 791."""
    return [np.arange(8, dtype=np.int64) + 100 * file + 8 * record for record in range(3)]


def written(folder: Path, suffix: str) -> dict[str, Any]:
    if suffix == "parquet":
        files = {folder / f"x-{f}.parquet": [{"ids": one.tolist()} for one in numbers(f)] for f in range(N_FILES)}
        in_parquet(files)
        return {"column": "ids"}
    write, options = FORMATS[suffix]
    for file in range(N_FILES):
        write(folder / f"x-{file}.{suffix}", numbers(file))
    return options


def values(ds: wr.Dataset) -> list[int]:
    return [int(n) for record in ds for n in np.ravel(record)]


def expected(*files: int) -> list[int]:
    return [int(n) for file in files for record in numbers(file) for n in record]


@pytest.mark.parametrize("suffix", ["parquet", *FORMATS])
def test_globs_are_in_natural_order_and_lists_and_braces_as_written(tmp_path: Path, suffix: str) -> None:
    options = written(tmp_path, suffix)

    def opened(*names: str) -> list[int]:
        paths: list[str | Path] = [str(tmp_path / name) for name in names]
        return values(wr.open(paths[0] if len(paths) == 1 else paths, **options))

    assert opened(f"x-*.{suffix}") == expected(*range(N_FILES))
    assert opened(f"x-{{3..1}}.{suffix}") == expected(3, 2, 1)
    assert opened(f"x-{{11,0}}.{suffix}") == expected(11, 0)
    assert opened(f"x-1[01].{suffix}", f"x-9.{suffix}", f"x-{{2..3}}.{suffix}") == expected(10, 11, 9, 2, 3)
    assert opened(f"[x]-5.{suffix}") == expected(5)
    assert opened(f"**/x-?.{suffix}") == expected(*range(10))
    in_tuple = wr.open((tmp_path / f"x-4.{suffix}", str(tmp_path / f"x-2.{suffix}")), **options)
    assert values(in_tuple) == expected(4, 2)
    # What the same folder gives, where nothing else is in it.
    if suffix not in ("csv", "jsonl"):
        assert opened(f"x-*.{suffix}") == values(wr.open(tmp_path, **options))


@pytest.mark.parametrize("suffix", ["parquet", *FORMATS])
def test_a_list_is_fed_shuffled_resumed_and_pickled_as_one_file_is(tmp_path: Path, suffix: str) -> None:
    options = written(tmp_path, suffix)
    ds = wr.open([tmp_path / f"x-11.{suffix}", tmp_path / f"x-{{0..4}}.{suffix}"], **options)
    view = ds.pack(5)
    assert np.concatenate([view[i]["input_ids"] for i in range(len(view))]).tolist() == (
        expected(11, 0, 1, 2, 3, 4)[: 5 * len(view)]
    )
    resumes_on_other_ranks(view)
    again = pickle.loads(pickle.dumps(ds))
    assert again.path == ds.path == [str(tmp_path / f"x-11.{suffix}"), str(tmp_path / f"x-{{0..4}}.{suffix}")]
    assert values(again) == values(ds) and repr(again) == repr(ds)
    assert (pickle.loads(pickle.dumps(view))[7]["labels"] == view[7]["labels"]).all()
    shuffled = wr.Loader(view, batch_size=3, seed=5)
    other = wr.Loader(pickle.loads(pickle.dumps(view)), batch_size=3, seed=5)
    assert (next(shuffled)["input_ids"] == next(other)["input_ids"]).all()


def test_rows_keep_their_columns_and_tell_their_file(tmp_path: Path) -> None:
    in_parquet(
        {tmp_path / f"{f}.parquet": [{"ids": one.tolist(), "file": f} for one in numbers(f)] for f in range(3)}
    )
    rows = wr.open(tmp_path / "*.parquet")
    assert [row["file"] for row in rows] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    ds = wr.open([tmp_path / "2.parquet", tmp_path / "0.parquet"], column="ids")
    assert [ds.extras(i)["file"] for i in range(6)] == [2, 2, 2, 0, 0, 0]
    loader = wr.Loader(ds.records(8), batch_size=2, shuffle=False)
    next(loader)
    traced = wr.trace(loader, step=1)
    assert "2.parquet" in json.dumps(traced) and "0.parquet" in json.dumps(traced)


def test_plans_are_traced_from_their_text(tmp_path: Path) -> None:
    written(tmp_path, "bin")
    loader = wr.Loader(wr.open(tmp_path / "x-{7,3}.bin", dtype="int64").pack(4), batch_size=2, shuffle=False)
    listed = wr.Loader(wr.open([tmp_path / "x-7.bin", tmp_path / "x-3.bin"], dtype="int64").pack(4), batch_size=2)
    for plan in (loader.recipe(), listed.recipe()):
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        command = [sys.executable, "-m", "windrow", "trace", tmp_path / "plan.json", "--step", "1"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "x-7.bin" in said or "x-3.bin" in said
    assert listed.recipe()["parts"][0]["path"] == [str(tmp_path / f"x-{n}.bin") for n in (7, 3)]
    assert loader.recipe()["parts"][0]["path"] == str(tmp_path / "x-{7,3}.bin")


def test_other_files_under_the_pattern_are_another_plan_and_stale_for_pickles(tmp_path: Path) -> None:
    written(tmp_path, "bin")
    ds = wr.open(tmp_path / "x-1*.bin", dtype="int64")
    state, pickled = wr.Loader(ds.pack(4), batch_size=2).state_dict(), pickle.dumps(ds)
    in_bin(tmp_path / "x-12.bin", numbers(12))
    with pytest.raises(wr.StaleError):
        pickle.loads(pickled)
    with pytest.raises(wr.MismatchError):
        wr.Loader(wr.open(tmp_path / "x-1*.bin", dtype="int64").pack(4), batch_size=2).load_state_dict(state)


def test_names_that_are_there_are_no_patterns(tmp_path: Path) -> None:
    folder = tmp_path / "[v1] {a,b}"
    folder.mkdir()
    for name in ("x-{0..3}.bin", "y*.bin", "y1.bin"):
        in_bin(folder / name, numbers(len(name)))
    for name, n in (("x-{0..3}.bin", 12), ("y*.bin", 6)):
        assert values(wr.open(folder / name, dtype="int64")) == expected(n)
    assert values(wr.open(folder / "y?.bin", dtype="int64")) == expected(6, 6)
    assert len(wr.open((folder / "y?.bin").as_uri().replace("%3F", "?"), dtype="int64")) == 2


def test_folders_are_members_too(tmp_path: Path) -> None:
    for number, name in enumerate(("b/train", "b/val", "a/train", "a/val")):
        wr.write(tmp_path / name, [{"ids": one} for one in numbers(number)], to="mds")
    assert values(wr.open([tmp_path / "b/train", tmp_path / "a/train"], column="ids")) == expected(0, 2)
    assert values(wr.open([tmp_path / "b", tmp_path / "a"], split="val", column="ids")) == expected(1, 3)
    assert values(wr.open(tmp_path / "*/train", column="ids")) == expected(2, 0)
    with pytest.raises(wr.ConfigError, match="which is there too"):
        wr.open([tmp_path / "b", tmp_path / "b/train"], column="ids")


def test_splits_are_kept_apart_in_globs(tmp_path: Path) -> None:
    for number, name in enumerate(("train-0", "train-1", "val-0")):
        in_bin(tmp_path / f"{name}.bin", numbers(number))
    with pytest.raises(wr.ConfigError, match="several splits") as found:
        wr.open(tmp_path / "*.bin", dtype="int64")
    assert found.value.hint is not None and 'split="train"' in found.value.hint
    assert values(wr.open(tmp_path / "*.bin", dtype="int64", split="train")) == expected(0, 1)
    assert values(wr.open(tmp_path / "*.bin", dtype="int64", split="validation")) == expected(2)
    assert values(wr.open(tmp_path / "train-*.bin", dtype="int64")) == expected(0, 1)
    assert values(wr.open([tmp_path / "val-0.bin", tmp_path / "train-0.bin"], dtype="int64")) == expected(2, 0)
    with pytest.raises(wr.NotFoundError):
        wr.open(tmp_path / "*.bin", dtype="int64", split="test")


def test_records_are_split_over_all_files(tmp_path: Path) -> None:
    written(tmp_path, "npy")
    train, validation = wr.open(tmp_path / "x-*.npy").split(0.25)
    assert (len(train), len(validation)) == (27, 9)
    assert values(pickle.loads(pickle.dumps(validation))) == values(validation)


def test_windrows_own_files_beside_the_data_are_not_matched(tmp_path: Path) -> None:
    for number in range(2):
        wr.write(tmp_path / f"{number}.bin", numbers(number), to="tokens", dtype="int64")
    assert len(list(tmp_path.iterdir())) > 2
    assert values(wr.open(tmp_path / "*")) == expected(0, 1)


def test_halves_of_a_pair_are_not_read_twice(tmp_path: Path) -> None:
    for number in range(2):
        wr.write(tmp_path / f"{number}", numbers(number), to="megatron", dtype="int64")
    assert values(wr.open(tmp_path / "*.bin")) == values(wr.open(tmp_path / "{0,1}")) == expected(0, 1)
    with pytest.raises(wr.ConfigError, match="the same records as those of .*0.bin"):
        wr.open(tmp_path / "*")


def test_what_cannot_be_joined_names_both(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 3), np.float32))
    np.save(tmp_path / "b.npy", np.zeros((2, 3), np.float64))
    np.save(tmp_path / "c.npy", np.zeros((2, 3, 4), np.float32))
    (tmp_path / "d.jsonl").write_text('{"text": "one"}\n')
    in_parquet({tmp_path / "e.parquet": [{"a": 1}], tmp_path / "f.parquet": [{"a": "1"}]})
    for a, b, says in [
        ("a.npy", "b.npy", "float32 .*float64"),
        ("a.npy", "c.npy", r"\[T\] .*\[T, 4\]"),
        ("a.npy", "d.jsonl", "npy .*jsonl"),
        ("e.parquet", "f.parquet", "columns"),
    ]:
        with pytest.raises(wr.MismatchError, match=says) as found:
            wr.open([tmp_path / a, tmp_path / b])
        assert a in str(found.value) and b in str(found.value)


def test_ids_of_two_tokenizers_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.jsonl").write_text('{"text": "one"}\n')
    for tokenizer in ("bytes", "gpt2"):
        wr.tokenize(tmp_path / "text.jsonl", tmp_path / tokenizer, tokenizer=tokenizer, dtype="uint32")
    with pytest.raises(wr.MismatchError, match="bytes in .*gpt2 here"):
        wr.open([tmp_path / "bytes", tmp_path / "gpt2"])
    assert len(wr.open([tmp_path / "bytes", tmp_path / "gpt2"], trust=True)) == 2


def test_mistakes_are_errors_that_help(tmp_path: Path) -> None:
    written(tmp_path, "bin")
    (tmp_path / "empty").mkdir()

    def error(path: Any, kind: type[wr.WindrowError]) -> tuple[str, str]:
        with pytest.raises(kind) as found:
            wr.open(path, dtype="int64")
        return str(found.value), found.value.hint or ""

    said, hint = error(tmp_path / "*.tar", wr.NotFoundError)
    assert "*.tar" in said and hint == f"{tmp_path} holds empty, x-0.bin, x-1.bin and 10 more"
    said, hint = error(tmp_path / "emtpy" / "*.bin", wr.NotFoundError)
    assert hint == f"did you mean {tmp_path / 'empty'}?"
    assert error(tmp_path / "empty" / "*", wr.NotFoundError)[1] == f"{tmp_path / 'empty'} is empty"
    said, hint = error(tmp_path / "x-{0..12}.bin", wr.NotFoundError)
    assert "x-12.bin" in said
    said, hint = error([tmp_path / "x-0.bin", tmp_path / "nothing"], wr.NotFoundError)
    assert "nothing" in said and hint == "it is number 1 of 2 paths, counted from 0"
    assert "empty" in error([], wr.ConfigError)[0]
    said, hint = error([tmp_path / "x-1.bin", tmp_path / "x-1*.bin"], wr.ConfigError)
    assert "x-1.bin" not in hint
    said, hint = error([tmp_path / "x-1*.bin", tmp_path / "x-{9..11}.bin"], wr.ConfigError)
    assert "twice" in said and "number 1 and number 4" in said and "wr.mix" in hint
    assert "{0..x} is not a range" in error(tmp_path / "x-{0..x}.bin", wr.ConfigError)[0]
    # Ten thousand million names are counted, not made.
    assert "10000000000" in error(tmp_path / "{0..99999}{0..99999}.bin", wr.ConfigError)[0]
    assert "braces" in error(tmp_path / ("{a,b}" * 40), wr.ConfigError)[0]
    for wrong in ({"train": "a"}, 3, [3], iter(["a"]), {"a", "b"}):
        with pytest.raises(TypeError, match="expected a path or a list of paths"):
            wr.open(wrong)  # type: ignore[arg-type]


def test_a_thousand_shards_open(tmp_path: Path) -> None:
    for number in range(1000):
        in_bin(tmp_path / f"{number:04}.bin", numbers(number)[:1])
    ds = wr.open(tmp_path / "{0000..0999}.bin", dtype="int64")
    assert (len(ds), ds[999][0]) == (1000, 99900)


def test_the_other_functions_take_them_too(tmp_path: Path) -> None:
    written(tmp_path, "bin")
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"text": "{name}"}}\n')
    made = wr.tokenize(tmp_path / "{b,a}.jsonl", tmp_path / "tokens", tokenizer="bytes")
    assert (made["documents"], wr.open(tmp_path / "tokens")[0].tolist()) == (2, [98])
    wr.write(tmp_path / "n-0.npy", [[1, 2]], to="npy", dtype="int64")
    wr.write(tmp_path / "n-1.npy", [[3, 4]], to="npy", dtype="int64")
    assert wr.convert([tmp_path / "n-?.npy"], tmp_path / "out.npy", to="npy")["records"] == 2
    assert wr.convert(str(tmp_path / "n-{1,0}.npy"), tmp_path / "out.npy", to="npy", overwrite=True)["records"] == 2
    assert np.load(tmp_path / "out.npy").tolist() == [[3, 4], [1, 2]]
    found = wr.verify([tmp_path / "[ab].jsonl"])
    assert found["problems"] == [] and found["read_files"] == 2
    (tmp_path / "b.jsonl").write_text("{")
    assert [p["file"] for p in wr.verify(tmp_path / "[ab].jsonl")["problems"]] == [str(tmp_path / "b.jsonl")]


def test_commands_take_patterns_and_several_paths(tmp_path: Path) -> None:
    written(tmp_path, "bin")

    def said(*arguments: str) -> Any:
        command = [sys.executable, "-m", "windrow", *arguments, "--dtype", "int64", "--json"]
        return json.loads(subprocess.run(command, capture_output=True, check=True, cwd=tmp_path).stdout)

    for paths in (["x-*.bin"], ["x-{0..11}.bin"], [f"x-{n}.bin" for n in range(12)]):
        found = said("inspect", *paths)
        assert (found["info"]["records"], found["info"]["values"]) == (12, 288)
        assert found["path"] == (paths[0] if len(paths) == 1 else paths)
    assert said("peek", "x-{4,3}.bin", "-n", "2")["records"][1]["values"][0] == 300
    assert said("trace", "x-4.bin", "x-3.bin", "--pack", "4", "--step", "0", "--batch-size", "2", "--no-shuffle")["step"] == 0
    said("convert", "x-{4,3}.bin", "one.npy", "--to", "npy")
    assert np.load(tmp_path / "one.npy")[:, 0].tolist() == [400, 300]
    verified = subprocess.run(
        [sys.executable, "-m", "windrow", "verify", "x-*.bin"], capture_output=True, text=True, cwd=tmp_path
    )
    assert verified.returncode == 0 and "x-*.bin: 12 files read; " in verified.stdout
    assert "x-11.bin has no manifest" in verified.stdout


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What bash does with a line in which {} is the command."""
    line = line.replace("{}", f"{sys.executable} -m windrow")
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=cwd, timeout=60)


def test_a_path_that_begins_with_a_tilde_is_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    (home / "a.jsonl").write_text('{"text": "a"}\n' * 3)
    ds = wr.open("~/a.jsonl")
    assert (len(ds), Path(str(ds.path))) == (3, home / "a.jsonl")
    assert len(wr.open("~/*.jsonl")) == 3
    wr.tokenize("~/a.jsonl", "~/tokens", tokenizer="bytes")
    wr.convert(wr.open("~/tokens"), "~/copy.jsonl", to="jsonl")
    wr.write("~/rows.parquet", [{"text": "a"}], to="parquet")
    assert (home / "tokens").is_dir() and (home / "copy.jsonl").is_file() and (home / "rows.parquet").is_file()
    for line in (
        "inspect '~/tokens'", "convert '~/a.jsonl' --to parquet '~/x.parquet'", "tokenize '~/a.jsonl' --tokenizer bytes --out=~/y",
        "index '~'", "manifest '~' -o '~/m.json'", "prep plan tokenize '~/a.jsonl' --tokenizer bytes --out '~/z' --job '~/job.json'",
        "prep run '~/job.json'",
    ):  # fmt: skip
        ran = shell(f"{{}} {line}", here)
        assert ran.returncode == 0, f"{line}: {ran.stderr}"
    assert (home / "x.parquet").is_file() and (home / "y").is_dir() and list(here.iterdir()) == []
    # A name that is here as it is written is that name.
    (here / "~").mkdir()
    (here / "~" / "a.jsonl").write_text('{"text": "b"}\n')
    assert wr.open("~/a.jsonl")[0]["text"] == "b"
    assert json.loads(shell("{} inspect '~/a.jsonl' --json", here).stdout)["info"]["records"] == 1
    with pytest.raises(wr.NotFoundError) as raised:
        wr.open("~no-such-user/a.jsonl")
    assert "no-such-user" in str(raised.value.hint)


LINES = [f'{{"text": "document {i}"}}\n' for i in range(5000)]


@pytest.mark.parametrize(
    "line",
    [
        "{} tokenize <(cat a.jsonl) --tokenizer bytes -o x",
        "{} tokenize <(cat a.jsonl.gz) --tokenizer bytes -o x",
        "{} tokenize <(zcat a.jsonl.gz; sleep 0.3) --tokenizer bytes -o x",
        "cat a.jsonl | {} tokenize /dev/stdin --tokenizer bytes -o x",
        "cat a.jsonl.gz | {} tokenize - --tokenizer bytes -o x",
        "{} tokenize - --tokenizer bytes -o x < a.jsonl",
        "{} tokenize <(head -n 2000 a.jsonl) <(tail -n 3000 a.jsonl) --tokenizer bytes -o x",
    ],
)
def test_lines_of_a_pipe_are_tokenised(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.jsonl").write_text("".join(LINES))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress("".join(LINES).encode()))
    ran = shell(f"{line} --json", tmp_path)
    assert ran.returncode == 0, ran.stderr
    is_packed = "cat a.jsonl.gz" in line and "zcat" not in line
    assert json.loads(ran.stdout)["report"]["input_bytes"] == (tmp_path / f"a.jsonl{'.gz' * is_packed}").stat().st_size
    assert wr.tokenize(tmp_path / "a.jsonl", tmp_path / "y", tokenizer="bytes")["records"] == 5000
    here, there = wr.open(tmp_path / "x"), wr.open(tmp_path / "y")
    assert len(here) == len(there)
    assert all(np.array_equal(here[i], there[i]) for i in (0, 1, 1999, 2000, 4999))
    # Each time it is another input, but for a file; and nothing is left of one that stopped.
    again = shell(line, tmp_path)
    assert again.returncode == (0 if "< a.jsonl" in line else 1), again.stdout
    assert shell(f"{line} --overwrite", tmp_path).returncode == 0
    assert not [path for path in (tmp_path / "x").iterdir() if path.name.startswith(".")]


def test_a_pipe_with_a_name_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(LINES))
    ran = shell("mkfifo p.jsonl; cat a.jsonl > p.jsonl & {} tokenize p.jsonl --tokenizer bytes -o x", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert len(wr.open(tmp_path / "x")) == 5000
    assert [path.name for path in (tmp_path / "x").rglob("*.bin") if "samples" in path.parent.name] == ["p-tokenized-samples.bin"]


def test_a_pipe_that_gives_something_else_or_nothing(tmp_path: Path) -> None:
    wr.write(tmp_path / "a.parquet", [{"text": "a"}], to="parquet")
    (tmp_path / "cut.gz").write_bytes(gzip.compress("".join(LINES).encode())[:5000])
    for line, says in [
        ("{} inspect <(cat a.parquet)", "a pipe is read once"),
        ("{} convert <(cat a.parquet) x --to jsonl", "a pipe is read once"),
        ("{} tokenize <(cat a.parquet) --tokenizer bytes -o x", "Parquet"),
        ("{} tokenize <(cat cut.gz) --tokenizer bytes -o x", "damaged or cut short"),
        ("{} tokenize <(true) --tokenizer bytes -o x", "there are no texts"),
        ("echo '{\"text\": 1}' | {} tokenize - --tokenizer bytes -o x", "text"),
        ("{} prep plan tokenize <(cat a.parquet) --tokenizer bytes --out x --job job", "a pipe is read once"),
    ]:
        ran = shell(line, tmp_path)
        assert ran.returncode > 0 and says in ran.stderr, f"{line}: {ran.stderr}"
        left = list((tmp_path / "x").iterdir()) if (tmp_path / "x").exists() else []
        assert left == [], line


def test_a_pipe_that_gives_nothing_for_now_is_no_hindrance_to_ctrl_c(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "windrow", "tokenize", "-", "--tokenizer", "bytes", "--out", tmp_path / "x"]
    with running(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not any((tmp_path / "x").glob(".*")):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130


def test_the_nearest_name_beside_a_bare_one(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"text": "a"}\n')
    (tmp_path / "tokens").mkdir()
    (tmp_path / "job.json").write_text("{}")
    for line, near in [
        ("inspect corpus.json", "corpus.jsonl"),
        ("tokenize corpsu.jsonl --tokenizer bytes -o x", "corpus.jsonl"),
        ("index tokns", "tokens"),
        ("manifest tokns", "tokens"),
        ("prep run jbo.json", "job.json"),
        ("prep status jbo.json", "job.json"),
    ]:
        ran = shell(f"{{}} {line}", tmp_path)
        assert ran.returncode == 1, line
        assert re.search(rf"did you mean (.*/)?{near}\?", ran.stderr), f"{line}: {ran.stderr}"
