"""A file as one matrix, with room for it once."""

import numpy as np
import pytest
from scipy import sparse

from csr_zoo import random_dense
from inside import read_small_blocks, set_passes
from polysparse.files.errors import FileFault
from polysparse.files.opening import open_source
from polysparse.stream.resources import Resources
from polysparse.stream.whole import bytes_of_whole, read_whole

X = sparse.csr_array(random_dense(50, 6, 0.5))
LABELS = np.arange(50) % 3


@pytest.fixture
def path(tmp_path):
    """Text with rows that hold a stored zero, which no matrix keeps."""
    lines = []
    for label, row in zip(LABELS, X.toarray(), strict=True):
        pairs = (f"{j + 1}:{float(v)!r}" for j, v in enumerate(row) if v)
        lines.append(f"{label} {' '.join(pairs)} 7:0\n")
    (tmp_path / "in.svm").write_text("".join(lines))
    return tmp_path / "in.svm"


def assert_read(source):
    """The matrix and labels are right, and canonical."""
    found, labels = read_whole(source, Resources())
    assert found.shape == (50, 7)
    assert found.nnz == X.nnz
    np.testing.assert_array_equal(found.toarray()[:, :6], X.toarray())
    np.testing.assert_array_equal(labels, LABELS)
    used = found.data.nbytes + found.indices.nbytes + found.indptr.nbytes + labels.nbytes
    assert used <= bytes_of_whole(source)


def test_in_one_piece(path):
    assert_read(open_source(str(path)))


def test_in_blocks(path, monkeypatch):
    read_small_blocks(monkeypatch)
    assert_read(open_source(str(path)))


def test_in_blocks_with_wide_indices(path, monkeypatch, wide):
    read_small_blocks(monkeypatch)
    source = open_source(str(path))
    assert_read(source)
    assert read_whole(source, Resources())[0].indices.dtype == np.int64


def test_a_matrix_without_labels_and_rows(tmp_path):
    for n_rows in (0, 5):
        sparse.save_npz(tmp_path / "in.npz", X[:n_rows])
        found, labels = read_whole(open_source(str(tmp_path / "in.npz")), Resources())
        assert labels is None
        np.testing.assert_array_equal(found.toarray(), X[:n_rows].toarray())


@pytest.mark.parametrize(
    "changed", [X[:49], sparse.vstack([X, X], format="csr"), sparse.csr_array(np.ones((49, 6)))]
)
def test_a_file_that_changes_meanwhile_is_refused(changed, tmp_path, monkeypatch):
    sparse.save_npz(tmp_path / "in.npz", X)
    source = open_source(str(tmp_path / "in.npz"))
    assert source.summary.n_rows == 50
    set_passes(monkeypatch, changed)
    with pytest.raises(FileFault, match=r"in\.npz changed while it was read"):
        read_whole(source, Resources())
