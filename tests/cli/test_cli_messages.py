"""What the command line says: one line on success, and errors in words for the owner of a file."""

import gzip
import io
import json
import pickle
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse

import polysparse
from command_line import GOOD, run
from inside import pretend_terminal
from polysparse.cli.progress_bar import ProgressBar

# ---------------------------------------------------------------------------------- on success


@pytest.mark.parametrize("output", ["out", "out.npz", "out.svmlight"])
def test_success_is_one_line_where_no_bar_is_shown(output, good, tmp_path, capsys):
    path = tmp_path / output
    assert run("expand", good, path, "--one-based") == 0
    captured = capsys.readouterr()
    files = path.iterdir() if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files)
    shown = f"{size:,} bytes" if size < 1000 else f"{size / 1000:,.1f} kB"
    expected = f"polysparse: {path}: 2 rows, 10 columns, 9 stored values, {shown}.\n"
    assert (captured.out, captured.err) == ("", expected)


def test_quiet_silences_it(good, tmp_path, capsys):
    assert run("expand", good, tmp_path / "out", "--quiet") == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_what_was_there_before_is_said_to_be(good, tmp_path, capsys):
    assert run("expand", good, tmp_path / "out", "--quiet") == 0
    assert run("expand", good, tmp_path / "out", "--one-based", "--resume") == 0
    expected = f"polysparse: {tmp_path}/out: already complete, nothing to do.\n"
    assert capsys.readouterr().err == expected


@pytest.mark.no_sanitizer
def test_in_a_terminal_the_bar_says_it(good, tmp_path):
    pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
    pytest.importorskip("rich")
    import os

    main, side = pty.openpty()
    command = [sys.executable, "-m", "polysparse", "expand", good, tmp_path / "out", "--one-based"]
    subprocess.run(command, stderr=side, check=True, env={**os.environ, "TERM": "xterm"})
    os.close(side)
    text = b""
    try:
        while chunk := os.read(main, 65536):
            text += chunk
    except OSError:  # the other side is closed
        pass
    os.close(main)
    assert b"100%" in text
    assert b"stored values" not in text


# ------------------------------------------------------------------------------------- the bar


def test_the_bar_leaves_room_for_what_a_terminal_shows_of_ctrl_c(monkeypatch):
    """In a full line, ^C would move the cursor to the next one, and leave a bar behind."""
    pytest.importorskip("rich")
    from rich.console import Console

    pretend_terminal(monkeypatch)
    progress = ProgressBar(False, 100)
    progress.start(0)
    progress.advance_to(60, "a text " * 50)
    for width in (40, 80, 133):
        monkeypatch.setenv("COLUMNS", str(width))
        console = Console(file=io.StringIO(), force_terminal=True, width=width)
        progress.bar.live.console._width = width
        console.print(progress.bar.get_renderable())
        lines = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", console.file.getvalue()).splitlines()
        assert len(lines) == 1
        assert width // 2 < len(lines[0].rstrip()) <= width - len("^C")


# -------------------------------------------------------------------------------------- errors


def error_of(capsys, *arguments, code=1):
    assert run(*arguments) == code
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize(
    "content", [gzip.compress(GOOD * 99)[:-9], b"\x1f\x8bjunk" * 9], ids=["cut off", "not gzip"]
)
def test_the_file_is_named_once(content, tmp_path, capsys):
    (tmp_path / "in.svm.gz").write_bytes(content)
    error = error_of(capsys, "plan", tmp_path / "in.svm.gz")
    assert error.count("in.svm.gz") == 1
    assert error.startswith(f"polysparse: {tmp_path}/in.svm.gz: ")


def npz_of_objects():
    buffer = io.BytesIO()
    np.savez(buffer, data=np.array([{}], dtype=object), format=b"csr")
    return buffer.getvalue()


@pytest.mark.parametrize("content", [npz_of_objects(), pickle.dumps({})], ids=["object", "pickle"])
def test_nobody_is_advised_to_load_pickles(content, tmp_path, capsys):
    (tmp_path / "in.npz").write_bytes(content)
    error = error_of(capsys, "plan", tmp_path / "in.npz")
    assert "allow_pickle" not in error
    assert "unsafe" not in error


def test_objects_in_an_npz_are_named(tmp_path, capsys):
    (tmp_path / "in.npz").write_bytes(npz_of_objects())
    error = error_of(capsys, "plan", tmp_path / "in.npz")
    assert "in.npz: holds Python objects, which are never loaded" in error


def test_members_that_are_no_arrays_are_no_riddle(tmp_path, capsys):
    path = tmp_path / "in.npz"
    sparse.save_npz(path, sparse.csr_array(np.eye(2)))
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, b"no array" if name == "format.npy" else content)
    error = error_of(capsys, "plan", path)
    assert "attribute" not in error
    assert "in.npz: its header cannot be read: the magic string is not correct" in error


@pytest.mark.parametrize("column", [2**63 - 1, 2**63, 2**64, 10**30, -(2**70)])
def test_a_column_that_cannot_be_is_named_as_it_was_given(column, capsys):
    error = error_of(capsys, "names", "--n-features", 3, f"--columns={column}", code=2)
    assert f"column {column} is not in the basis, which has columns [0, 10)" in error
    with pytest.raises(ValueError, match=f"column {column} is not in the basis"):
        polysparse.MonomialBasis(3).unrank(column)


def test_a_file_without_rows_is_named(tmp_path, capsys):
    (tmp_path / "in.svm").write_bytes(b"# nothing\n")
    assert run("plan", tmp_path / "in.svm", "--json") == 0
    captured = capsys.readouterr()
    assert captured.err == f"polysparse: note: {tmp_path}/in.svm has no rows.\n"
    assert json.loads(captured.out)["shape"][0] == 0
