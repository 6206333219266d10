"""Replacing a directory: in one step, recovered where there were two, and no failure afterwards."""

import os
import shutil

import pytest
from scipy import sparse

import polysparse
from checks import names_in
from inside import forbid_exchange, interrupt_after
from polysparse.files.atomic import exchange
from sample_files import X, files_in, run


@pytest.fixture
def command(tmp_path):
    sparse.save_npz(tmp_path / "in.npz", X)
    run("expand", tmp_path / "in.npz", tmp_path / "out", "--quiet")
    return ["expand", tmp_path / "in.npz", tmp_path / "out", "--degree", 3, "--quiet"]


@pytest.fixture
def nameless(command, tmp_path):
    """What is left by a kill between the two renames of a system that cannot exchange names."""
    (tmp_path / "out").rename(tmp_path / ".out.polysparse-old")
    return tmp_path / "out"


def test_there_is_no_moment_without_a_directory(command, tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    if not exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("names cannot be exchanged here")
    seen, rename = [], os.rename

    def watched(one, other):
        seen.append((tmp_path / "out" / "manifest.json").exists())
        rename(one, other)

    monkeypatch.setattr(os, "rename", watched)
    run(*command, "--force")
    assert seen
    assert all(seen)
    assert polysparse.load(tmp_path / "out").shape[1] == 220


def test_load_finds_a_directory_that_lost_its_name(nameless):
    expected = polysparse.expand(X)
    assert (polysparse.load(nameless) != expected).nnz == 0
    assert sum(part.nnz for _, part, _ in polysparse.iter_load(nameless)) == expected.nnz
    assert not nameless.exists()  # reading changes nothing
    run("names", nameless, "--columns", 3)


def test_a_directory_that_lost_its_name_is_not_overwritten_unasked(nameless, command, capsys):
    before = files_in(nameless.parent / ".out.polysparse-old")
    run(*command, code=2)
    assert "out already exists: give --force" in capsys.readouterr().err
    assert files_in(nameless) == before
    assert names_in(nameless.parent) == ["in.npz", "out"]


def test_a_directory_that_lost_its_name_is_replaced_if_asked(nameless, command):
    run(*command, "--force")
    assert polysparse.load(nameless).shape[1] == 220
    assert names_in(nameless.parent) == ["in.npz", "out"]


def test_a_directory_that_was_removed_does_not_come_back(command, tmp_path, monkeypatch):
    """What was replaced, and could not be removed, is no version of OUT any more."""
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        run(*command, "--force")
    rest = [name for name in names_in(tmp_path) if name.startswith(".")]
    assert rest == [".out.polysparse-replaced"]
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(FileNotFoundError, match="is not a directory of polysparse expand"):
        polysparse.load(tmp_path / "out")
    run(*command)
    assert names_in(tmp_path) == ["in.npz", "out"]


@pytest.mark.parametrize("exchanges", [True, False])
def test_what_cannot_be_removed_is_no_failure(exchanges, command, tmp_path, monkeypatch):
    if not exchanges:
        forbid_exchange(monkeypatch)

    def rmtree(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    run(*command, "--force")
    assert polysparse.load(tmp_path / "out").shape[1] == 220


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
def test_a_read_only_directory_is_replaced_and_removed(command, tmp_path):
    (tmp_path / "out").chmod(0o555)
    run(*command, "--force")
    assert polysparse.load(tmp_path / "out").shape[1] == 220
    assert names_in(tmp_path) == ["in.npz", "out"]


def test_interrupted_just_after_the_exchange_the_vocabulary_is_that_of_the_output(
    command, tmp_path, monkeypatch
):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    if not exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("names cannot be exchanged here")
    run(*command[:3], "--observed", "--force", "--quiet")
    interrupt_after(monkeypatch, "exchange")
    run(*command, "--observed", "--force", code=130)
    run("names", tmp_path / "out", "--columns", 219)
