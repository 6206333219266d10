"""Operators with groups and terms: products, inner products and norms, over the zoo."""

import numpy as np
import pytest
from scipy import sparse

import polysparse
import reference
from checks import DEGREES, bits
from csr_zoo import FITTABLE, ZOO, random_csr, random_dense
from groupings import GROUPINGS, all_terms, contiguous, interleaved, some_alone
from inside import lower
from looping import loop_over
from polysparse import PolynomialOperator
from products import (
    assert_close,
    assert_multiplies_like,
    built,
    law_of,
    product_bits,
    weights,
)

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid|underflow)")

both_bases = pytest.mark.parametrize("interaction_only", [False, True])
every_grouping = pytest.mark.parametrize("grouping", GROUPINGS)


def one_hot(n_rows, levels, seed=0):
    """Rows with one value in each of some groups, given by their numbers of levels."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *levels[:-1]])
    columns = starts + rng.integers(0, levels, (n_rows, len(levels)))
    dense = np.zeros((n_rows, sum(levels)))
    np.put_along_axis(dense, columns, rng.uniform(0.5, 1.5, columns.shape), axis=1)
    return sparse.csr_array(dense)


def with_groups(n_features, grouping, degree, interaction_only=False):
    return {
        "degree": degree,
        "interaction_only": interaction_only,
        "groups": grouping(n_features),
    }


def with_terms(n_features, grouping, degree):
    """Parameters, or None if no group has a label."""
    labels = grouping(n_features)
    terms = all_terms(labels, degree)
    return {"groups": labels, "terms": terms} if terms else None


def assert_gram_is(operator, A, size):
    expected, sizes = (A @ A.T).toarray(), (size @ size.T).toarray()
    assert_close(operator.gram(), expected, sizes, operator.dtype)


def assert_norms_are(operator, A):
    close = {"rtol": 1e-5 if operator.dtype == np.float32 else 1e-11}
    close["atol"] = np.finfo(operator.dtype).tiny
    dense = A.toarray()
    np.testing.assert_allclose(operator.row_norms(), np.linalg.norm(dense, axis=1), **close)
    np.testing.assert_allclose(operator.column_norms(), np.linalg.norm(dense, axis=0), **close)


# ------------------------------------------------------------------------------------- the zoo


@both_bases
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@every_grouping
@loop_over("build", ZOO)
def test_products_with_groups_are_those_of_the_law(build, grouping, degree, interaction_only):
    X, dense = build()
    how = with_groups(dense.shape[1], grouping, degree, interaction_only)
    law = law_of(reference.expand(dense, **how))
    assert_multiplies_like(PolynomialOperator(X, **how), law, ks=(1, 3, 10))


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@every_grouping
@loop_over("build", ZOO)
def test_products_with_terms_are_those_of_the_law(build, grouping, degree):
    X, dense = build()
    if how := with_terms(dense.shape[1], grouping, degree):
        law = law_of(reference.expand(dense, **how))
        assert_multiplies_like(PolynomialOperator(X, **how), law, ks=(1, 3, 10))


@both_bases
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@every_grouping
@loop_over("build", FITTABLE)
def test_inner_products_and_norms_with_groups(build, grouping, degree, interaction_only):
    X, dense = build()
    how = with_groups(dense.shape[1], grouping, degree, interaction_only)
    operator, law = PolynomialOperator(X, **how), law_of(reference.expand(dense, **how))
    assert_gram_is(operator, *law)
    assert operator.gram(X).tobytes() == operator.gram().tobytes()
    assert_norms_are(operator, law[0])


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@every_grouping
@loop_over("build", FITTABLE)
def test_inner_products_and_norms_with_terms(build, grouping, degree):
    X, dense = build()
    if how := with_terms(dense.shape[1], grouping, degree):
        operator, law = PolynomialOperator(X, **how), law_of(reference.expand(dense, **how))
        assert_gram_is(operator, *law)
        assert operator.gram(X).tobytes() == operator.gram().tobytes()
        assert_norms_are(operator, law[0])


@pytest.mark.parametrize("terms", [None, ["g0*g1", "g2"]])
def test_rows_and_the_whole_are_those_of_expand(terms):
    X = random_csr(20, 9, 0.5)
    how = {"groups": interleaved(9), "terms": terms}
    operator, whole = PolynomialOperator(X, **how), polysparse.expand(X, **how)
    assert bits(operator.tocsr()) == bits(whole)
    assert bits(operator.rows(slice(3, 9))) == bits(whole[3:9])
    assert operator.toarray().tobytes() == whole.toarray().tobytes()
    assert "3 groups" in repr(operator)
    assert ("4 terms" in repr(operator)) == (terms is not None)


def test_dense_input_and_names_of_a_data_frame():
    pd = pytest.importorskip("pandas")
    dense = random_dense(20, 3, 0.7)
    frame = pd.DataFrame(dense, columns=["a", "b", "c"])
    operator = PolynomialOperator(frame, terms=["a:c", "b"])
    expected = np.column_stack([np.ones(20), dense[:, 1], dense[:, 0] * dense[:, 2]])
    np.testing.assert_array_equal(operator.toarray(), expected)
    np.testing.assert_allclose(operator @ np.ones(3), expected.sum(axis=1))


# --------------------------------------------------------------- one value in each group, threads


@both_bases
@pytest.mark.parametrize("degree", [2, 3, (2, 4)], ids=str)
def test_rows_with_one_value_in_each_group(degree, interaction_only):
    levels = [4, 7, 2, 5, 3, 6]
    X = one_hot(50, levels)
    how = {"degree": degree, "interaction_only": interaction_only, "groups": levels}
    operator, expansion = PolynomialOperator(X, **how), built(X, **how)
    assert_multiplies_like(operator, expansion)
    assert_gram_is(operator, *expansion)
    # As interactions without groups, which have columns that never occur besides.
    plain = polysparse.expand(X, degree, interaction_only=True)
    np.testing.assert_allclose(operator.row_norms(), sparse.linalg.norm(plain, axis=1))


KINDS = {
    "one value each": lambda: (one_hot(300, [5] * 12), {"groups": [5] * 12, "degree": 3}),
    "several": lambda: (random_csr(80, 30, 0.5), {"groups": contiguous(30), "degree": 3}),
    "powers": lambda: (random_csr(80, 20, 0.5), {"groups": some_alone(20), "degree": (2, 4)}),
    "terms": lambda: (
        random_csr(200, 30, 0.5),
        {"groups": contiguous(30), "terms": all_terms(contiguous(30), 3)},
    ),
    "one long row": lambda: (random_csr(1, 200, 0.9), {"groups": interleaved(200), "degree": 3}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", [0, 50, 1000])
def test_the_same_bits_for_any_number_of_threads(kind, task, monkeypatch):
    lower(monkeypatch, TASK_OUTPUTS=task, OUTPUTS_PER_THREAD=1)
    X, how = KINDS[kind]()
    operators = [PolynomialOperator(X, **how, n_jobs=n) for n in (1, 2, 3, 8)]
    assert_multiplies_like(operators[2], built(X, **how), ks=(1, 3))
    first, *others = (
        [*product_bits(each), each.gram().tobytes(), each.row_norms().tobytes()]
        for each in operators
    )
    assert all(other == first for other in others)


@pytest.mark.parametrize("kind", KINDS)
def test_huge_and_tiny_values(kind):
    """A product of leads may overflow, or be too small, where the whole is neither."""
    X, how = KINDS[kind]()
    X = X[:20].copy()
    X.data *= 10.0 ** np.random.default_rng(3).choice([-160, -90, 0, 90, 140], X.nnz)
    for r in range(X.shape[0]):
        row = X[[r]]
        expected = polysparse.expand(row, **how).toarray()[0]
        result = PolynomialOperator(row, **how).T @ np.ones(1)
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("terms", [None, ["a:b:c"]])
@pytest.mark.parametrize("values", [(1e200, 1e200, 1e-200), (1e-200, 1e-200, 1e200)])
def test_a_triple_whose_first_two_values_overflow(values, terms):
    X = np.zeros((1, 6))
    X[0, 1::2] = values
    how = {"groups": {"a": 2, "b": 2, "c": 2}, "include_bias": False}
    how |= {"terms": terms} if terms else {"degree": (3, 3)}
    operator = PolynomialOperator(X, **how)
    expected = values[0] * (values[1] * values[2])
    assert (operator @ np.ones(8)).tolist() == [expected]
    assert (operator.T @ np.ones(1)).tolist() == [0.0] * 7 + [expected]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_coefficient_that_is_not_finite_reaches_only_rows_that_have_its_column(kind, value):
    X, how = KINDS[kind]()
    A = polysparse.expand(X, **how)
    operator = PolynomialOperator(X, **how)
    for column in np.unique(A.indices)[:: max(1, A.nnz // 20)]:
        w = weights(A.shape[1], 1)[:, 0]
        w[column] = value
        has_not = A[:, [column]].toarray()[:, 0] == 0
        np.testing.assert_array_equal(np.isfinite(operator @ w), has_not)


@pytest.mark.parametrize("terms", [None, ["g0:g1", "g0:g1:g2"]])
def test_infinite_values_stay_in_their_inner_products(terms):
    """0 times infinity is left out, as what is not stored is."""
    dense = random_dense(20, 9, 0.5)
    dense[4, 2] = np.inf
    dense[5, 3] = 1e200
    how = {"groups": interleaved(9), "terms": terms}
    operator = PolynomialOperator(dense, **how)
    A = polysparse.expand(sparse.csr_array(dense), **how)
    with np.errstate(all="ignore"):
        expected = (A @ A.T).toarray()
    result = operator.gram()
    np.testing.assert_array_equal(np.isfinite(result), np.isfinite(expected))
    finite = np.isfinite(expected)
    np.testing.assert_allclose(result[finite], expected[finite], rtol=1e-9, atol=1e-9)
    assert 0 < finite.mean() < 1
    assert operator.gram(dense[:3]).tobytes() == np.ascontiguousarray(result[:, :3]).tobytes()


# ----------------------------------------------------------------------------------- refusals


def test_more_values_in_a_group_than_could_be_multiplied_without_groups():
    """Without groups, a row would have C(1000, 10) outputs: more than can be counted."""
    X = sparse.csr_array(np.ones((2, 1000)))
    groups = {"many": 991} | {f"g{j}": 1 for j in range(9)}
    how = {"groups": groups, "degree": (10, 10), "interaction_only": True, "include_bias": False}
    for terms in (None, [tuple(groups)]):
        operator = PolynomialOperator(X, **how, terms=terms, n_jobs=2)
        assert operator.shape == (2, 991)
        np.testing.assert_array_equal(operator @ np.ones(991), [991, 991])
        np.testing.assert_array_equal(operator.T @ np.ones(2), np.full(991, 2.0))


def test_other_groups_than_those_of_columns_are_refused():
    poly = polysparse.PolynomialFeatures(2).fit(np.ones((2, 4)))
    with pytest.raises(ValueError, match=r"groups=\[2, 2\] contradicts columns"):
        PolynomialOperator(np.ones((2, 4)), groups=[2, 2], columns=poly)


@pytest.mark.parametrize("how", [{"degree": 2}, {"degree": (2, 3)}, {"terms": ["g0:g1", "g2"]}])
@pytest.mark.parametrize("interaction_only", [False, True])
def test_alike_rows_have_the_bits_of_any_others(how, interaction_only):
    levels = [3, 5, 1, 4, 2, 6, 3, 2, 7]
    X = one_hot(70, levels)
    other = X[:1, :].copy()
    other.indices[0] = (other.indices[0] + 1) % levels[0]
    twice = sparse.vstack([X, X[:1, :] + other], format="csr")  # its last row has two of a group
    groups = {f"g{i}": n for i, n in enumerate(levels)}
    how = {**how, "groups": groups, "interaction_only": interaction_only and "terms" not in how}
    alike, mixed = (PolynomialOperator(each, **how) for each in (X, twice))
    assert alike._x.row_groups == tuple(range(9))
    assert mixed._x.row_groups == ()
    v = weights(alike.shape[1], 1)[:, 0]
    assert (alike @ v).tobytes() == (mixed @ v)[:-1].tobytes()
    expanded = polysparse.expand(X, **how)
    assert_multiplies_like(alike, (expanded, abs(expanded)))
