"""Whole or not there: a file gets its name when all of it is on the disk."""

import errno
import os
import stat
import threading

import pytest

from checks import names_in
from polysparse.files import atomic
from polysparse.files.atomic import exchange, replacing

needs_locks = pytest.mark.skipif(atomic.fcntl is None, reason="needs flock")


def test_a_file_gets_its_name_when_it_is_complete(tmp_path):
    with replacing(tmp_path / "out") as file:
        file.write(b"new")
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out").read_bytes() == b"new"
    assert names_in(tmp_path) == ["out"]


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "out").write_bytes(b"old")

    def fail():
        with replacing(tmp_path / "out") as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (tmp_path / "out").read_bytes() == b"old"
    assert names_in(tmp_path) == ["out"]


def test_two_at_once_do_not_meet_and_the_last_one_wins(tmp_path):
    with replacing(tmp_path / "out") as first:
        with replacing(tmp_path / "out") as second:
            first.write(b"first")
            second.write(b"2")
        assert (tmp_path / "out").read_bytes() == b"2"
    assert (tmp_path / "out").read_bytes() == b"first"
    assert names_in(tmp_path) == ["out"]


def test_many_at_once_leave_one_of_them_whole(tmp_path):
    contents = [bytes([i]) * 10_000 * (i + 1) for i in range(8)]

    def write(content):
        for _ in range(10):
            with replacing(tmp_path / "out") as file:
                for start in range(0, len(content), 5_000):
                    file.write(content[start : start + 5_000])

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "out").read_bytes() in contents
    assert names_in(tmp_path) == ["out"]


@needs_locks
def test_what_a_killed_process_left_is_removed(tmp_path):
    (tmp_path / ".out.polysparse-new-dead").write_bytes(b"half")
    (tmp_path / ".other.polysparse-new-dead").write_bytes(b"half")
    with replacing(tmp_path / "out") as file:
        file.write(b"new")
    assert names_in(tmp_path) == [".other.polysparse-new-dead", "out"]


@needs_locks
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_with_the_name_of_a_leftover_is_left_there(tmp_path):
    """To open it would wait for a writer."""
    os.mkfifo(tmp_path / ".out.polysparse-new-pipe")
    with replacing(tmp_path / "out") as file:
        file.write(b"new")
    assert names_in(tmp_path) == [".out.polysparse-new-pipe", "out"]


def test_a_full_disk_is_named_with_what_was_written(tmp_path):
    def fill():
        with replacing(tmp_path / "out") as file:
            file.write(b"x" * 1_234)
            file.flush()
            raise OSError(errno.ENOSPC, "No space left on device")

    message = r"out: No space left on device\. 1,234 bytes were written, and [\d,]+ \(.*\) are free"
    with pytest.raises(OSError, match=message) as full:
        fill()
    assert full.value.errno == errno.ENOSPC
    assert names_in(tmp_path) == []


@needs_locks
def test_a_file_taken_for_a_leftover_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    plain, calls = atomic.fcntl.flock, []

    def flock(file, how):
        if not calls:  # another process is faster
            calls.append(file.name)
            os.unlink(file.name)
        plain(file, how)

    monkeypatch.setattr(atomic.fcntl, "flock", flock)
    with replacing(tmp_path / "out") as file:
        file.write(b"new")
    assert calls
    assert (tmp_path / "out").read_bytes() == b"new"
    assert names_in(tmp_path) == ["out"]


@needs_locks
def test_a_disk_that_cannot_lock(tmp_path, monkeypatch):
    def flock(file, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(atomic.fcntl, "flock", flock)
    (tmp_path / ".out.polysparse-new-other").write_bytes(b"half")
    with replacing(tmp_path / "out") as file:
        file.write(b"new")
    assert names_in(tmp_path) == [".out.polysparse-new-other", "out"]


def test_a_system_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "fcntl", None)
    with replacing(tmp_path / "out") as file:
        file.write(b"new")
    assert names_in(tmp_path) == ["out"]


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
def test_the_mode_is_that_of_any_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "out") as file:
            file.write(b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


def test_contents_are_on_the_disk_before_the_name_and_the_folder_after_it(tmp_path, monkeypatch):
    steps = []
    plain_fsync, plain_replace = os.fsync, os.replace

    def fsync(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        steps.append("folder" if is_folder else "contents")
        plain_fsync(descriptor)

    def replace(one, other):
        steps.append("name")
        plain_replace(one, other)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    with replacing(tmp_path / "out") as file:
        file.write(b"new")
    assert steps == ["contents", "name", "folder"][: 3 if os.name == "posix" else 2]


def test_exchange(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "was a").touch()
    if exchange(tmp_path / "a", tmp_path / "b"):
        assert names_in(tmp_path / "b") == ["was a"]
        assert names_in(tmp_path / "a") == []
        with pytest.raises(FileNotFoundError, match="nowhere"):
            exchange(tmp_path / "a", tmp_path / "nowhere")
    else:
        assert names_in(tmp_path / "a") == ["was a"]


def test_a_system_that_cannot_exchange(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.platform", "elsewhere")
    assert not exchange(tmp_path, tmp_path)
