"""From file to file: every pair of formats, at several limits of memory, killed and resumed."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import polysparse
from checks import names_in
from csr_zoo import random_dense
from inside import fail_at, forbid_exchange, forbid_expansion, raising, set_passes
from sample_files import (
    INPUTS,
    KILLED,
    OUTPUTS,
    X,
    Y,
    files_in,
    pq,
    read,
    run,
    run_on_a_full_disk,
    write_svmlight,
)


@pytest.mark.parametrize("max_memory", ["1GiB", "40kB"])
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("name", INPUTS)
def test_every_pair_of_formats(name, output, max_memory, tmp_path):
    INPUTS[name](tmp_path / name)
    run("expand", tmp_path / name, tmp_path / output, "--degree", 3, "--max-memory", max_memory)
    expected = polysparse.expand(X, 3)
    result, labels = read(tmp_path / output, expected.shape[1])
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result.indptr, expected.indptr)
    np.testing.assert_array_equal(result.indices, expected.indices)
    np.testing.assert_array_equal(result.data, expected.data)
    if not name.endswith((".npz", ".mtx")):
        np.testing.assert_array_equal(labels, Y)
    assert names_in(tmp_path) == sorted([name, output])


@pytest.mark.parametrize("output", OUTPUTS)
def test_options_reach_the_expansion(output, tmp_path):
    write_svmlight(tmp_path / "in.svmlight")
    run(
        *("expand", tmp_path / "in.svmlight", tmp_path / output, "--degree", "2-3"),
        *("--interaction-only", "--no-bias", "--dtype", "float32", "--n-features", 12),
    )
    expected = polysparse.expand(
        sparse.csr_array((X.data.astype(np.float32), X.indices, X.indptr), shape=(120, 12)),
        (2, 3),
        interaction_only=True,
        include_bias=False,
    )
    result, _ = read(tmp_path / output, expected.shape[1])
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result.astype(np.float32).toarray(), expected.toarray())


def test_standard_input(tmp_path):
    write_svmlight(tmp_path / "in")
    with open(tmp_path / "in", "rb") as file:
        subprocess.run(
            [sys.executable, "-m", "polysparse", "expand", "-", tmp_path / "out"],
            stdin=file,
            check=True,
        )
    assert (polysparse.load(tmp_path / "out") != polysparse.expand(X)).nnz == 0


@pytest.mark.usefixtures("small_parts")
def test_a_store_is_memory_mapped_and_its_parts_are_its_rows(tmp_path):
    sparse.save_npz(tmp_path / "in.npz", X)
    run("expand", tmp_path / "in.npz", tmp_path / "out")
    whole = polysparse.load(tmp_path / "out")
    assert isinstance(whole.data, np.memmap)
    assert not whole.data.flags.writeable
    parts = list(polysparse.iter_load(tmp_path / "out"))
    assert len(parts) > 3
    assert parts[0][0].start == 0
    assert parts[-1][0].stop == 120
    joined = sparse.vstack([part for _, part, _ in parts], format="csr")
    assert (joined != whole).nnz == 0
    assert (whole != polysparse.expand(X)).nnz == 0
    assert all(labels is None for _, _, labels in parts)


def test_empty_matrices(tmp_path):
    sparse.save_npz(tmp_path / "in.npz", sparse.csr_array((0, 4)))
    for output in OUTPUTS:
        run("expand", tmp_path / "in.npz", tmp_path / output)
    assert polysparse.load(tmp_path / "out").shape == (0, 15)
    assert list(polysparse.iter_load(tmp_path / "out")) == []
    assert sparse.load_npz(tmp_path / "out.npz").shape == (0, 15)


@pytest.mark.no_sanitizer
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("name", ["out", "out.npz"])
def test_killed_at_any_moment_and_resumed_it_is_the_same(name, tmp_path):
    """Kill -9 in the middle of one step after another, until a run gets through."""
    big = sparse.csr_array(random_dense(1500, 30, 0.4))
    with open(tmp_path / "in.svmlight", "wb") as file:
        dump_svmlight_file(big, np.arange(1500) % 2, file)

    def start(moment, output, *options):
        command = [sys.executable, "-c", KILLED, str(moment), "expand"]
        options = [*options, "--degree", "3", "--max-memory", "4MiB", "--jobs", "1"]
        done = subprocess.run([*command, tmp_path / "in.svmlight", output, *options], check=False)
        return done.returncode

    whole, output = tmp_path / f"whole-{name}", tmp_path / name
    assert start(-1, whole) == 0
    chance, kills = random.Random(0), 0
    while (code := start(chance.randint(1, 40) + 8 * kills, output, "--resume")) != 0:
        assert code == -signal.SIGKILL
        kills += 1
        assert not output.exists() or files_in(output) == files_in(whole)
    assert kills > 3
    assert files_in(output) == files_in(whole)
    assert names_in(tmp_path) == sorted(["in.svmlight", whole.name, name])


@pytest.mark.usefixtures("small_parts")
def test_a_run_with_other_parameters_is_not_resumed(tmp_path, monkeypatch, capsys):
    sparse.save_npz(tmp_path / "in.npz", X)

    with monkeypatch.context() as patch:
        fail_at(patch, "finish", OSError(28, "No space left on device"))
        run("expand", tmp_path / "in.npz", tmp_path / "out", "--resume", code=1)
    assert "No space left on device" in capsys.readouterr().err
    assert (tmp_path / ".out.polysparse-partial").exists()
    run("expand", tmp_path / "in.npz", tmp_path / "out", "--degree", 3, "--resume", code=1)
    assert "was started with other parameters" in capsys.readouterr().err
    run("expand", tmp_path / "in.npz", tmp_path / "out", "--resume")
    assert (polysparse.load(tmp_path / "out") != polysparse.expand(X)).nnz == 0


@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on file size")
@pytest.mark.parametrize("limit", [0, 130, 4000])
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_full_disk_leaves_nothing_behind(output, limit, tmp_path):
    sparse.save_npz(tmp_path / "in.npz", X)
    run_on_a_full_disk(limit, "expand", tmp_path / "in.npz", tmp_path / output)
    assert names_in(tmp_path) == ["in.npz"]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("output", ["out", "out.npz"])
@pytest.mark.parametrize("step", ["replace", "pack"])
def test_a_run_that_had_only_to_be_finished_is_not_read_again(output, step, tmp_path, monkeypatch):
    sparse.save_npz(tmp_path / "in.npz", X)
    run("expand", tmp_path / "in.npz", tmp_path / f"whole-{output}")
    with monkeypatch.context() as patch:
        fail_at(patch, step, KeyboardInterrupt())
        code = 130 if (output == "out") == (step == "replace") else 0
        run("expand", tmp_path / "in.npz", tmp_path / output, "--resume", code=code)
    forbid_expansion(monkeypatch)
    run("expand", tmp_path / "in.npz", tmp_path / output, "--resume")
    run("expand", tmp_path / "in.npz", tmp_path / output, "--resume")  # nothing is left to do
    assert files_in(tmp_path / output) == files_in(tmp_path / f"whole-{output}")
    run("expand", tmp_path / "in.npz", tmp_path / output, "--resume", "--degree", 3, code=2)
    assert len(list(tmp_path.iterdir())) == 3


def test_interrupted_between_two_renames_the_old_output_comes_back(tmp_path, monkeypatch):
    sparse.save_npz(tmp_path / "in.npz", X)
    run("expand", tmp_path / "in.npz", tmp_path / "out")
    before = files_in(tmp_path / "out")
    forbid_exchange(monkeypatch)
    rename = Path.rename

    def rename_all_but_the_new(self, target):
        if self.name == ".out.polysparse-partial":
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", rename_all_but_the_new)
    run("expand", tmp_path / "in.npz", tmp_path / "out", "--degree", 3, "--force", code=130)
    assert files_in(tmp_path / "out") == before
    assert names_in(tmp_path) == [".out.polysparse-partial", "in.npz", "out"]  # to be resumed


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("progress.json", lambda old: b"{"),
        ("progress.json", lambda old: b"[]"),
        ("progress.json", lambda old: old.replace(b'"part_ends": [[', b'"part_ends": [["1", ')),
        (
            "progress.json",
            lambda old: old.replace(b'"part_ends": [[', b'"part_ends": [[999, 999], ['),
        ),
        ("progress.json", lambda old: old.replace(b'"part_ends"', b'"party_ends"')),
        ("data.npy", lambda old: old[:1000]),
        ("indices.npy", lambda old: b""),
        ("indptr.npy", lambda old: old[:128] + bytes(len(old) - 128)),
        ("labels.npy", None),
    ],
)
def test_a_damaged_beginning_is_not_resumed(file, change, tmp_path, monkeypatch, capsys):
    write_svmlight(tmp_path / "in.svm")
    command = ["expand", tmp_path / "in.svm", tmp_path / "out"]
    with monkeypatch.context() as patch:
        fail_at(patch, "seal", OSError("full"))
        run(*command, "--resume", code=1)
    damaged = tmp_path / ".out.polysparse-partial" / file
    if change is None:
        damaged.unlink()
    else:
        damaged.write_bytes(change(damaged.read_bytes()))
    capsys.readouterr()
    run(*command, "--resume", code=1)
    error = capsys.readouterr().err
    assert "is damaged: " in error
    assert "Give --force in place of --resume to start over" in error
    run(*command, "--force")
    assert (polysparse.load(tmp_path / "out") != polysparse.expand(X)).nnz == 0


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("n_rows", [0, 50])
def test_an_input_that_changes_while_it_is_read(output, n_rows, tmp_path, monkeypatch, capsys):
    sparse.save_npz(tmp_path / "in.npz", X)
    set_passes(monkeypatch, X[:n_rows])
    run("expand", tmp_path / "in.npz", tmp_path / output, code=1)
    assert "in.npz changed while it was read" in capsys.readouterr().err
    assert names_in(tmp_path) == ["in.npz"]


# Run the command line, and send it a signal when the first block has been written. The tests may
# run where signals are ignored, under nohup for example, and that is inherited.
SIGNALLED = """
import os, signal, sys
import polysparse.cli, polysparse.cli.progress_bar as progress_bar
number = int(sys.argv[1])
is_ctrl_c = number == signal.SIGINT
signal.signal(number, signal.default_int_handler if is_ctrl_c else signal.SIG_DFL)
progress_bar.ProgressBar.advance = lambda *_: os.kill(os.getpid(), number)
sys.exit(polysparse.cli.main(sys.argv[2:]))
"""


@pytest.mark.no_sanitizer
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize(
    ("name", "code", "output"),
    [("SIGINT", 130, output) for output in OUTPUTS]
    + [("SIGTERM", 143, OUTPUTS[0]), ("SIGHUP", 129, OUTPUTS[1])],
)
def test_signals_leave_nothing_behind(output, name, code, tmp_path):
    sparse.save_npz(tmp_path / "in.npz", X)
    number = str(int(getattr(signal, name)))
    command = [sys.executable, "-c", SIGNALLED, number, "expand", tmp_path / "in.npz"]
    done = subprocess.run(
        [*command, tmp_path / output], capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert done.stderr in ("polysparse: interrupted\n", "polysparse: stopped\n")
    assert names_in(tmp_path) == ["in.npz"]


def test_parquet_interrupted_within_a_write(tmp_path, monkeypatch, capsys):
    sparse.save_npz(tmp_path / "in.npz", X)
    monkeypatch.setattr(pq.ParquetWriter, "write_table", raising(KeyboardInterrupt()))
    monkeypatch.setattr(pq.ParquetWriter, "close", raising(OSError("full")))
    run("expand", tmp_path / "in.npz", tmp_path / "out.parquet", code=130)
    assert capsys.readouterr().err == "polysparse: interrupted\n"
    assert names_in(tmp_path) == ["in.npz"]
