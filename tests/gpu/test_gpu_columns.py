"""Chosen and hashed columns, and the transformers, on a GPU: the bits of the processor."""

import numpy as np
import pytest

import polysparse
from column_kinds import SPACES, X, every_space
from csr_zoo import FITTABLE, FORMATS, random_csr, wide_csr
from gpu_matrices import as_cupy, as_torch, assert_same_bits
from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialOperator,
)

pytestmark = pytest.mark.gpu

TRANSFORMERS = {
    "all": lambda: PolynomialFeatures(3),
    "observed": lambda: ObservedPolynomialFeatures(3),
    "hashed": lambda: HashedPolynomialFeatures(3, n_columns=64),
    "signless": lambda: HashedPolynomialFeatures(
        (2, 4), n_columns=2**20, alternate_sign=False, seed=9, interaction_only=True
    ),
}
every_transformer = pytest.mark.parametrize("kind", TRANSFORMERS)


@every_space
def test_columns(space):
    columns = SPACES[space]()
    assert_same_bits(
        polysparse.expand(as_cupy(X), columns=columns), polysparse.expand(X, columns=columns)
    )


@pytest.mark.parametrize("kind", ["all", "observed", "hashed"])
def test_columns_by_name(kind):
    assert_same_bits(
        polysparse.expand(as_cupy(X), 3, columns=kind), polysparse.expand(X, 3, columns=kind)
    )
    operator, wanted = (PolynomialOperator(x, 3, columns=kind) for x in (as_cupy(X), X))
    assert operator.shape == wanted.shape


def test_columns_in_pieces(monkeypatch):
    monkeypatch.setattr("polysparse.gpu.expansion.AT_A_TIME", 100)
    for space in SPACES:
        test_columns(space)


def test_no_column():
    none = np.empty(0, dtype=np.int64)
    assert_same_bits(
        polysparse.expand(as_cupy(X), columns=none), polysparse.expand(X, columns=none)
    )


def test_hashed_columns_of_a_basis_that_int64_cannot_number():
    X = wide_csr(20, 2_000_000, 9)
    columns = HashedPolynomialFeatures(5, n_columns=1000, seed=3)
    assert_same_bits(
        polysparse.expand(as_cupy(X), columns=columns), polysparse.expand(X, columns=columns)
    )


@every_transformer
@pytest.mark.parametrize("build", [build for build in FITTABLE if build not in FORMATS])
def test_transformers(kind, build):
    X, _ = build()
    here = TRANSFORMERS[kind]()
    expected = here.fit_transform(X)
    there = TRANSFORMERS[kind]().fit(as_cupy(X))
    assert_same_bits(there.transform(as_cupy(X)), expected)
    assert_same_bits(here.transform(as_cupy(X)), expected)


@every_transformer
def test_what_scikit_learn_refuses_is_refused(kind):
    X = random_csr()
    transformer = TRANSFORMERS[kind]().fit(X)
    for value, why in ((np.nan, "contains NaN"), (np.inf, "contains infinity")):
        bad = X.copy()
        bad.data[3] = value
        with pytest.raises(ValueError, match=why):
            transformer.transform(as_cupy(bad))
        with pytest.raises(ValueError, match=why):
            TRANSFORMERS[kind]().fit(as_cupy(bad))
    for wrong in (random_csr(5, 4), random_csr(5, 9), X[:0]):
        with pytest.raises(ValueError) as here:
            transformer.transform(wrong)
        with pytest.raises(ValueError) as there:
            transformer.transform(as_cupy(wrong))
        assert str(there.value) == str(here.value)


def test_dense_results():
    X = random_csr()
    poly = HashedPolynomialFeatures(n_columns=30, sparse_output=False).fit(X)
    np.testing.assert_array_equal(poly.transform(as_cupy(X)).get(), poly.transform(X))
    pytest.importorskip("torch")
    np.testing.assert_array_equal(poly.transform(as_torch(X)).cpu().numpy(), poly.transform(X))
