"""Groups and terms on a GPU: the bits of the processor, and its products up to rounding."""

import numpy as np
import pytest
from scipy import sparse

import polysparse
from csr_zoo import FITTABLE, FORMATS, ZOO, random_csr, raw_csr
from gpu_checks import assert_expands_alike, assert_multiplies_alike
from gpu_matrices import as_cupy, assert_same_bits
from groupings import GROUPINGS, all_terms, contiguous, interleaved, some_alone
from inside import lower_on_gpu
from looping import loop_over
from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialLogisticRegression,
    PolynomialOperator,
    PolynomialRidge,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:(overflow|invalid|underflow)"),
]

CSR_ZOO = [build for build in ZOO if build not in FORMATS]
every_grouping = pytest.mark.parametrize("grouping", GROUPINGS)
both_bases = pytest.mark.parametrize("interaction_only", [False, True])

# Of nine features.
BASES = {
    "groups": {"degree": 3, "groups": some_alone(9)},
    "interleaved": {"degree": (2, 3), "groups": interleaved(9), "interaction_only": True},
    "terms": {"groups": interleaved(9), "terms": ["g0*g1", "g0:g1:g2"]},
    "terms of features": {"terms": [("x0", "x1"), ("x8",), ("x2", "x5", "x7")]},
}
BUCKETS = {"few buckets": 10, "many buckets": 2**16}
every_basis = pytest.mark.parametrize("basis", BASES)


def without_zeros(n_rows=60, seed=0):
    return random_csr(n_rows, 9, 0.5, seed)


# ----------------------------------------------------------------------------------- expansion


@both_bases
@pytest.mark.parametrize("degree", [1, 2, 3, (2, 3), (2, 5)], ids=str)
@every_grouping
@loop_over("build", CSR_ZOO)
def test_zoo_with_groups(build, grouping, degree, interaction_only):
    X, dense = build()
    groups = grouping(dense.shape[1])
    assert_expands_alike(X, degree=degree, interaction_only=interaction_only, groups=groups)


@pytest.mark.parametrize("degree", [1, 2, 3])
@every_grouping
@loop_over("build", CSR_ZOO)
def test_zoo_with_terms(build, grouping, degree):
    X, dense = build()
    labels = grouping(dense.shape[1])
    if terms := all_terms(labels, degree):
        assert_expands_alike(X, groups=labels, terms=terms, include_bias=degree < 3)


@every_grouping
@loop_over("build", CSR_ZOO)
def test_wide_indices(build, grouping, wide):
    X, dense = build()
    if 0 in dense.shape:
        return
    labels = grouping(dense.shape[1])
    assert_expands_alike(X, degree=3, groups=labels)
    if terms := all_terms(labels, 2):
        assert_expands_alike(X, groups=labels, terms=terms)


@every_basis
def test_rows_in_parts(basis, monkeypatch):
    lower_on_gpu(monkeypatch, PART=7)
    assert_expands_alike(without_zeros(), **BASES[basis])
    assert_expands_alike(without_zeros(), columns="hashed", **BASES[basis])
    assert_multiplies_alike(without_zeros(), **BASES[basis])


@both_bases
@pytest.mark.parametrize("degree", [2, (2, 3)], ids=str)
def test_long_rows(degree, interaction_only):
    """Rows with no, one and many values of a group, of up to 150 values in groups of 1 to 16."""
    X = sparse.csr_matrix(np.tril(random_csr(150, 150, 0.9).toarray())[::7])
    how = {"degree": degree, "interaction_only": interaction_only}
    assert_expands_alike(X, groups=contiguous(150), **how)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_of_50_000(dtype):
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.uniform(-1, 1, (1, 50_000)).astype(dtype))
    assert_expands_alike(X, degree=2, groups=[49_990, 5, 5])
    assert_expands_alike(X, groups={"a": 49_990, "b": 5, "c": 5}, terms=["a:c", "b*c"])


def test_more_terms_than_lanes():
    X = random_csr(40, 60, 0.3)
    labels = [f"g{j // 5}" for j in range(60)]
    for degree in (2, 3):
        assert_expands_alike(X, groups=labels, terms=all_terms(labels, degree))
    X = sparse.csr_matrix(X.toarray() * (np.arange(60) < 30))
    assert_expands_alike(X, groups=labels, terms=all_terms(labels, 2), include_bias=False)


def test_empty_groups_and_a_degree_above_the_number_of_groups():
    X = random_csr(30, 6)
    sizes = {"a": 0, "b": 3, "c": 0, "d": 3, "e": 0}
    assert_expands_alike(X, degree=2, groups=sizes)
    assert_expands_alike(X, degree=5, groups=sizes, interaction_only=True)
    assert_expands_alike(X, groups=sizes, terms=["a:b", "b:d", "c", "d"])
    assert_expands_alike(X, degree=2, groups={"all": 6})
    assert_expands_alike(X, degree=(2, 2), groups={"all": 6})
    assert_expands_alike(X, degree=(2, 2), groups={"all": 6}, include_bias=False)


def test_a_high_degree():
    X = random_csr(5, 6, 0.7)
    assert_expands_alike(X, degree=(11, 12), groups=["a", None, "a", "b", None, "b"])


def test_more_than_2_31_columns():
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, 2_000_000, (4, 20)), axis=1)
    X = raw_csr(rng.uniform(1, 2, 80), columns.ravel(), np.arange(0, 81, 20), (4, 2_000_000))
    sizes = {"a": 1_000_000, "b": 1, "c": 999_998, "d": 1}
    for degree in (2, 3):
        assert_expands_alike(X, degree=degree, groups=sizes)
    assert_expands_alike(X, groups=sizes, terms=["a:c", "a:b:c", "d"])


def test_columns_up_to_the_last_number():
    sizes = [2**21 - 2, 2**21 - 2, 2**21 - 2]
    n = sum(sizes)
    X = raw_csr([2.0, 3.0, 5.0, 7.0], [0, sizes[0] - 1, n - sizes[2] - 1, n - 1], [0, 4], (1, n))
    assert_expands_alike(X, degree=3, groups=sizes)
    assert polysparse.expand(as_cupy(X), degree=3, groups=sizes).indices.max() > 2**62


def test_many_groups():
    X = sparse.random(20, 200_000, 1e-4, format="csr", random_state=0)
    assert_expands_alike(X, degree=2, groups=[2] * 100_000)
    assert_expands_alike(X, degree=3, groups=[2] * 50_000 + [1] * 100_000)


def test_rows_with_one_value_in_each_group():
    rng = np.random.default_rng(0)
    levels = np.array([4, 7, 2, 5, 1, 6])
    columns = np.cumsum([0, *levels[:-1]]) + rng.integers(0, levels, (300, 6))
    X = raw_csr(rng.uniform(1, 2, 1800), columns.ravel(), np.arange(0, 1801, 6), (300, 25))
    for degree in (2, 3, (2, 4)):
        for interaction_only in (False, True):
            how = {"degree": degree, "interaction_only": interaction_only}
            assert_expands_alike(X, groups=levels.tolist(), **how)


@every_basis
def test_plans_and_blocks(basis):
    X, how = without_zeros(), BASES[basis]
    for columns in (None, "observed", "hashed"):
        there, here = (polysparse.plan(x, columns=columns, **how) for x in (as_cupy(X), X))
        assert str(there) == str(here)
        assert there.profile.largest_row(there.basis) == here.profile.largest_row(here.basis)
    whole = polysparse.expand(X, **how)
    blocks = list(polysparse.iter_expand(as_cupy(X), max_bytes=1100, **how))
    assert len(blocks) > 1
    for rows, block in blocks:
        np.testing.assert_array_equal(block.toarray().get(), whole[rows].toarray())


def test_too_many_outputs_are_refused():
    X = sparse.csr_matrix(np.ones((1, 3000)))
    groups = [1] * 2000 + [500, 500]
    with pytest.raises(MemoryError):
        polysparse.expand(as_cupy(X), degree=3, groups=groups, max_bytes=1000)
    for x in (as_cupy(X), X):
        with pytest.raises(MemoryError):
            polysparse.expand(x, degree=8, groups=groups, columns="hashed")
        sizes = {f"g{k}": 300 for k in range(10)}
        with pytest.raises(MemoryError):
            polysparse.expand(x, groups=sizes, terms=[tuple(sizes)], columns="hashed")


def test_more_features_than_tables_can_have():
    X = raw_csr([2.0, 3.0], [5, 2**40], [0, 2], (1, 2**41), index_dtype=np.int64)
    for x in (as_cupy(X), X):
        with pytest.raises(MemoryError, match=r"the tables of 2,199,023,255,552 features in 2 gr"):
            polysparse.expand(x, degree=2, groups=[2**40, 2**40], columns="hashed")


@pytest.mark.parametrize("seed", range(10))
def test_random_groups(seed):
    """Of each kind of columns: any labels, degrees, lengths of rows."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    X = random_csr(int(rng.integers(1, 80)), n, rng.uniform(0.1, 1), seed)
    labels = [None if k == 0 else f"g{k}" for k in rng.integers(0, rng.integers(1, 6), n)]
    how = {"groups": labels, "include_bias": bool(rng.integers(2))}
    named = [label for label in dict.fromkeys(labels) if label is not None]
    if named and rng.integers(2):
        how["terms"] = [tuple(named[:2]), named[-1], *all_terms(labels, 3)[:5]]
        how["terms"] = list(dict.fromkeys(map(tuple, map(np.atleast_1d, how["terms"]))))
    else:
        low = int(rng.integers(0, 4))
        how |= {"degree": (low, low + 1), "interaction_only": bool(rng.integers(2))}
    for columns in ("all", "observed", "hashed"):
        assert_expands_alike(X, columns=columns, **how)


# -------------------------------------------------------------------- chosen and hashed columns


@every_basis
@pytest.mark.parametrize("kind", ["observed", "chosen", *BUCKETS])
def test_kinds_of_columns(basis, kind):
    X, how = without_zeros(), BASES[basis]
    columns = kind
    if kind == "chosen":
        columns = np.arange(0, polysparse.plan(X, **how).shape[1], 3)
    if kind in BUCKETS:
        columns, how = HashedPolynomialFeatures(n_columns=BUCKETS[kind], seed=3, **how), {}
    assert_expands_alike(X, columns=columns, **how)
    assert_multiplies_alike(X, columns=columns, **how)


def test_hashed_columns_of_a_basis_that_int64_cannot_number():
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, 2_000_000, (4, 9)), axis=1)
    X = raw_csr(rng.uniform(1, 2, 36), columns.ravel(), np.arange(0, 37, 9), (4, 2_000_000))
    groups = {"a": 700_000, "b": 700_000, "c": 599_999, "d": 1}
    assert_expands_alike(X, degree=5, groups=groups, columns="hashed")
    assert_expands_alike(X, groups=groups, terms=[("a", "b", "c", "d")], columns="hashed")


@every_basis
@pytest.mark.parametrize(
    "transformer", [PolynomialFeatures, ObservedPolynomialFeatures, HashedPolynomialFeatures]
)
def test_transformers(transformer, basis):
    X = without_zeros()
    here = transformer(**BASES[basis]).fit(X)
    expected = here.transform(X)
    assert_same_bits(here.transform(as_cupy(X)), expected)
    there = transformer(**BASES[basis]).fit(as_cupy(X))
    assert_same_bits(there.transform(as_cupy(X)), expected)
    assert there.get_feature_names_out().tolist() == here.get_feature_names_out().tolist()


# ----------------------------------------------------------------------------------- products


@both_bases
@pytest.mark.parametrize("degree", [1, 2, 3], ids=str)
@every_grouping
@loop_over("build", [build for build in FITTABLE if build not in FORMATS])
def test_products_with_groups(build, grouping, degree, interaction_only):
    dense = build()[1]
    how = {"degree": degree, "interaction_only": interaction_only}
    X = sparse.csr_matrix(dense)
    assert_multiplies_alike(X, ks=(1, 5), groups=grouping(X.shape[1]), **how)


@pytest.mark.parametrize("degree", [1, 2, 3])
@every_grouping
@loop_over("build", [build for build in FITTABLE if build not in FORMATS])
def test_products_with_terms(build, grouping, degree):
    dense = build()[1]
    labels = grouping(dense.shape[1])
    if terms := all_terms(labels, degree):
        assert_multiplies_alike(sparse.csr_matrix(dense), ks=(1, 5), groups=labels, terms=terms)


@every_basis
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inner_products_and_norms(basis, dtype):
    own, other = without_zeros().astype(dtype), without_zeros(23, seed=4).astype(dtype)
    here, there = (PolynomialOperator(x, **BASES[basis]) for x in (own, as_cupy(own)))
    np.testing.assert_array_equal(there.gram().get(), here.gram())
    np.testing.assert_array_equal(there.gram(as_cupy(other)).get(), here.gram(other))
    np.testing.assert_array_equal(there.row_norms().get(), here.row_norms())
    close = {"rtol": 1e-4 if dtype == np.float32 else 1e-11}
    np.testing.assert_allclose(there.column_norms().get(), here.column_norms(), **close)


@every_basis
@pytest.mark.parametrize("kind", ["observed", "hashed"])
def test_inner_products_and_norms_of_other_columns(basis, kind):
    X = abs(without_zeros())
    how = BASES[basis] | {"columns": kind}
    if kind == "hashed":
        how = {"columns": HashedPolynomialFeatures(n_columns=50, **BASES[basis])}
    here, there = (PolynomialOperator(x, **how) for x in (X, as_cupy(X)))
    close = {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(there.gram().get(), here.gram(), **close)
    np.testing.assert_allclose(there.row_norms().get(), here.row_norms(), **close)
    np.testing.assert_allclose(there.column_norms().get(), here.column_norms(), **close)


@every_basis
def test_what_an_operator_builds(basis):
    X = without_zeros()
    operator, whole = (
        PolynomialOperator(as_cupy(X), **BASES[basis]),
        polysparse.expand(X, **BASES[basis]),
    )
    assert_same_bits(operator.tocsr(), whole)
    assert_same_bits(operator.rows(slice(5, 20)), whole[5:20])
    np.testing.assert_array_equal(operator.toarray().get(), whole.toarray())


# ------------------------------------------------------------------------------------- models


@every_basis
@pytest.mark.parametrize("columns", ["all", "observed", "hashed"])
def test_models(basis, columns):
    X = without_zeros(300)
    y = X.toarray() @ np.arange(9) + (X[:, [0]].toarray() * X[:, [1]].toarray()).ravel()
    how = BASES[basis] | {"columns": columns, "tol": 1e-10}
    if columns == "hashed":
        how = {"columns": HashedPolynomialFeatures(n_columns=40, **BASES[basis]), "tol": 1e-10}
    here, there = (PolynomialRidge(**how).fit(x, y) for x in (X, as_cupy(X)))
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-8)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-4)
    np.testing.assert_array_equal(there.column_counts_, here.column_counts_)
    np.testing.assert_allclose(there.predict(as_cupy(X)), there.predict(X), rtol=1e-9, atol=1e-9)
    here, there = (
        PolynomialLogisticRegression(**how).fit(x, y > np.median(y)) for x in (X, as_cupy(X))
    )
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-8)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-3)
    of_both = [there.predict_proba(x) for x in (as_cupy(X), X)]
    np.testing.assert_allclose(*of_both, rtol=1e-8, atol=1e-8)


def test_importance_needs_rows_in_main_memory():
    X = without_zeros(300)
    y = X.toarray() @ np.arange(9)
    here, there = (PolynomialRidge(groups=some_alone(9)).fit(x, y) for x in (X, as_cupy(X)))
    with pytest.raises(ValueError, match=r"and not on a GPU\. Pass X"):
        there.importance()
    found, expected = there.importance(X), here.importance()
    np.testing.assert_allclose(found["variance"], expected["variance"], rtol=1e-2, atol=1e-2)
