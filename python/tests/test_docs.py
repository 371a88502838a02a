"""The pages: every Python block of README.md and docs/*.md runs, every `$ windrow` line does what the page shows.

A page is run from top to bottom in a folder and a process of its own; its blocks share their names, as in a notebook.

- ```python is run. A ```text block right after it is what it prints; `…` stands for anything within a line.
- ```console: a line `$ command` is run, and the lines after it are its stdout, `…` again; lines that start with `error:`
  are its stderr, and it must fail. Without any lines the command must only succeed.
- `<!-- needs: demo -->` before a block makes the sample data of `windrow demo` first; see NEEDS for all names.
- `<!-- file: train.py -->` before a Python block writes it to that file instead; a later command runs it.
- ```bash is a script that `<!-- file: … -->` names: it is written and its syntax is checked. ```yaml is only parsed.
- `<!-- engine: slurm -->` before a block runs it only where `make test-engines` has started that engine.
- ```sh holds commands that build or install (make, cargo, pip), or start a trainer that is not installed, and is only checked for
  being that; ```rust is run by `cargo test`.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import runpy
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

import hub_server

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
PICTURES = ROOT / "docs" / "images"
PICTURE = re.compile(r"!\[(.*?)\]\((.*?)\)")
# One picture for day and night: what it shows is said once.
PICTURES_BY_LIGHT = re.compile(r'<picture>\s*<source [^>]*srcset="(.*?)">\s*<img src="(.*?)" alt="(.*?)">\s*</picture>')
FENCE = re.compile(r"^```(\w*)\s*$")
COMMENT = re.compile(r"^<!-- (needs|file|engine): (.+?) -->$")
PROGRAMS = {
    "windrow": [sys.executable, "-m", "windrow"],
    "python": [sys.executable],
    "torchrun": [sys.executable, "-m", "torch.distributed.run"],
    "sbatch": ["sbatch"],
}
# What runs jobs here, as a test says that started it.
ENGINES = os.environ.get("WINDROW_TEST_ENGINES", "").split()
BUILDS = ("make ", "cargo ", "pip ", "git ", "cd ", "cp ", "torchrun ", "python windrow_")


@dataclass
class Block:
    """A fenced block: its language, its first line's number from 1, its text, and the comments before it."""

    lang: str
    line: int
    text: str
    marks: dict[str, str] = field(default_factory=dict)


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    blocks: list[Block] = []
    marks: dict[str, str] = {}
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if found := COMMENT.match(line):
            marks[found[1]] = found[2]
        elif found := FENCE.match(line):
            body = []
            for _, inner in lines:
                if inner.startswith("```"):
                    break
                body.append(inner)
            else:
                raise AssertionError(f"line {number}: a block without an end")
            blocks.append(Block(found[1], number + 1, "\n".join(body), marks))
            marks = {}
        elif line.strip():
            marks = {}
    return blocks


def make_demo() -> None:
    """`windrow-demo/`, as the demo leaves it."""
    command = [*PROGRAMS["windrow"], "demo", "-q"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def make_bad() -> None:
    """`bad.jsonl`: its second line has a number where the text should be."""
    Path("bad.jsonl").write_text('{"text": "good"}\n{"text": 7}\n')


def make_series() -> None:
    """`series.jsonl`: two series, one value missing."""
    Path("series.jsonl").write_text('{"sequence": [0, 10, 20, NaN, 40, 50]}\n{"sequence": [1, 2, 3]}\n')


def make_sound() -> None:
    """`sound/`, five clips; `audio_prompts/`; `weights.pth`, random ones of a small codec."""
    data = ROOT / "testdata"
    Path("sound").mkdir()
    for clip in (data / "audio").glob("cards_00?.*"):
        shutil.copy(clip, "sound")
    shutil.copytree(data / "audio_prompts", "audio_prompts")
    shutil.copy(data / "dac" / "small.pth", "weights.pth")


def start_hub() -> None:
    """A hub on loopback, which the commands that follow ask instead of the real one."""
    os.environ |= {"HF_ENDPOINT": hub_server.time_300b().endpoint, "HF_HOME": str(Path.cwd().parent / "hf")}


def copy_timeseries() -> None:
    """The real series of testdata."""
    shutil.copy(ROOT / "testdata" / "timeseries" / "series.jsonl", "timeseries.jsonl")


def add_trl() -> None:
    """TRL, and `datasets` that it needs, from the folder of other loaders' packages."""
    sys.path.append(str(Path(sys.prefix) / "loaders"))


def copy_adapters() -> None:
    """The examples for trainers, by the names that the page gives them."""
    for path in (ROOT / "examples" / "trainers").glob("*.py"):
        shutil.copy(path, f"windrow_{path.name}")


NEEDS: dict[str, Callable[[], None]] = {
    "demo": make_demo,
    "bad.jsonl": make_bad,
    "series.jsonl": make_series,
    "sound": make_sound,
    "timeseries": copy_timeseries,
    "hub": start_hub,
    "trl": add_trl,
    "trainers": copy_adapters,
}


def end_of(script: str) -> str:
    """What a script of several processes ends with here: gloo's threads may still hold tensors, even after
    `destroy_process_group`, and abort a Python that ends meanwhile, which a busy machine shows once in dozens of runs.
    """
    return "import os, sys\nsys.stdout.flush()\nos._exit(0)\n" if 'init_process_group("gloo")' in script else ""


def check_printed(expected: str, found: str, where: str) -> None:
    """Compares what was printed with a page's lines, in which `…` stands for anything."""
    here = str(Path.cwd())
    lines = [line.rstrip().replace(here, "/data") for line in found.rstrip().splitlines()]
    shown = [line.rstrip() for line in expected.rstrip().splitlines()]
    for number, (want, got) in enumerate(zip(shown, lines, strict=False)):
        pattern = ".*".join(map(re.escape, want.split("…")))
        assert re.fullmatch(pattern, got), f"{where}, line {number + 1} of the output: {want!r} is shown, {got!r} printed"
    assert len(shown) == len(lines), f"{where}: {len(shown)} lines shown, {len(lines)} printed:\n{found}"


def run_python(block: Block, page: str, names: dict[str, Any]) -> str:
    """Runs a block; gives what it printed."""
    source = "\n" * (block.line - 1) + block.text
    # The source of its functions is found as that of a notebook's cell.
    name = f"<{page}:{block.line}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    code = compile(source, name, "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)  # noqa: S102
    return printed.getvalue()


def run_console(block: Block, page: str) -> None:
    """Runs the commands of a block and compares what they print."""
    code = 0
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE):
        command, _, shown = part.partition("\n")
        if not command:
            assert not shown.strip(), f"{page}:{block.line}: output before the first command"
            continue
        where = f"{page}:{block.line}: $ {command}"
        if command == "echo $?":
            check_printed(shown, str(code), where)
            continue
        program, *words = command.split()
        assert program in PROGRAMS, f"{where}: no program that pages may run"
        done = subprocess.run([*PROGRAMS[program], *words], capture_output=True, text=True, check=False)
        code = done.returncode
        is_failure_shown = shown.startswith("error:")
        assert (code != 0) == is_failure_shown, f"{where}: exit {code}\n{done.stdout}{done.stderr}"
        if shown.strip():
            check_printed(shown, done.stderr if is_failure_shown else done.stdout, where)


def run_page(page: str, text: str) -> None:
    """Runs the blocks of a page in the current folder."""
    names: dict[str, Any] = {"__name__": "__page__"}
    printed: tuple[str, str] | None = None
    for block in blocks_of(text):
        where = f"{page}:{block.line}"
        if block.marks.get("engine", "none") not in ["none", *ENGINES]:
            printed = None
            continue
        if "needs" in block.marks:
            NEEDS[block.marks["needs"]]()
        if block.lang == "python" and "file" in block.marks:
            Path(block.marks["file"]).write_text(block.text + "\n" + end_of(block.text))
            printed = None
        elif block.lang == "python":
            try:
                printed = run_python(block, page, names), where
            except Exception:
                traceback.print_exc()
                raise SystemExit(f"{where}: the block failed") from None
            continue
        elif block.lang == "text":
            if printed is not None:
                check_printed(block.text, *printed)
        elif block.lang == "console":
            run_console(block, page)
        elif block.lang == "bash":
            assert "file" in block.marks, f"{where}: a script without a name"
            Path(block.marks["file"]).write_text(block.text + "\n")
            subprocess.run(["bash", "-n", block.marks["file"]], check=True)
        elif block.lang == "yaml":
            assert list(yaml.safe_load_all(block.text)), f"{where}: nothing in it"
        elif block.lang == "sh":
            for line in block.text.splitlines():
                assert line.startswith(BUILDS), f"{where}: {line!r} is run by nobody"
        else:
            assert block.lang == "rust", f"{where}: a block in {block.lang!r} is run by nobody"
        printed = None


@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    environment |= {"WINDROW_CACHE": str(tmp_path / "cache"), "NO_COLOR": "1", "COLUMNS": "100"}
    folder = tmp_path / "data"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, __file__, page],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_pages_name_every_picture_and_say_what_it_shows() -> None:
    named = set()
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        shown = PICTURE.findall(text)
        for dark, light, shows in PICTURES_BY_LIGHT.findall(text):
            shown += [(shows, dark), (shows, light)]
        for shows, path in shown:
            picture = (ROOT / page).parent / path
            assert shows, f"{page}: {path} says nothing to those who cannot see it"
            assert picture.is_file(), f"{page}: {path} is not there"
            assert picture.stat().st_size < 150_000, f"{path} is large"
            named.add(picture.resolve())
    assert named == set(PICTURES.iterdir())


def test_pictures_are_what_the_program_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))
    runpy.run_path(str(ROOT / "docs" / "pictures.py"))["draw"](tmp_path / "images")
    drawn = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "images").iterdir()}
    kept = {path.name: path.read_text(encoding="utf-8") for path in PICTURES.iterdir()}
    assert drawn == kept, "run `make pictures`"


def test_the_gallery_is_what_the_program_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))
    runpy.run_path(str(ROOT / "docs" / "gallery.py"))["draw"](tmp_path / "gallery")
    written = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "gallery").iterdir()}
    kept = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "gallery").iterdir()}
    assert written == kept, "run `make pictures`"
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert set(re.findall(r'iframe src="gallery/([a-z.]+)"', text)) == set(kept)


@pytest.mark.parametrize(
    "text",
    [
        "```python\n1 / 0\n```\n",
        "```python\nprint('a')\n```\n\n```text\nb\n```\n",
        "```python\nprint('a')\n```\n\n```text\na\na\n```\n",
        "```console\n$ windrow inspect nothing\n```\n",
        "```console\n$ python -c 1\nerror: …\n```\n",
        "```console\n$ rm x\n```\n",
        "```sh\nrm x\n```\n",
        "```bash\ntrue\n```\n",
        "```yaml\na: [\n```\n",
        "```\nwhat is this\n```\n",
        "<!-- needs: nothing -->\n```python\n1\n```\n",
    ],
)
def test_what_is_wrong_is_found(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, SystemExit, KeyError, yaml.YAMLError)):
        run_page("page", text)


def test_what_is_right_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(
        "page",
        "```python\nprint('ab')\nprint(1)\n```\n\n```text\na…\n1\n```\n"
        "<!-- engine: another -->\n```python\n1 / 0\n```\n```text\nnothing\n```\n<!-- file: x.sh -->\n```bash\ntrue\n```\n```yaml\na: 1\n```\n"
        "<!-- file: x.py -->\n```python\nprint(3)\n```\n```console\n$ python x.py\n3\n$ echo $?\n0\n```\n",
    )


if __name__ == "__main__":
    run_page(sys.argv[1], (ROOT / sys.argv[1]).read_text(encoding="utf-8"))
