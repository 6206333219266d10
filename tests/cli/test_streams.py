"""Standard streams that are closed, or whose disk is full."""

import errno
import io
import os
import subprocess
import sys

import pytest

from command_line import GOOD
from inside import fail_at
from polysparse import PolynomialLogisticRegression, load_model
from polysparse.cli import main


@pytest.fixture
def model(tmp_path):
    """A model of two features, and two rows of three."""
    (tmp_path / "in.svm").write_bytes(GOOD)
    PolynomialLogisticRegression().fit([[1.0, 0.0], [0.0, 1.0]], [0, 1]).save(tmp_path / "m.npz")
    return tmp_path / "m.npz"


@pytest.fixture
def predict(model, tmp_path):
    return ["predict", str(model), str(tmp_path / "in.svm")]


def test_notes_do_not_get_into_the_output(predict, monkeypatch, capsys):
    assert main(predict) == 0
    with_notes = capsys.readouterr()
    assert with_notes.err.count("note:") == 2
    monkeypatch.setattr("sys.stderr", None)
    assert main(predict) == 0
    assert capsys.readouterr().out == with_notes.out
    assert with_notes.out.count("\n") == 2
    assert sys.stderr is None


def test_a_fit_needs_no_standard_error(tmp_path, monkeypatch):
    (tmp_path / "in.svm").write_bytes(GOOD)
    monkeypatch.setattr("sys.stderr", None)
    assert main(["fit", str(tmp_path / "in.svm"), "-o", str(tmp_path / "m.npz")]) == 0
    assert load_model(tmp_path / "m.npz").n_features_in_ == 3


@pytest.mark.parametrize("command", ["predict", "plan"])
def test_a_closed_standard_output_is_an_error(command, predict, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout", None)
    assert main(predict if command == "predict" else ["plan", predict[-1]]) == 1
    assert (
        "polysparse: standard output is closed: redirect it to a file." in capsys.readouterr().err
    )


def test_a_full_standard_output_is_an_error(predict, monkeypatch, capsys):
    class Full(io.StringIO):
        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sys.stdout", Full())
    assert main(["plan", predict[-1]]) == 1
    assert "No space left on device" in capsys.readouterr().err


@pytest.mark.no_sanitizer
@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_no_file_takes_the_place_of_a_closed_stream(predict, tmp_path):
    """A file with the number of standard error would get what C libraries print there."""
    program = (
        "import os, sys\n"
        "from polysparse.cli import main\n"
        "from polysparse.files.atomic import sync\n"
        "import polysparse.files.atomic as atomic\n"
        "atomic.sync = lambda file: (os.write(1, b'x'), os.write(2, b'x'), sync(file))\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", program, *predict, "-o", tmp_path / "out.txt"]
    shell = ["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh", *command]
    assert subprocess.run(shell, check=False).returncode == 0
    assert (tmp_path / "out.txt").read_text() == "0\n1\n"


def test_an_error_of_memory_without_words_has_some(tmp_path, monkeypatch, capsys):
    (tmp_path / "in.svm").write_bytes(GOOD)
    fail_at(monkeypatch, "fill", MemoryError())
    assert main(["expand", str(tmp_path / "in.svm"), str(tmp_path / "out")]) == 1
    assert "polysparse: out of memory\n" in capsys.readouterr().err
