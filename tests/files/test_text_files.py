"""Text files: plain or gzip."""

import gzip

import numpy as np
import pytest

from polysparse.files.text import SvmlightError, iter_blocks, open_text
from svmlight_texts import read

TEXT = b"".join(b"%d %d:%d\n" % (i % 2, i, i * i % 9973) for i in range(20_000))


def read_path(path):
    with open_text(path) as file:
        return np.concatenate([block.data for block in iter_blocks(file, block_bytes=10_000)])


def test_gzip_is_told_by_the_first_bytes_not_by_the_name(tmp_path):
    (tmp_path / "plain.gz").write_bytes(TEXT)
    (tmp_path / "packed.txt").write_bytes(gzip.compress(TEXT))
    (tmp_path / "members").write_bytes(gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:]))
    expected = read(TEXT)["data"]
    for name in ("plain.gz", "packed.txt", "members"):
        np.testing.assert_array_equal(read_path(tmp_path / name), expected)
        np.testing.assert_array_equal(read_path(str(tmp_path / name)), expected)


@pytest.mark.parametrize("n_left", [2, 5, 15, 1000, -9, -1])
def test_a_truncated_gzip_file_is_refused(tmp_path, n_left):
    path = tmp_path / "short.gz"
    path.write_bytes(gzip.compress(TEXT)[:n_left])
    with pytest.raises(SvmlightError, match=r"^ends in the middle of its gzip stream") as e:
        read_path(path)
    assert e.value.line is None


def test_a_corrupted_gzip_file_is_refused(tmp_path):
    packed = gzip.compress(TEXT)
    path = tmp_path / "bad.gz"
    for where in (*range(2, 4), *range(12, len(packed), len(packed) // 20), len(packed) - 6):
        wrong = bytearray(packed)
        wrong[where] ^= 0xFF
        path.write_bytes(wrong)
        with pytest.raises(SvmlightError) as caught:
            read_path(path)
        assert caught.value.line is not None or "gzip" in str(caught.value)


def test_a_gzip_file_followed_by_something_else_is_refused(tmp_path):
    path = tmp_path / "more.gz"
    path.write_bytes(gzip.compress(TEXT) + b"1 1:1\n")
    with pytest.raises(SvmlightError, match=r"^is a corrupted gzip file: Not a gzipped"):
        read_path(path)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_closing_closes_the_file_underneath(tmp_path, pack):
    path = tmp_path / "file"
    path.write_bytes(pack(b"1 1:1\n"))
    file = open_text(path)
    underneath = getattr(file, "_underneath", file)
    file.close()
    assert file.closed
    assert underneath.closed


def test_a_missing_file_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        open_text(tmp_path / "nothing.svm")
    with pytest.raises(IsADirectoryError):
        open_text(tmp_path)
