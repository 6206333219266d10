"""Room on the disk: asked for once, before anything is written, and named when it is not there."""

import errno
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import names_in
from inside import fail_at, lower, set_free_space, wrap
from polysparse.files import paths
from sample_files import X, files_in, run, write_svmlight

NNZ = polysparse.plan(X, 2).nnz
NEEDED = {
    "out": 12 * NNZ + 4 * 121,
    "out.npz": 12 * NNZ + 4 * 121 + 1_000,  # and a piece that is moved
    "out.svmlight": 4 * NNZ,
}


@pytest.mark.parametrize("output", NEEDED)
def test_what_does_not_fit_is_refused_before_it_is_written(output, tmp_path, monkeypatch, capsys):
    lower(monkeypatch, MOVED_BYTES=1_000)
    sparse.save_npz(tmp_path / "in.npz", X)
    set_free_space(monkeypatch, NEEDED[output] - 1)
    run("expand", tmp_path / "in.npz", tmp_path / output, code=1)
    error = capsys.readouterr().err
    assert f"{tmp_path / output} would take {NEEDED[output]:,} bytes" in error
    assert f"but {NEEDED[output] - 1:,} (" in error
    assert names_in(tmp_path) == ["in.npz"]
    set_free_space(monkeypatch, NEEDED[output])
    run("expand", tmp_path / "in.npz", tmp_path / output)


def test_labels_count(tmp_path, monkeypatch, capsys):
    write_svmlight(tmp_path / "in.svm")
    set_free_space(monkeypatch, NEEDED["out"])
    run("expand", tmp_path / "in.svm", tmp_path / "out", code=1)
    assert f"would take {NEEDED['out'] + 8 * 120:,} bytes" in capsys.readouterr().err


def test_a_bound_is_made_exact_before_anything_is_refused(tmp_path, monkeypatch):
    """Stored zeros are counted when a file is planned, and not written."""
    (tmp_path / "in.svm").write_text("1 1:1 " + " ".join(f"{j}:0" for j in range(2, 60)) + "\n")
    set_free_space(monkeypatch, 200)
    run("expand", tmp_path / "in.svm", tmp_path / "out", "--no-bias")
    assert polysparse.load(tmp_path / "out").nnz == 2


def test_what_an_earlier_run_left_is_room_as_well(tmp_path, monkeypatch):
    lower(monkeypatch, PART_BYTES=5_000)
    sparse.save_npz(tmp_path / "in.npz", X)
    command = ["expand", tmp_path / "in.npz", tmp_path / "out", "--resume"]
    with monkeypatch.context() as patch:
        fail_at(patch, "seal", KeyboardInterrupt())
        run(*command, code=130)
    set_free_space(monkeypatch, 1_000)
    run(*command)


def test_a_disk_that_fills_up_meanwhile_is_named_with_its_sizes(tmp_path, monkeypatch, capsys):
    sparse.save_npz(tmp_path / "in.npz", X)
    full = OSError(errno.ENOSPC, "No space left on device")
    fail_at(monkeypatch, "seal", full)
    run("expand", tmp_path / "in.npz", tmp_path / "out", code=1)
    error = capsys.readouterr().err
    assert f"{tmp_path / 'out'}: No space left on device. " in error
    assert "bytes were written, and" in error
    assert "are free in" in error


# ------------------------------------------------------------------------------------------ .npz


def blocks_of(folder):
    """Bytes that the disk holds of a folder, without the holes of its files."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


@pytest.mark.skipif(sys.platform != "linux", reason="needs files with holes")
def test_an_npz_takes_its_room_once(tmp_path, monkeypatch):
    lower(monkeypatch, MOVED_BYTES=2**16)
    sparse.save_npz(tmp_path / "in.npz", X)
    folder, most = tmp_path / "here", []
    folder.mkdir()
    wrap(
        monkeypatch,
        "sync",
        lambda sync: lambda file: (sync(file), most.append(blocks_of(folder))),
    )
    run("expand", tmp_path / "in.npz", folder / "out.npz", "--degree", 8)
    size = (folder / "out.npz").stat().st_size
    assert size > 10 * 2**16
    assert len(most) > 10
    assert max(most) < size + 4 * 2**16


def test_an_npz_that_was_half_packed_goes_on(tmp_path, monkeypatch):
    lower(monkeypatch, MOVED_BYTES=5_000)
    sparse.save_npz(tmp_path / "in.npz", X)
    run("expand", tmp_path / "in.npz", tmp_path / "whole.npz")
    command = ["expand", tmp_path / "in.npz", tmp_path / "out.npz", "--resume"]
    calls = []

    def stopping(sync):
        def call(file):
            calls.append(file)
            if len(calls) in (3, 5):
                raise KeyboardInterrupt
            sync(file)

        return call

    wrap(monkeypatch, "sync", stopping)
    for code in (130, 130, 0):
        run(*command, code=code)
    assert files_in(tmp_path / "out.npz") == files_in(tmp_path / "whole.npz")
    assert names_in(tmp_path) == ["in.npz", "out.npz", "whole.npz"]


@pytest.mark.parametrize("damage", ["changed", "gone", "cut"])
def test_a_half_packed_npz_that_was_damaged_is_not_finished(damage, tmp_path, monkeypatch, capsys):
    lower(monkeypatch, MOVED_BYTES=5_000)
    sparse.save_npz(tmp_path / "in.npz", X)
    command = ["expand", tmp_path / "in.npz", tmp_path / "out.npz"]
    with monkeypatch.context() as patch:
        fail_at(patch, "name the archive", KeyboardInterrupt())
        run(*command, "--resume", code=130)
    archive = tmp_path / ".out.npz.polysparse-partial"
    content = bytearray(archive.read_bytes())
    content[1_000] ^= 1
    archive.unlink()
    if damage != "gone":
        archive.write_bytes(content if damage == "changed" else content[:-30])
    capsys.readouterr()
    run(*command, "--resume", code=1)
    error = capsys.readouterr().err
    assert ".out.npz.polysparse-partial is damaged: " in error
    assert "Give --force in place of --resume to start over" in error
    run(*command, "--force")
    assert (sparse.load_npz(tmp_path / "out.npz") != polysparse.expand(X)).nnz == 0


def test_an_npz_is_a_sound_archive(tmp_path):
    write_svmlight(tmp_path / "in.svm")
    run("expand", tmp_path / "in.svm", tmp_path / "out.npz")
    with zipfile.ZipFile(tmp_path / "out.npz") as archive:
        assert archive.testzip() is None
    with np.load(tmp_path / "out.npz") as members:
        assert set(members) == {
            *("indptr", "indices", "data", "labels", "format", "shape", "_is_array")
        }


def test_what_is_free_counts_asides(tmp_path, monkeypatch):
    set_free_space(monkeypatch, 100)
    assert paths.free_space(tmp_path / "out") == 100
    (tmp_path / ".out.polysparse-partial").write_bytes(b"12345")
    (tmp_path / ".out.polysparse-store").mkdir()
    (tmp_path / ".out.polysparse-store" / "data.npy").write_bytes(b"123")
    assert paths.free_space(tmp_path / "out") == 108
