"""Progress: only in a terminal, phase by phase."""

import re
import subprocess
import sys

import pytest

from inside import pretend_terminal
from polysparse.cli.progress_bar import ProgressBar


@pytest.mark.no_sanitizer
def test_progress_in_a_terminal_and_none_elsewhere(good, tmp_path):
    pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
    pytest.importorskip("rich")
    import os

    def stderr_of(*options, columns=80):
        main, side = pty.openpty()
        environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
        command = [sys.executable, "-m", "polysparse", "expand", good, tmp_path / "out", "--force"]
        subprocess.run([*command, *options], stderr=side, check=True, env=environment)
        os.close(side)
        text = b""
        while chunk := _read(main):
            text += chunk
        os.close(main)
        return text

    def _read(handle):
        try:
            return os.read(handle, 65536)
        except OSError:  # the other side is closed
            return b""

    assert b"2 rows, 6 values" in stderr_of() or b"100%" in stderr_of()
    assert stderr_of("--quiet") == b""
    narrow = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", stderr_of(columns=36).decode())
    assert "100%" in narrow
    assert all(len(line) <= 36 for line in re.split(r"[\r\n]", narrow))


@pytest.mark.parametrize("quiet", [True, False])
def test_rows_of_an_earlier_run_are_done_but_no_speed(quiet, monkeypatch):
    pytest.importorskip("rich")
    pretend_terminal(monkeypatch)
    progress = ProgressBar(quiet, 100)
    progress.start(90)
    progress.advance(1, 5, 12)
    assert (progress.done, progress.bytes) == (91, 60)
    if not quiet:
        (task,) = progress.bar.tasks
        assert task.completed == 91
        assert sum(sample.completed for sample in task._progress) <= 1


def test_phases_begin_at_nothing(monkeypatch):
    pytest.importorskip("rich")
    pretend_terminal(monkeypatch)
    progress = ProgressBar(False, 100)
    progress.start(0, "counting")
    progress.advance_to(60, "7 columns")
    (task,) = progress.bar.tasks
    assert (task.completed, task.fields["text"]) == (60, "counting: 60 rows, 7 columns")
    progress.start(10)
    progress.advance(5, 20, 12)
    assert (task.completed, progress.stored, progress.bytes) == (15, 20, 240)
    assert task.fields["text"].startswith("15 rows, 20 values, ")
