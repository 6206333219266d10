"""Text whose lines are longer than memory allows is refused by the number of the line."""

import gzip
import io

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

from inside import lower, set_available_memory
from polysparse.files.errors import FileFault
from polysparse.files.opening import open_source
from polysparse.files.text import SvmlightError, iter_blocks, summarize
from source_files import written

HEAD = b"1 1:1\n\n# comment\n"


def line_of(n_bytes):
    """A row of so many bytes, without its newline."""
    return b"1 1:1".ljust(n_bytes)


@pytest.mark.parametrize("end", [b"", b"\n", b"\n1 1:1\n"])
@pytest.mark.parametrize("block_bytes", [1, 7, 64, 100])
def test_a_line_of_the_longest_length_is_read(block_bytes, end):
    options = {"block_bytes": block_bytes, "line_bytes": 100}
    text = HEAD + line_of(100) + end
    n_rows = sum(len(b.indptr) - 1 for b in iter_blocks(io.BytesIO(text), **options))
    assert n_rows == summarize(io.BytesIO(text), **options).profile.n_rows == 2 + (len(end) > 1)


@pytest.mark.parametrize("end", [b"", b"\n1 1:1\n"])
@pytest.mark.parametrize("block_bytes", [1, 7, 64, 100])
@pytest.mark.parametrize("n_bytes", [102, 5000])
def test_a_longer_one_is_refused_by_its_number(n_bytes, block_bytes, end):
    text = HEAD + line_of(n_bytes) + end
    for read in (lambda *a, **k: list(iter_blocks(*a, **k)), summarize):
        with pytest.raises(SvmlightError, match="has more than 100 bytes") as raised:
            read(io.BytesIO(text), block_bytes=block_bytes, line_bytes=100)
        assert raised.value.line == 4


def test_skipped_lines_are_counted_too():
    text = b"1 1:1\n" * 50 + line_of(500)
    with pytest.raises(SvmlightError) as raised:
        list(iter_blocks(io.BytesIO(text), block_bytes=20, line_bytes=100, skip_rows=50))
    assert raised.value.line == 51


def test_no_more_is_read_than_the_longest_line():
    class Endless(io.RawIOBase):
        n_bytes = 0

        def readinto(self, room):
            room[:] = b"1" * len(room)
            self.n_bytes += len(room)
            return len(room)

    file = Endless()
    with pytest.raises(SvmlightError, match="line 1: has more than 1,000 bytes"):
        summarize(file, block_bytes=64, line_bytes=1000)
    assert file.n_bytes <= 1001


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_source_names_the_file_the_line_and_the_way_out(pack, tmp_path):
    path = written(tmp_path, "in.svm", pack(HEAD + line_of(10**6)))
    source = open_source(str(path), line_bytes=2**16)
    message = r"in.svm: line 4: has more than 65,536 bytes: a larger max_memory allows longer lines"
    with pytest.raises(FileFault, match=message):
        _ = source.summary


HEADER = b"%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"%".ljust(10**6), 1),
        (HEADER + b"%".ljust(10**6, b"x"), 2),
        (HEADER + b"2 2 2\n1 1 1\n" + b"2 2 1".ljust(10**6), 4),
    ],
    ids=["header", "comment", "values"],
)
@pytest.mark.parametrize("name", ["in.mtx", "in.mtx.gz"])
def test_matrix_market_has_no_longer_lines_either(name, text, line, tmp_path):
    content = gzip.compress(text) if name.endswith(".gz") else text
    source = open_source(str(written(tmp_path, name, content)), line_bytes=2**16)
    with pytest.raises(FileFault, match=rf"{name}: line {line}: has more than 65,536 bytes"):
        _ = source.summary


class TestReadWhole:
    """Formats that can only be read whole say what they need before they are read."""

    MATRIX = sparse.csr_array(np.ones((300, 1000)))

    def test_npz_that_unpacks_to_more_than_the_limit(self, tmp_path):
        path = tmp_path / "in.npz"
        sparse.save_npz(path, self.MATRIX, compressed=True)
        assert path.stat().st_size < 100_000
        self.assert_refused(path)

    def test_matrix_market_that_says_it_has_more(self, tmp_path):
        self.assert_refused(written(tmp_path, "in.mtx", HEADER + b"9 9 999999999\n1 1 1\n"))

    def test_a_symmetric_one_counts_twice(self, tmp_path):
        mmwrite(tmp_path / "in.mtx", self.MATRIX[:, :300], symmetry="general")
        mmwrite(tmp_path / "half.mtx", self.MATRIX[:, :300], symmetry="symmetric")
        whole, half = (
            open_source(str(tmp_path / name)).resident_bytes for name in ("in.mtx", "half.mtx")
        )
        assert whole <= half <= 1.02 * whole

    def assert_refused(self, path):
        source = open_source(str(path), max_memory=2**20)
        with pytest.raises(MemoryError, match="can only be read as a whole, which needs") as raised:
            _ = source.summary
        assert str(raised.value).startswith("max_memory=1048576 (1.0 MB) is too little: ")
        assert str(path) in str(raised.value)

    def test_more_than_the_machine_has(self, tmp_path, monkeypatch):
        path = tmp_path / "in.npz"
        sparse.save_npz(path, self.MATRIX)
        set_available_memory(monkeypatch, 10**6)
        lower(monkeypatch, ALWAYS_GRANTED=0)
        message = "which can only be read as a whole, would need 10.8 MB; 1.0 MB are available"
        with pytest.raises(MemoryError, match=message):
            _ = open_source(str(path)).summary

    def test_what_it_needs_is_enough(self, tmp_path):
        path = tmp_path / "in.npz"
        sparse.save_npz(path, self.MATRIX)
        needed = open_source(str(path)).resident_bytes
        assert needed > self.MATRIX.data.nbytes
        source = open_source(str(path), max_memory=needed)
        assert source.summary.n_rows == 300

    def test_a_small_one_is_read_whatever_the_limit(self, tmp_path):
        path = tmp_path / "in.npz"
        sparse.save_npz(path, self.MATRIX[:3])
        assert open_source(str(path), max_memory=1).summary.n_rows == 3
