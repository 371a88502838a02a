"""The command line on a terminal: one line says how far a task is, whatever the width, and Ctrl-C leaves a clean one."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time
from pathlib import Path

import pytest

CORPUS = Path(__file__).parents[2] / "testdata/demo/corpus.jsonl"
WIPE = "\r\x1b[K"


def on_terminal(command: list[str], columns: int, stop_at: str | None = None, **variables: str) -> tuple[int, str]:
    """Runs ``windrow`` on a terminal this wide, presses Ctrl-C once ``stop_at`` is seen; its exit code and what it wrote."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")}
        environment |= {"TERM": "xterm"} | variables
        os.execve(sys.executable, [sys.executable, "-m", "windrow", *command], environment)
    said, is_stopped, until = b"", False, time.monotonic() + 100
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                read = os.read(terminal, 1 << 16)
            except OSError:
                break
            if not read:
                break
            said += read
        if stop_at and not is_stopped and stop_at.encode() in said:
            is_stopped = True
            os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), said.decode().replace("\r\n", "\n")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    (tmp_path / "in.jsonl").write_bytes(CORPUS.read_bytes() * 20)
    return tmp_path


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_a_line_of_progress_fits_the_terminal_and_is_wiped(texts: Path, columns: int) -> None:
    command = ["tokenize", str(texts / "in.jsonl"), "-t", "cl100k_base", "-o", str(texts / "out"), "--num-threads", "1"]
    code, said = on_terminal(command, columns)
    assert code == 0, said
    before, *drawn = said.split(WIPE)
    assert before == ""
    *drawn, after = drawn
    assert len(drawn) > 2, said
    for line in drawn:
        assert line.startswith("tokenize  "), line
        assert "%" in line, line
        assert "\n" not in line, line
        assert len(line) < columns, line
    assert any("█" in line for line in drawn) == (columns >= 80)
    assert any("28.2 MB" in line for line in drawn) == (columns >= 40)
    # What it did comes on a line of its own.
    assert after.startswith(str(texts / "out")), after
    assert "\x1b" not in after


def test_what_was_done_stays_after_ctrl_c(texts: Path) -> None:
    command = ["tokenize", str(texts / "in.jsonl"), "-t", "cl100k_base", "-o", str(texts / "out"), "--num-threads", "1"]
    code, said = on_terminal(command, 60, stop_at="tokenize  ")
    assert code == 130, said
    done, error, hint, rest = said.split(WIPE)[-1].split("\n")
    assert done.startswith("tokenize: "), done
    assert done.endswith(" records"), done
    assert " of 28.2 MB, " in done, done
    assert error.startswith("\x1b[1m\x1b[31merror:\x1b[0m stopped"), error
    assert hint == "\x1b[36m  hint:\x1b[0m run the same command again to finish it"
    assert rest == ""


def test_warnings_stand_above_the_line_and_have_its_colours(texts: Path) -> None:
    with (texts / "in.jsonl").open("ab") as lines:
        lines.write(b'{"text": 1}\n')
    command = ["tokenize", str(texts / "in.jsonl"), "-t", "cl100k_base", "-o", str(texts / "out"), "--skip-corrupt"]
    code, said = on_terminal(command, 80)
    assert code == 0, said
    warned = [part for part in said.split(WIPE) if "warning:" in part]
    assert len(warned) == 1, said
    assert warned[0].startswith("\x1b[1m\x1b[33mwarning:\x1b[0m left out: "), warned
    _, said = on_terminal([*command, "--overwrite"], 80, NO_COLOR="1")
    assert "\x1b[33m" not in said


@pytest.mark.parametrize("variables", [{"TERM": "dumb"}, {"NO_COLOR": "1"}, {"CLICOLOR": "0"}])
def test_a_terminal_that_wants_none_has_no_colours(variables: dict[str, str]) -> None:
    code, said = on_terminal(["inspect", "nosuch"], 80, **variables)
    assert code == 1
    assert said.startswith("error: "), said
    assert on_terminal(["inspect", "nosuch"], 80)[1].startswith("\x1b[1m\x1b[31merror:\x1b[0m ")
    assert on_terminal(["inspect", "nosuch", "--color", "always"], 80, **variables)[1].startswith("\x1b[1m")
