"""Observed and hashed columns from file to file: interrupted, killed, failed, resumed."""

import os
import random
import signal
import subprocess
import sys

import pytest

import polysparse
from checks import names_in
from inside import STEPS, fail_at, forbid_expansion, interrupt_after, lower
from polysparse.cli.progress_bar import ProgressBar
from sample_files import (
    DEGREE_3,
    KILLED,
    KINDS,
    files_in,
    refused,
    run,
    run_on_a_full_disk,
    write_svmlight,
)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("output", ["out", "out.npz"])
def test_interrupted_and_resumed_it_is_the_same(
    output, kind, tmp_path, matrix, vocabulary, monkeypatch, capsys
):
    lower(monkeypatch, CACHE_PER_THREAD=4_000)
    monkeypatch.chdir(tmp_path)
    options = KINDS[kind][0]
    run("expand", matrix, f"whole-{output}", *options)
    with monkeypatch.context() as patch:
        advance, calls = ProgressBar.advance, []

        def stop_at_the_third(self, *arguments):
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            advance(self, *arguments)

        patch.setattr(ProgressBar, "advance", stop_at_the_third)
        run("expand", matrix, output, *options, "--resume", code=130)
    left = {"out": ".out.polysparse-partial", "out.npz": ".out.npz.polysparse-store"}[output]
    assert names_in(tmp_path)[0] == left
    assert not (tmp_path / f"{output}.vocabulary").exists()
    if kind != "vocabulary":
        other = [*options[:-1], 101] if kind == "observed" else [*options, "--dtype", "float32"]
        other = ["--hashed", 63] if kind == "hashed" else other
        error = refused(capsys, 1, "expand", matrix, output, *other, "--resume")
        assert "was started with other parameters" in error
    run("expand", matrix, output, *options, "--resume")
    written = {name: files_in(tmp_path / name) for name in names_in(tmp_path)}
    assert written[output] == written[f"whole-{output}"]
    if kind == "observed":
        assert written[f"{output}.vocabulary"] == written[f"whole-{output}.vocabulary"]
    assert not [name for name in written if name.startswith(".")]
    forbid_expansion(monkeypatch)
    run("expand", matrix, output, *options, "--resume")  # nothing is left to do
    assert {name: files_in(tmp_path / name) for name in names_in(tmp_path)} == written


@pytest.mark.no_sanitizer
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("name", ["out", "out.npz"])
def test_killed_at_any_moment_and_resumed_it_is_the_same(name, tmp_path):
    write_svmlight(tmp_path / "in.svmlight")
    program = KILLED.replace("2**17", "2**14")

    def start(moment, output, *options):
        command = [sys.executable, "-c", program, str(moment), "expand", tmp_path / "in.svmlight"]
        options = [*options, "--degree", "3", "--observed", "--min-count", "3", "--jobs", "1"]
        return subprocess.run([*command, output, *options], check=False).returncode

    whole, output = tmp_path / f"whole-{name}", tmp_path / name
    vocabulary = tmp_path / f"{name}.vocabulary"
    assert start(-1, whole) == 0
    expected = files_in(whole), files_in(tmp_path / f"whole-{name}.vocabulary")
    chance, kills = random.Random(0), 0
    while (code := start(chance.randint(1, 12) + 9 * kills, output, "--resume")) != 0:
        assert code == -signal.SIGKILL
        kills += 1
        assert not output.exists() or files_in(output) == expected[0]
        assert not vocabulary.exists() or files_in(vocabulary) == expected[1]
        assert vocabulary.exists() or not output.exists()
    assert kills > 2
    assert (files_in(output), files_in(vocabulary)) == expected
    both = name, f"whole-{name}"
    assert names_in(tmp_path) == sorted([*both, *(f"{n}.vocabulary" for n in both), "in.svmlight"])


@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on file size")
@pytest.mark.parametrize(
    ("output", "limit"), [("out", 0), ("out", 1000), ("out", 10_000), ("out.parquet", 1000)]
)
def test_a_full_disk_leaves_nothing_behind(output, limit, matrix, tmp_path):
    """The vocabulary is written first. It has more than 1,000 bytes, but fewer than 10,000."""
    run_on_a_full_disk(limit, "expand", matrix, tmp_path / output, "--observed", *DEGREE_3)
    assert names_in(tmp_path) == ["in.npz"]


@pytest.mark.parametrize("step", STEPS)
def test_whatever_fails_the_old_ones_are_kept(step, matrix, tmp_path, monkeypatch):
    """What is complete but for its name is kept aside, to be resumed."""
    command = ["expand", matrix, tmp_path / "out", "--observed"]
    is_complete = list(STEPS).index(step) > list(STEPS).index("seal")
    kept = [".out.polysparse-partial"] * is_complete
    with monkeypatch.context() as patch:
        fail_at(patch, step, KeyboardInterrupt())
        run(*command, code=130)
    assert names_in(tmp_path) == [*kept, "in.npz"]
    run(*command, "--force")
    before = {name: files_in(tmp_path / name) for name in names_in(tmp_path)}
    fail_at(monkeypatch, step, OSError("full"))
    run(*command, "--degree", 3, "--force", code=1)
    assert names_in(tmp_path) == sorted([*kept, *before])
    assert {name: files_in(tmp_path / name) for name in before} == before


def test_interrupted_after_the_output_has_its_name_the_vocabulary_is_its_own(
    matrix, tmp_path, monkeypatch
):
    command = ["expand", matrix, tmp_path / "out", "--observed"]
    run(*command)
    interrupt_after(monkeypatch, "replace")
    run(*command, "--degree", 3, "--force", code=130)
    assert polysparse.load(tmp_path / "out").shape[1] == 220
    run("names", tmp_path / "out", "--columns", 219)
    assert names_in(tmp_path) == ["in.npz", "out", "out.vocabulary"]
