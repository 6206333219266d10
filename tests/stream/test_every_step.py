"""Every writer, stopped at every step: a reader sees the old output or the new one, whole.

A step writes, synchronises, renames or removes. A writer is stopped before its first step, then
before its second one, and so on until it gets through. It is killed, so that not even its clean-up
reaches the disk, or its disk is full just then. Then the output is looked at, and the same command
is given again. `KILLED` in `sample_files` does a part of this with real signals.
"""

import builtins
import errno
import io
import os
import shutil

import pytest
from scipy import sparse

from inside import forbid_exchange, lower, make_parser_once
from polysparse import cli
from polysparse.files.opening import unfinished
from polysparse.files.paths import version_of
from polysparse.files.vocabulary import Vocabulary
from sample_files import OUTPUTS, X, files_in

STEPS = "rename", "replace", "fsync", "unlink", "rmdir", "mkdir"


class Killed(BaseException):
    """The process is gone."""


class Disk:
    """Counts the steps that reach the disk, and stops at one of them."""

    def __init__(self, monkeypatch):
        self.count, self.moment, self.how = 0, None, "kill"
        for name in STEPS:
            monkeypatch.setattr(os, name, self.watched(getattr(os, name)))
        self.plain_open = open
        monkeypatch.setattr(builtins, "open", self.open)
        disk = self

        class Raw(io.FileIO):
            def write(self, data):
                if disk.is_stopped():
                    if disk.how == "kill" and disk.count == disk.moment:
                        super().write(memoryview(data)[: len(data) // 2])
                    disk.stop()
                return super().write(data)

            def truncate(self, size=None):
                disk.step()
                return super().truncate(size)

        self.raw = Raw

    def open(self, file, mode="r", buffering=-1, **options):
        if not set(mode) & set("wxa+") or "b" not in mode:
            return self.plain_open(file, mode, buffering, **options)
        raw = self.raw(file, mode)
        buffered = io.BufferedRandom if "+" in mode else io.BufferedWriter
        return raw if buffering == 0 else buffered(raw)

    def watched(self, function):
        def call(*arguments, **keywords):
            self.step()
            return None if function.__name__ == "fsync" else function(*arguments, **keywords)

        return call

    def is_stopped(self):
        self.count += 1
        if self.moment is None:
            return False
        return self.count == self.moment or (self.how == "kill" and self.count > self.moment)

    def stop(self):
        raise Killed if self.how == "kill" else OSError(errno.ENOSPC, "No space left on device")

    def step(self):
        if self.is_stopped():
            self.stop()

    def run(self, function, *arguments, moment=None, how="kill"):
        """Return "killed", or an exit code, or None if there was no such step."""
        self.count, self.moment, self.how = 0, moment, how
        try:
            code = function(*arguments)
        except Killed:
            return "killed"
        finally:
            self.moment = None
        return None if code == 0 and moment is not None and self.count < moment else code


def expand(output, degree, *options):
    command = ["expand", output.parents[1] / "in.npz", output, "--degree", degree, *options]
    return cli.main([*map(str, command), "--quiet", "--jobs", "1", "--max-memory", "1MB"])


def observe(output, degree, *options):
    return expand(output, degree, "--observed", *options)


def save(output, degree, *options):
    try:
        Vocabulary.read(output.parents[1] / f"{degree}.vocabulary").write(output)
    except OSError:
        return 1
    return 0


def content(path):
    """What a reader finds under a name."""
    path = version_of(path)
    return files_in(path) if path.exists() else None


def contents(path):
    return [content(path), content(path.with_name(f"{path.name}.vocabulary"))]


WAYS = [
    *((name, expand, ["--force"]) for name in OUTPUTS),
    *((name, expand, ["--resume"]) for name in ("out", "out.npz")),
    *((name, expand, []) for name in OUTPUTS),
    *((name, observe, ["--force"]) for name in OUTPUTS),
    ("words", save, ["--force"]),
]
NAMES = [f"{name}-{make.__name__}{''.join(options)}" for name, make, options in WAYS]


@pytest.fixture
def disk(tmp_path, monkeypatch):
    make_parser_once(monkeypatch)
    sparse.save_npz(tmp_path / "in.npz", X[:25])
    for degree in (2, 3):
        (tmp_path / "words").mkdir()
        assert observe(tmp_path / "words" / "out", degree) == 0
        (tmp_path / "words" / "out.vocabulary").rename(tmp_path / f"{degree}.vocabulary")
        shutil.rmtree(tmp_path / "words")
    lower(monkeypatch, PART_BYTES=9_000, MOVED_BYTES=9_000)
    return Disk(monkeypatch)


@pytest.mark.parametrize("how", ["kill", "full"])
@pytest.mark.parametrize(("name", "make", "options"), WAYS, ids=NAMES)
def test_stopped_at_any_step_the_old_or_the_new_is_there(name, make, options, how, disk, tmp_path):
    stop_everywhere(name, make, options, how, disk, tmp_path)


@pytest.mark.parametrize("how", ["kill", "full"])
def test_a_system_that_cannot_exchange_names(how, disk, tmp_path, monkeypatch):
    forbid_exchange(monkeypatch)
    stop_everywhere("out", expand, ["--force"], how, disk, tmp_path)


def stop_everywhere(name, make, options, how, disk, tmp_path):
    old, new, here = (tmp_path / folder / name for folder in ("old", "new", "here"))
    for output, degree in ((old, 2), (new, 3)):
        output.parent.mkdir()
        assert make(output, degree) == 0
    before = contents(old) if "--force" in options else [None, None]
    after, code, moment = contents(new), 1, 0
    while code is not None:
        moment += 1
        shutil.rmtree(here.parent, ignore_errors=True)
        here.parent.mkdir() if before[0] is None else shutil.copytree(old.parent, here.parent)
        code = disk.run(make, here, 3, *options, moment=moment, how=how)
        assert code in (None, 0, 1, "killed"), moment
        seen = contents(here)
        for found, one, other in zip(seen, before, after, strict=True):
            assert found in (one, other), moment
        if code in (None, 0):
            assert seen == after, moment
        else:
            again = options or ["--force"] * (seen[0] is not None or unfinished(here) is not None)
            assert disk.run(make, here, 3, *again) == 0, moment
            assert contents(here) == after, moment
        if how == "kill":
            assert not [p for p in here.parent.iterdir() if p.name.startswith(".")], moment
    assert moment > 5
