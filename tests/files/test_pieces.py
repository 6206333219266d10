"""Files in pieces: together they are the file, wherever it is cut."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from polysparse.files.opening import cut_file
from source_files import DENSE, contents, written

FLOAT64 = np.dtype(np.float64)
CUTTABLE = [name for name in contents() if not name.startswith(("in.npz", "in.mtx"))]


@pytest.mark.parametrize("block_bytes", [1, 4, 11, 10**6])
@pytest.mark.parametrize("name", CUTTABLE)
def test_the_pieces_are_the_file(tmp_path, name, block_bytes):
    cut = cut_file(written(tmp_path, name, contents()[name]), block_bytes)
    pieces = pickle.loads(pickle.dumps(cut.pieces))  # they go to other processes
    base = int(pieces[0].may_count_from_1)
    found = [piece.read(3, base, FLOAT64) for piece in reversed(pieces)][::-1]
    assert cut.dtype == FLOAT64
    np.testing.assert_array_equal(sparse.vstack([X for X, _ in found]).toarray(), DENSE)
    if cut.has_labels:
        assert np.concatenate([y for _, y in found if y is not None]).tolist() == [1, 0]


@pytest.mark.parametrize("block_bytes", [1, 4, 11, 10**6])
@pytest.mark.parametrize("name", CUTTABLE)
def test_the_extents_are_those_of_the_file(tmp_path, name, block_bytes):
    cut = cut_file(written(tmp_path, name, contents()[name]), block_bytes)
    extents = [piece.index_range() for piece in cut.pieces]
    base = int(cut.pieces[0].may_count_from_1)
    assert sum(extent.n_rows for extent in extents) == 2
    assert min(e.lowest for e in extents if e.n_rows) == base
    assert max(e.highest for e in extents) == 2 + base
    for piece, extent in zip(cut.pieces, extents, strict=True):
        assert piece.n_rows in (None, extent.n_rows)
