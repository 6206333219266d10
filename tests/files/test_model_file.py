"""Files of models: counts, which hashed columns do not have, and the format."""

import numpy as np
import pytest

import polysparse
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import AllColumns, HashedColumns
from polysparse.files.model_file import ModelFile

BASIS = MonomialBasis(2, 2, include_bias=False)  # five columns
ALL, HASHED = AllColumns(BASIS), HashedColumns(BASIS, 5, True, 0)


def test_the_format_of_a_long_description_is_not_looked_for(tmp_path, monkeypatch):
    """A packed file of some MB may hold one of some GB."""
    read_again(tmp_path, ALL, [1] * 5)
    with pytest.raises(ValueError, match=r"is a file, not a directory .*: use polysparse.load_mod"):
        polysparse.load(tmp_path / "model.npz")
    monkeypatch.setattr("polysparse.files.archive.MOST_PEEKED", 100)
    with pytest.raises(ValueError, match=r"is a file, not a directory of polysparse expand\.$"):
        polysparse.load(tmp_path / "model.npz")


def read_again(tmp_path, columns, counts):
    given = None if counts is None else np.array(counts, np.int64)
    ModelFile("ridge", columns, np.zeros(5), np.zeros(1), given, None, {}).write(
        tmp_path / "model.npz"
    )
    return ModelFile.read(tmp_path / "model.npz").counts


def test_counts_are_read(tmp_path):
    assert read_again(tmp_path, ALL, [3, 0, 1, 2, 9]).tolist() == [3, 0, 1, 2, 9]


@pytest.mark.parametrize("counts", [[1] * 4, [1] * 6, [1, 1, -1, 1, 1]], ids=str)
def test_counts_that_cannot_be_are_refused(counts, tmp_path):
    with pytest.raises(ValueError, match="counts must be a nonnegative integer for each column"):
        read_again(tmp_path, ALL, counts)


def test_counts_may_not_be_missing(tmp_path):
    with pytest.raises(ValueError, match="it has no counts"):
        read_again(tmp_path, ALL, None)


@pytest.mark.parametrize("counts", [None, [1] * 5])
def test_hashed_columns_have_no_counts(counts, tmp_path):
    assert read_again(tmp_path, HASHED, counts) is None
