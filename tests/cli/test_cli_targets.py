"""What may be overwritten, and what is left alone."""

import pytest
from scipy import sparse

import polysparse
from checks import names_in
from command_line import run
from polysparse.files import paths
from polysparse.files.paths import locked


def test_force_overwrites(good, tmp_path):
    for output in ("out", "out.npz", "out.svmlight"):
        assert run("expand", good, tmp_path / output) == 0
        assert run("expand", good, tmp_path / output) == 2
        assert run("expand", good, tmp_path / output, "--degree", 3, "--force") == 0
    assert polysparse.load(tmp_path / "out").shape[1] == 20
    assert sparse.load_npz(tmp_path / "out.npz").shape[1] == 20


def test_only_what_polysparse_wrote_is_overwritten(good, tmp_path, capsys):
    def refuse(output, message):
        before = sorted(tmp_path.rglob("*"))
        assert run("expand", good, output, "--force") == 2
        assert message in capsys.readouterr().err
        assert sorted(tmp_path.rglob("*")) == before

    (tmp_path / "thesis").mkdir()
    assert run("expand", good, tmp_path / "thesis", "--force") == 0  # it was empty
    (tmp_path / "thesis" / "chapter").touch()
    refuse(tmp_path / "thesis", "is a directory that polysparse did not write")
    (tmp_path / "arrays").mkdir()
    (tmp_path / "arrays" / "data.npy").touch()
    refuse(tmp_path / "arrays", "is a directory that polysparse did not write")
    (tmp_path / "folder.npz").mkdir()
    refuse(tmp_path / "folder.npz", "is not a regular file")
    (tmp_path / "file").touch()
    refuse(tmp_path / "file", "is not a directory")
    (tmp_path / "link.npz").symlink_to("elsewhere.npz")
    refuse(tmp_path / "link.npz", "is a symbolic link")
    refuse(good.parent, "is or contains the input")


@pytest.mark.parametrize("output", ["out", "out.npz", "out.svm"])
def test_neighbours_of_the_output_are_left_alone(output, good, tmp_path, capsys):
    names = [f"{output}.{ending}" for ending in ("partial", "store", "old", "lock")]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").touch()
    for _ in range(2):
        assert run("expand", good, tmp_path / output, "--force") == 0
    assert names_in(tmp_path) == sorted([good.name, output, *names])
    assert all((tmp_path / name / "mine").exists() for name in names)
    reserved = tmp_path / f".{output}.polysparse-partial"
    reserved.mkdir()
    (reserved / "mine").touch()
    assert run("expand", good, tmp_path / output, "--force") == 2
    assert f"{reserved} is in the way, and was not written by polysparse" in capsys.readouterr().err
    assert (reserved / "mine").exists()


class LocksOfWindows:
    """The part of msvcrt that locks, by flock."""

    LK_NBLCK = 2

    def locking(self, descriptor, mode, n_bytes):
        fcntl = pytest.importorskip("fcntl")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None


@pytest.mark.parametrize("windows", [False, True])
def test_two_runs_cannot_write_the_same(windows, good, tmp_path, capsys, monkeypatch):
    if windows:
        monkeypatch.setattr(paths, "fcntl", None)
        monkeypatch.setattr(paths, "msvcrt", LocksOfWindows())
    with locked(tmp_path / "out"):
        assert run("expand", good, tmp_path / "out") == 1
        assert capsys.readouterr().err == f"polysparse: another run is writing {tmp_path}/out.\n"
        assert run("expand", good, tmp_path / "other") == 0
    (tmp_path / ".out.polysparse-lock").touch()  # left by a run that was killed
    assert run("expand", good, tmp_path / "out") == 0
    assert names_in(tmp_path) == ["good.svmlight", "other", "out"]
