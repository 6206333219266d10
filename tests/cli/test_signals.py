"""Signals: those that the program inherits as ignored stay ignored."""

import os
import signal
import subprocess
import sys

import pytest

import polysparse
from polysparse import cli

# Run the command line, and send it a signal when the first block has been written.
SIGNALLED = """
import os, sys
import polysparse.cli, polysparse.cli.progress_bar as progress_bar
number = int(sys.argv[1])
progress_bar.ProgressBar.advance = lambda *_: os.kill(os.getpid(), number)
sys.exit(polysparse.cli.main(sys.argv[2:]))
"""

needs_signals = pytest.mark.skipif(os.name != "posix", reason="needs signals")


@needs_signals
@pytest.mark.no_sanitizer
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_an_ignored_signal_stays_ignored(name, good, tmp_path):
    """As nohup and a shell's background jobs ask for."""
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_IGN)  # which the child inherits
    try:
        done = subprocess.run(
            [sys.executable, "-c", SIGNALLED, str(int(number)), "expand", good, tmp_path / "out"],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        signal.signal(number, before)
    assert done.returncode == 0, done.stderr
    assert polysparse.load(tmp_path / "out").shape == (2, 10)


@needs_signals
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL, lambda *_: None])
def test_handlers_are_left_as_they_were(handler, name, good, tmp_path, capsys):
    number = getattr(signal, name)
    before = signal.signal(number, handler)
    try:
        assert cli.main(["plan", str(good)]) == 0
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)
