"""Damaged records are left out where that is asked for: listed, counted, up to a share, and the same however the work is cut."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import windrow as wr

GOOD = [json.dumps({"text": f"text {i}"}).encode() for i in range(40)]
BAD = {
    "not JSON": b"{'text': 'x'}",
    "invalid UTF-8": b'{"text": "caf\xe9"}',
    "no field": b'{"txt": "x"}',
    "holds null": b'{"text": null}',
    "holds a list": b'{"text": ["x"]}',
    "a blank line": b"",
}


def lines(path: Path, *, every: int = 7) -> list[tuple[int, int, str]]:
    """Writes a bad line after every few good ones; number, first byte and error of each."""
    out, bad, kinds = [], [], list(BAD.items())
    for i, good in enumerate(GOOD):
        if i % every == every - 1:
            what, line = kinds[len(bad) % len(kinds)]
            bad.append((len(out), sum(len(line) + 1 for line in out), what))
            out.append(line)
        out.append(good)
    path.write_bytes(b"\n".join(out) + b"\n")
    return bad


def documents(path: Path) -> list[bytes]:
    return [bytes(record.tolist()) for record in wr.open(path)]


WANTED = [f"text {i}".encode() for i in range(40)]


def said(skipped: dict[str, Any]) -> list[tuple[int, int]]:
    return [(one["record"], one["byte"]) for one in skipped["first"]]


def are(skipped: dict[str, Any], bad: list[tuple[int, int, str]]) -> bool:
    assert skipped["count"] == len(bad) == len(skipped["first"])
    for one, (record, byte, what) in zip(skipped["first"], bad, strict=True):
        assert one["record"] == record and what in one["error"] and one["file"].endswith("a.jsonl")
        assert byte <= one["byte"] < byte + 20
    return True


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("to", ["forager", "megatron", "shards"])
def test_bad_lines_are_left_out_listed_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, threads: int, to: Any
) -> None:
    bad = lines(tmp_path / "a.jsonl")
    out: dict[str, Any] = {"tokenizer": "bytes", "to": to, "num_threads": threads}
    report = wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", skip_corrupt=True, max_skipped=0.2, **out)
    assert are(report["skipped"], bad) and report["documents"] == 40 and documents(tmp_path / "out") == WANTED
    assert f"record {bad[0][0]}, byte " in caplog.text and caplog.text.count("left out: ") == len(bad)
    again = wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", skip_corrupt=True, max_skipped=0.2, **out)
    assert again["unchanged"] and again["skipped"] == report["skipped"]
    # What is there has too many of them for this share.
    with pytest.raises(wr.CorruptError, match="at most 1 % may be left out"):
        wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", skip_corrupt=True, **out)


def manifest(folder: Path) -> dict[str, Any]:
    return json.loads(next(folder.rglob("windrow.json")).read_text())


def test_a_manifest_without_them_is_as_before(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(GOOD))
    wr.tokenize(tmp_path / "a.jsonl", tmp_path / "plain", tokenizer="bytes")
    report = wr.tokenize(tmp_path / "a.jsonl", tmp_path / "skipping", tokenizer="bytes", skip_corrupt=True)
    plain, skipping = manifest(tmp_path / "plain"), manifest(tmp_path / "skipping")
    assert report["skipped"] == {"count": 0, "first": []}
    assert skipping["options"].pop("skip_corrupt") is True and skipping.pop("xxh3") != plain.pop("xxh3")
    assert plain == skipping and "skipped" not in json.dumps(plain)


def test_the_first_is_an_error_unless_it_is_asked_for(tmp_path: Path) -> None:
    bad = lines(tmp_path / "a.jsonl")
    with pytest.raises(wr.CorruptError, match="not JSON") as error:
        wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes")
    assert error.value.record == bad[0][0] and "skip_corrupt=True leaves such records out" in str(error.value.hint)
    with pytest.raises(wr.ConfigError, match="nothing is left out") as config:
        wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes", max_skipped=0.5)
    assert config.value.field == "max_skipped"
    with pytest.raises(wr.ConfigError, match="expected a share"):
        wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes", skip_corrupt=True, max_skipped=2)


def test_too_many_are_an_error_and_a_run_that_allows_them_has_nothing_to_do_again(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl")
    with pytest.raises(wr.CorruptError, match=r"5 of 45 records are damaged, 11\.111 %.*at most 1 %.*record 6, byte") as error:
        wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", tokenizer="bytes", skip_corrupt=True)
    assert "max_skipped" in str(error.value.hint) and not list((tmp_path / "out").glob("[!.]*"))
    options: dict[str, Any] = {"tokenizer": "bytes", "skip_corrupt": True, "max_skipped": 5 / 45}
    report = wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", **options)
    assert report["resumed_bytes"] == report["input_bytes"] and report["skipped"]["count"] == 5
    assert documents(tmp_path / "out") == WANTED
    (tmp_path / "none.jsonl").write_bytes(b"\n".join(BAD.values()) + b"\n")
    with pytest.raises(wr.CorruptError, match="6 of 6 records are damaged"):
        wr.tokenize(tmp_path / "none.jsonl", tmp_path / "none", tokenizer="bytes", skip_corrupt=True, max_skipped=1)
    (tmp_path / "other.jsonl").write_bytes(b'{"other": 1}\n' * 100_000)
    with pytest.raises(wr.CorruptError, match="all of the first [0-9]+ records are damaged"):
        wr.tokenize(tmp_path / "other.jsonl", tmp_path / "none", tokenizer="bytes", skip_corrupt=True, max_skipped=1)


def test_what_is_lost_with_a_part_of_a_file_is_never_skipped(tmp_path: Path) -> None:
    options: dict[str, Any] = {"tokenizer": "bytes", "skip_corrupt": True, "max_skipped": 1}
    whole = b"\n".join(GOOD)
    (tmp_path / "cut.jsonl").write_bytes(whole[:-4])
    with pytest.raises(wr.CorruptError, match="not JSON") as error:
        wr.tokenize(tmp_path / "cut.jsonl", tmp_path / "out", **options)
    assert "the file ends within this record" in str(error.value.hint)
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(whole)[:-20])
    with pytest.raises(wr.CorruptError, match="damaged or cut short"):
        wr.tokenize(tmp_path / "cut.jsonl.gz", tmp_path / "out", **options)


@pytest.mark.parametrize("sample_size", [None, 16])
def test_a_run_that_was_stopped_continues_with_the_same_counts(tmp_path: Path, sample_size: int | None) -> None:
    n = 60_000
    text = [json.dumps({"text": f"some words {i} " * 3}) if i % 50 else "{broken" for i in range(n)]
    (tmp_path / "a.jsonl").write_text("\n".join(text) + "\n")
    options: dict[str, Any] = {"tokenizer": "bytes", "skip_corrupt": True, "max_skipped": 0.05, "sample_size": sample_size}
    options |= {"num_threads": 1, "fsync": False}
    whole = wr.tokenize(tmp_path / "a.jsonl", tmp_path / "whole", **options)

    def stop(state: dict[str, int]) -> None:
        if 0 < state["done_bytes"] < state["total_bytes"]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", progress=stop, **options)
    report = wr.tokenize(tmp_path / "a.jsonl", tmp_path / "out", **options)
    assert report["resumed_bytes"] > 0 and whole["skipped"] == report["skipped"] and whole["skipped"]["count"] == n // 50
    one, other = manifest(tmp_path / "whole"), manifest(tmp_path / "out")
    assert one["statistics"] == other["statistics"] and [f["xxh3"] for f in one["files"]] == [f["xxh3"] for f in other["files"]]


def test_tasks_sum_the_counts_and_the_share_is_one_of_all(tmp_path: Path) -> None:
    bad = lines(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").write_bytes(b"\n".join(BAD.values()) + b"\n" + GOOD[0] + b"\n")
    inputs = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    options: dict[str, Any] = {"tokenizer": "bytes", "skip_corrupt": True}
    whole = wr.tokenize(inputs, tmp_path / "whole", **options, max_skipped=0.5)
    assert whole["skipped"]["count"] == len(bad) + len(BAD)

    plan: dict[str, Any] = {"task_bytes": 60, **options}
    job = wr.prep.plan("tokenize", inputs, tmp_path / "parts", **plan)
    assert all(wr.prep.run_task(job, task) for task in range(wr.prep.status(job)["tasks"]))
    for done in (lambda: wr.prep.merge(job), lambda: wr.prep.join(job, tmp_path / "joined")):
        with pytest.raises(wr.CorruptError, match="11 of 52 records are damaged"):
            done()
    # The same job, whose tasks are done.
    assert wr.prep.plan("tokenize", inputs, tmp_path / "parts", max_skipped=0.5, **plan) == job
    assert wr.prep.status(job)["left"] == []
    merged, joined = wr.prep.merge(job), wr.prep.join(job, tmp_path / "joined")
    assert merged["skipped"] == joined["skipped"] == whole["skipped"]
    assert documents(tmp_path / "parts") == documents(tmp_path / "joined") == documents(tmp_path / "whole")
    assert manifest(tmp_path / "joined")["statistics"] == manifest(tmp_path / "whole")["statistics"]
    assert said(manifest(tmp_path / "parts")["statistics"]["skipped"]) == said(whole["skipped"])


def test_items_rows_and_conversations_are_left_out_too(tmp_path: Path) -> None:
    options: dict[str, Any] = {"tokenizer": "bytes", "skip_corrupt": True, "max_skipped": 0.9}
    items = ["a", 3, {"text": "b"}, {"other": 1}, None, "c\ud800", "d"]
    report = wr.tokenize(iter(items), tmp_path / "items", **options)
    assert [one["record"] for one in report["skipped"]["first"]] == [1, 3, 4, 5] and documents(tmp_path / "items") == [b"a", b"b", b"d"]
    assert wr.tokenize(iter(items), tmp_path / "items", **options)["unchanged"]
    with pytest.raises(wr.ExistsError):
        wr.tokenize(iter([*items, None]), tmp_path / "items", **options)

    wr.write(tmp_path / "a.parquet", [{"text": "a"}, {"text": None}, {"text": "c"}], to="parquet")
    report = wr.tokenize(tmp_path / "a.parquet", tmp_path / "rows", **options)
    assert [(one["record"], one["file"]) for one in report["skipped"]["first"]] == [(1, str(tmp_path / "a.parquet"))]
    assert documents(tmp_path / "rows") == [b"a", b"c"]

    template = "{% for m in messages %}{% if m.role == 'critic' %}{{ raise_exception('no critics') }}{% endif %}{{ m.content }}{% endfor %}"
    (tmp_path / "t.jinja").write_text(template)
    said = [[{"role": role, "content": "x"}, {"role": "assistant", "content": "y"}] for role in ("user", "critic", "user")]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps({"messages": one}) + "\n" for one in said))
    chat: dict[str, Any] = {"chat": True, "chat_template": str(tmp_path / "t.jinja"), **options}
    report = wr.tokenize(tmp_path / "c.jsonl", tmp_path / "chat", **chat)
    assert report["skipped"]["count"] == 1 and "no critics" in report["skipped"]["first"][0]["error"] and report["documents"] == 2


def test_an_iterable_that_fails_continues_behind_what_is_left_out(tmp_path: Path) -> None:
    options: dict[str, Any] = {"tokenizer": "bytes", "skip_corrupt": True, "max_skipped": 0.9}

    def items(fails: bool) -> Any:
        yield from ["a", None, "b"]
        if fails:
            raise RuntimeError("stopped")
        yield from [None, "c"]

    with pytest.raises(RuntimeError, match="stopped"):
        wr.tokenize(items(True), tmp_path / "out", **options)
    report = wr.tokenize(items(False), tmp_path / "out", **options)
    assert [one["record"] for one in report["skipped"]["first"]] == [1, 3] and documents(tmp_path / "out") == [b"a", b"b", b"c"]


def test_the_command_says_how_many(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl")
    command = [sys.executable, "-m", "windrow", "tokenize", "a.jsonl", "-o", "out", "-t", "bytes"]

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False)

    first = run()
    assert first.returncode == 3 and "--skip-corrupt leaves such records out" in first.stderr
    many = run("--skip-corrupt")
    assert many.returncode == 3 and many.stderr.count("left out: ") == 5
    done = run("--skip-corrupt", "--max-skipped", "0.2")
    assert done.returncode == 0 and "5 records of 45 were damaged and left out, 11.111 %; the first: " in done.stdout
    # They were named before.
    assert not done.stderr
