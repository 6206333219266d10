"""An interrupted run keeps what it has done, and says the command that goes on from there."""

import os
import shlex
import subprocess
import sys

import pytest

import polysparse
from checks import names_in
from inside import fail_at, forbid_expansion, lower, raising, set_passes
from polysparse.cli import main
from polysparse.cli.progress_bar import ProgressBar
from sample_files import INPUTS, OUTPUTS, X, files_in, refused, run

RESUMABLE = {"out": ".out.polysparse-partial", "out.npz": ".out.npz.polysparse-store"}


@pytest.fixture
def small_blocks(monkeypatch):
    """Small data are written in several blocks and parts."""
    lower(monkeypatch, PART_BYTES=2_000, CACHE_PER_THREAD=4_000)


def interrupt(patch, error, at=3):
    """Raise an error when so many blocks have been written."""
    advance, calls = ProgressBar.advance, []

    def stop(self, *arguments):
        calls.append(1)
        if len(calls) == at:
            raise error
        advance(self, *arguments)

    patch.setattr(ProgressBar, "advance", stop)


def stopped(monkeypatch, capsys, error, code, *arguments):
    """Run a command that is interrupted, and return what it says."""
    capsys.readouterr()
    with monkeypatch.context() as patch:
        interrupt(patch, error)
        run(*arguments, code=code)
    return capsys.readouterr().err


ERRORS = [
    (KeyboardInterrupt(), 130, "interrupted"),
    (OSError(5, "Input/output error"), 1, "[Errno 5] Input/output error"),
    (MemoryError("too little"), 1, "too little"),
]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("error", "code", "text"), ERRORS, ids=[t for _, _, t in ERRORS])
@pytest.mark.parametrize("output", RESUMABLE)
def test_what_was_done_is_kept_and_the_command_goes_on(
    output, error, code, text, matrix, tmp_path, monkeypatch, capsys
):
    run("expand", matrix, tmp_path / f"whole-{output}", "--degree", 3)
    command = ["expand", matrix, tmp_path / output, "--degree", 3]
    message = stopped(monkeypatch, capsys, error, code, *command)
    assert f"{text}. Completed parts are kept; --resume continues from them: " in message
    assert message.count("\n") == 1
    assert names_in(tmp_path)[0] == RESUMABLE[output]
    program, *arguments = shlex.split(message.rpartition(": ")[2])
    assert program == "polysparse"
    assert arguments == [*map(str, command), "--resume"]
    assert main(arguments) == 0
    assert files_in(tmp_path / output) == files_in(tmp_path / f"whole-{output}")
    assert names_in(tmp_path) == sorted([output, f"whole-{output}", "in.npz"])


@pytest.mark.usefixtures("small_blocks")
def test_the_command_is_that_of_the_user(matrix, tmp_path, monkeypatch, capsys):
    """Also with an old OUT to replace, with --resume already given, and after a --."""
    output = tmp_path / "my out"
    run("expand", matrix, output)
    for options, added in (
        (["--force", "--degree", "3"], ["--force", "--degree", "3", "--resume"]),
        (["--force", "--degree=3", "--resume"], ["--force", "--degree=3", "--resume"]),
    ):
        message = stopped(
            *(monkeypatch, capsys, KeyboardInterrupt(), 130, "expand", matrix, output),
            *options,
        )
        command = shlex.split(message.rpartition(": ")[2])
        assert command == ["polysparse", "expand", str(matrix), str(output), *added]
    message = stopped(
        *(monkeypatch, capsys, KeyboardInterrupt(), 130, "expand", "--force", "--degree=4"),
        *("--", matrix, output),
    )
    command = shlex.split(message.rpartition(": ")[2])
    assert main(command[1:]) == 0
    assert polysparse.load(output).shape == polysparse.expand(X, 4).shape


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("output", RESUMABLE)
def test_a_run_that_does_not_say_what_to_do_with_it_is_refused(
    output, matrix, tmp_path, monkeypatch, capsys
):
    command = ["expand", matrix, tmp_path / output]
    stopped(monkeypatch, capsys, KeyboardInterrupt(), 130, *command)
    kept = files_in(tmp_path / RESUMABLE[output])
    error = refused(capsys, 2, *command)
    assert f"{output}: an earlier run did not finish and left" in error
    assert "give --resume to continue it, or --force to start over" in error
    assert files_in(tmp_path / RESUMABLE[output]) == kept
    run("expand", matrix, tmp_path / "other")  # another OUT begins anew
    run(*command, "--force", "--degree", 3)  # and so does --force, whatever was begun
    assert names_in(tmp_path) == sorted(["in.npz", "other", output])


@pytest.mark.parametrize("output", OUTPUTS)
def test_where_there_is_nothing_to_go_on_from_nothing_is_left(
    output, matrix, tmp_path, monkeypatch, capsys
):
    """No part is complete, or the format cannot be appended to."""
    command = ["expand", matrix, tmp_path / output]
    monkeypatch.setattr(ProgressBar, "advance", raising(KeyboardInterrupt()))
    run(*command, code=130)
    assert capsys.readouterr().err == "polysparse: interrupted\n"
    assert names_in(tmp_path) == ["in.npz"]


@pytest.mark.parametrize(
    ("files", "is_begun"),
    [
        ({}, False),
        ({"progress.json": '{"part_ends": []}', "data.npy": "begun"}, False),
        ({"progress.json": '{"part_ends": [[9, 9]]}'}, True),
        ({"progress.json": "{"}, True),
        ({"progress.json": "[]"}, True),
        ({"progress.json": "[" * 100_000}, True),
        ({"progress.json": '{"part_ends": []}', "manifest.json": "{}"}, True),
        ({"manifest.json": "{}"}, True),
    ],
    ids=range(8),
)
@pytest.mark.parametrize("output", RESUMABLE)
def test_what_a_killed_run_left_is_kept_if_a_part_of_it_is_complete(
    output, files, is_begun, matrix, tmp_path, capsys
):
    (tmp_path / RESUMABLE[output]).mkdir()
    for name, content in files.items():
        (tmp_path / RESUMABLE[output] / name).write_text(content)
    run("expand", matrix, tmp_path / output, code=2 if is_begun else 0)
    assert (tmp_path / RESUMABLE[output]).exists() == is_begun


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("output", ["out.parquet", "out.svmlight"])
def test_formats_that_cannot_be_resumed_leave_nothing(
    output, matrix, tmp_path, monkeypatch, capsys
):
    command = ["expand", matrix, tmp_path / output]
    message = stopped(monkeypatch, capsys, KeyboardInterrupt(), 130, *command)
    assert message == "polysparse: interrupted\n"
    assert names_in(tmp_path) == ["in.npz"]


@pytest.mark.usefixtures("small_blocks")
def test_nothing_is_kept_of_an_input_that_is_at_fault(matrix, tmp_path, monkeypatch, capsys):
    """It could not be read on, either."""
    set_passes(monkeypatch, X[:50])
    error = refused(capsys, 1, "expand", matrix, tmp_path / "out")
    assert error.endswith("in.npz changed while it was read.\n")
    assert names_in(tmp_path) == ["in.npz"]


# Run the command line with small parts, and interrupt it at the third block.
INTERRUPTED = """
import sys
import polysparse.cli, polysparse.cli.progress_bar as progress_bar, polysparse.thresholds as t
t.PART_BYTES, t.CACHE_PER_THREAD, calls = 2_000, 4_000, []
def advance(*_):
    calls.append(1)
    if len(calls) == 3:
        raise KeyboardInterrupt
progress_bar.ProgressBar.advance = advance
sys.exit(polysparse.cli.main(sys.argv[1:]))
"""


@pytest.mark.no_sanitizer
@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="needs /dev/stdin")
@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_nothing_is_kept_of_a_stream_which_is_gone(name, tmp_path):
    path = tmp_path / "in.svmlight"
    INPUTS["in.svmlight"](path)
    program = [sys.executable, "-c", INTERRUPTED, "expand"]
    for source, left in ((name, []), (path, [".out.polysparse-partial"])):
        command = [*program, source, tmp_path / "out", "--quiet"]
        done = subprocess.run(command, input=path.read_bytes(), capture_output=True, check=False)
        assert done.returncode == 130
        assert names_in(tmp_path) == [*left, "in.svmlight"]


def test_what_had_only_to_get_its_name_is_not_expanded_again(matrix, tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        fail_at(patch, "replace", KeyboardInterrupt())
        run("expand", matrix, tmp_path / "out", code=130)
    forbid_expansion(monkeypatch)
    run("expand", matrix, tmp_path / "out", "--resume")
    assert (polysparse.load(tmp_path / "out") != polysparse.expand(X)).nnz == 0


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("output", RESUMABLE)
def test_values_go_on_where_the_earlier_run_was(output, matrix, tmp_path, monkeypatch, capsys):
    stopped(monkeypatch, capsys, KeyboardInterrupt(), 130, "expand", matrix, tmp_path / output)
    starts, start = [], ProgressBar.start
    monkeypatch.setattr(
        ProgressBar, "start", lambda self, *a, **k: (starts.append((a, k)), start(self, *a, **k))
    )
    run("expand", matrix, tmp_path / output, "--resume")
    ((done,), keywords), expected = starts[0], polysparse.expand(X)
    assert done > 0
    assert keywords["stored"] == expected.indptr[done]
    assert f"{expected.nnz:,} stored values" in capsys.readouterr().err


def test_values_of_an_earlier_run_are_done_but_no_speed():
    progress = ProgressBar(True, 100)
    progress.start(90, stored=1000)
    progress.advance(1, 5, 12)
    assert (progress.done, progress.stored, progress.bytes) == (91, 1005, 60)
