"""Chosen and hashed columns, and dense input, with groups and terms."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

import polysparse
import reference
from checks import DEGREES, assert_is_hashed, assert_is_restricted, bits
from csr_zoo import ZOO, random_dense
from groupings import GROUPINGS, all_terms, interleaved, labels_of, some_alone
from inside import before, lower
from looping import loop_over
from polysparse import MonomialBasis
from polysparse.columns.spaces import ChosenColumns, HashedColumns
from polysparse.engine import cpu
from polysparse.matrix.canonical import as_canonical_csr

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid|underflow)")


@dataclass(frozen=True)
class Hashed:
    """What `columns` takes: hashed columns of a basis."""

    basis: MonomialBasis
    n_columns: int
    alternate_sign: bool = True

    def column_space(self, n_features):
        assert n_features == self.basis.n_features
        return HashedColumns(self.basis, self.n_columns, self.alternate_sign, seed=3)


def grouped(dense, grouping, degree, interaction_only=False):
    """The parameters of a basis with groups."""
    labels = grouping(dense.shape[1])
    return {"degree": degree, "interaction_only": interaction_only, "groups": labels}


def with_terms(dense, grouping, degree):
    """The parameters of a basis with terms, or None if there are no groups to name."""
    labels = grouping(dense.shape[1])
    terms = all_terms(labels, degree)
    return {"groups": labels, "terms": terms} if terms else None


def places_of(tuples, labels):
    """Tuples of the places of features that are sorted by group: these are hashed."""
    own = [("own", j) if label is None else label for j, label in enumerate(labels)]
    order = sorted(range(len(labels)), key=lambda j: (own.index(own[j]), j))
    places = {j: place for place, j in enumerate(order)}
    return [tuple(places[j] for j in t) for t in tuples]


def assert_choice(X, law, how, **more):
    n = law[0].shape[1]
    for columns in (range(n), range(0, n, 3), range(max(0, n - 2), n), []):
        result = polysparse.expand(X, columns=columns, **how, **more)
        assert_is_restricted(result, law, list(columns))


def assert_hashed(X, dense, law, how, **more):
    basis = MonomialBasis(dense.shape[1], **how)
    labels = labels_of(how["groups"])
    tuples = places_of(reference.monomials(dense.shape[1], **how), labels)
    for n_columns, alternate_sign in ((7, False), (2**20, True)):
        columns = Hashed(basis, n_columns, alternate_sign)
        rows = reference.hashed(law, tuples, n_columns, alternate_sign, 3)
        result = polysparse.expand(X, columns=columns, **more)
        assert_is_hashed(result, rows, n_columns, law[0].dtype)


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@pytest.mark.parametrize("grouping", GROUPINGS)
@loop_over("build", ZOO)
def test_zoo_with_groups(build, grouping, degree, interaction_only):
    X, dense = build()
    how = grouped(dense, grouping, degree, interaction_only)
    law = reference.expand(dense, **how)
    assert_choice(X, law, how)
    assert_hashed(X, dense, law, how)


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@loop_over("build", ZOO)
def test_zoo_with_terms(build, grouping, degree):
    X, dense = build()
    if how := with_terms(dense, grouping, degree):
        law = reference.expand(dense, **how)
        assert_choice(X, law, how)
        assert_hashed(X, dense, law, how)


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("degree", [2, 3, (3, 4)], ids=str)
@loop_over("build", ZOO)
@pytest.mark.usefixtures("wide", "small_tasks")
def test_zoo_wide_and_split(build, grouping, degree):
    X, dense = build()
    highest = degree if isinstance(degree, int) else degree[1]
    for how in (grouped(dense, grouping, degree), with_terms(dense, grouping, highest)):
        if how is not None:
            law = reference.expand(dense, **how)
            assert_choice(X, law, how, n_jobs=3)
            assert_hashed(X, dense, law, how, n_jobs=3)


@pytest.mark.parametrize("terms", [None, ["g0:g1:g2", "g0 + g2"]], ids=str)
@pytest.mark.usefixtures("small_tasks")
def test_threads_plans_and_blocks_agree(terms):
    X = sparse.csr_array(random_dense(200, 30, 0.3))
    how = {"degree": 3 if terms is None else 2, "groups": interleaved(30), "terms": terms}
    basis = MonomialBasis(30, **how)
    chosen = np.arange(0, basis.n_columns, 5)
    cases = [(chosen, how), ("hashed", how), (Hashed(basis, 100), {})]
    for columns, named in cases:
        whole = polysparse.expand(X, columns=columns, n_jobs=1, **named)
        for n_jobs in (2, 4):
            again = polysparse.expand(X, columns=columns, n_jobs=n_jobs, **named)
            assert bits(again) == bits(whole)
        planned = polysparse.plan(X, columns=columns, **named)
        assert (planned.shape, planned.nnz) == (whole.shape, whole.nnz)
        blocks = list(polysparse.iter_expand(X, columns=columns, max_bytes=30_000, **named))
        assert len(blocks) > 1
        assert bits(sparse.vstack([b for _, b in blocks], format="csr")) == bits(whole)


def test_a_tuple_is_hashed_by_the_places_of_its_features():
    """Tuples are given by features; the kernels sort these by group."""
    x = np.arange(2.0, 11.0)
    basis = MonomialBasis(9, 3, groups=interleaved(9))
    space = Hashed(basis, 2**20).column_space(9)
    tuples = basis.unrank(range(basis.n_columns))
    columns, signs = cpu.hash_tuples(space, basis._as_increasing(tuples)[0])
    whole = polysparse.expand(sparse.csr_array(x[None]), 3, groups=interleaved(9))
    expected = np.zeros(2**20)
    np.add.at(expected, columns[whole.indices], signs[whole.indices] * whole.data)
    result = polysparse.expand(sparse.csr_array(x[None]), columns=Hashed(basis, 2**20))
    np.testing.assert_array_equal(result.toarray()[0], expected)


def test_more_columns_than_can_be_numbered_are_hashed():
    sizes = {"a": 2**20, "b": 2**20, "c": 2**20, "d": 2**20}
    columns = [5, 2**20 + 7, 2**21 + 9, 2**22 - 1]
    X = sparse.csr_array(([2.0, 3.0, 5.0, 7.0], columns, [0, 4]), shape=(1, 2**22))
    for terms in (None, ["a:b:c:d", "a"]):
        basis = MonomialBasis(2**22, 4 if terms is None else 2, groups=sizes, terms=terms)
        assert basis.n_columns > 2**63
        result = polysparse.expand(X, columns=Hashed(basis, 2**20, alternate_sign=False))
        total = 3 * 4 * 6 * 8 if terms is None else 1 + 2 + 2 * 3 * 5 * 7
        assert result.sum() == total


# ----------------------------------------------------------------------------------------- products


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("with_term", [False, True])
@pytest.mark.usefixtures("small_tasks")
def test_products_with_chosen_and_hashed_columns(grouping, with_term):
    dense = random_dense(40, 12, 0.5)
    how = with_terms(dense, grouping, 3) if with_term else grouped(dense, grouping, 3)
    basis = MonomialBasis(12, **how)
    few = ChosenColumns(basis, np.arange(0, basis.n_columns, 3))
    rng = np.random.default_rng(0)
    for space in (few, *(Hashed(basis, n).column_space(12) for n in (5, 1000))):
        x = as_canonical_csr(sparse.csr_array(dense)).sorted_by_group(basis)
        given = few.ranks if space is few else Hashed(basis, space.n_columns)
        expanded = polysparse.expand(dense, columns=given, **(how if space is few else {}))
        for k in ((), (3,)):
            w, r = rng.random((space.n_columns, *k)), rng.random((40, *k))
            results = []
            for n_threads in (1, 3):
                out, back = np.zeros((40, *k)), np.zeros((space.n_columns, *k))
                product = cpu.Expansion(space, x)._native  # which looks up, however few columns
                product.apply(w, out, expanded.nnz, n_threads, 20)
                product.apply_transposed(r, back, expanded.nnz, n_threads, 20)
                np.testing.assert_allclose(out, expanded @ w, rtol=1e-12, atol=1e-12)
                np.testing.assert_allclose(back, expanded.T @ r, rtol=1e-12, atol=1e-12)
                results.append((out.tobytes(), back.tobytes()))
            assert results[0] == results[1]


# -------------------------------------------------------------------------------------------- dense


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("degree", [1, 2, 3, (2, 2), (3, 4)], ids=str)
@loop_over("build", ZOO)
def test_dense_zoo(build, grouping, degree):
    dense = build()[1]
    if not np.isfinite(dense).all():
        return
    highest = degree if isinstance(degree, int) else degree[1]
    for how in (grouped(dense, grouping, degree), with_terms(dense, grouping, highest)):
        if how is None:
            continue
        expected = reference.expand(dense, **how)[0]
        result = polysparse.expand(dense, **how)
        assert isinstance(result, np.ndarray)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)
        planned = polysparse.plan(dense, **how)
        assert (planned.shape, planned.nbytes) == (result.shape, result.nbytes)
        fortran = np.full(expected.shape, np.nan, expected.dtype, order="F")
        assert polysparse.expand(np.asfortranarray(dense), out=fortran, **how) is fortran
        np.testing.assert_array_equal(fortran, expected)


@pytest.mark.parametrize("terms", [None, ["g0:g1", "g2"]], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("outputs", [1, 200, 2**18])
def test_dense_rows_in_blocks(monkeypatch, outputs, dtype, terms):
    lower(monkeypatch, DENSE_OUTPUTS=outputs, OUTPUTS_PER_THREAD=1, TASK_OUTPUTS=30)
    dense = random_dense(50, 9, 0.7, dtype=dtype)
    how = {"groups": interleaved(9), "terms": terms}
    expected = reference.expand(
        dense, groups=how["groups"], terms=terms and [("g2",), ("g0", "g1")]
    )
    for given in (dense, np.asfortranarray(dense), np.repeat(dense, 2, axis=1)[:, ::2]):
        for n_jobs in (1, 3):
            result = polysparse.expand(given, n_jobs=n_jobs, **how)
            assert result.tobytes() == expected[0].tobytes()
    limit = 7 * result[0].nbytes
    for reuse in (False, True):
        blocks = polysparse.iter_expand(dense, max_bytes=limit, reuse=reuse, **how)
        for n, (rows, block) in enumerate(blocks):
            assert rows == slice(7 * n, min(7 * n + 7, 50))
            np.testing.assert_array_equal(block, result[rows])


def test_memory_beside_a_dense_result_counts(monkeypatch):
    """One row of many columns: its indices take as much as its values."""
    lower(monkeypatch, WORKING_GRANTED=0)
    dense, how = np.ones((1, 60)), {"groups": some_alone(60)}
    planned = polysparse.plan(dense, **how)
    for expand in (polysparse.expand, polysparse.iter_expand):
        with pytest.raises((MemoryError, ValueError), match="to work in"):
            expand(dense, max_bytes=planned.nbytes + 100, **how)
        expand(dense, max_bytes=4 * planned.nbytes, **how)


# ------------------------------------------------------------------------------- X that has changed


def test_a_result_that_has_grown_since_it_was_counted_is_an_error(monkeypatch):
    """The features of one group become features of many."""
    X = sparse.csr_array((np.ones(40), np.tile(np.arange(10), 4), np.arange(0, 41, 10)), (4, 40))
    groups = {"many": 30, **{f"g{i}": 1 for i in range(10)}}
    basis = MonomialBasis(40, groups=groups)
    indices = X.indices.copy()

    def change(*_):
        X.indices[:] = indices + 30

    before(monkeypatch, "fill rows", change)
    for columns in (np.arange(0, basis.n_columns), Hashed(basis, 1000)):
        named = {} if isinstance(columns, Hashed) else {"groups": groups}
        for expand in (polysparse.expand, lambda *a, **b: list(polysparse.iter_expand(*a, **b))):
            X.indices[:] = indices
            with pytest.raises(RuntimeError, match="X has changed while it was expanded"):
                expand(X, columns=columns, **named)


@pytest.mark.parametrize("to", [10**8, -1, 0, "random"])
@pytest.mark.parametrize("terms", [None, ["g0:g1:g2", "g0 + g2"]], ids=str)
def test_columns_that_have_changed_lead_nowhere(to, terms):
    basis = MonomialBasis(30, 3 if terms is None else 2, groups=[10, 10, 10], terms=terms)
    X = sparse.csr_array(random_dense(60, 30, 0.3))
    x = as_canonical_csr(X)
    rng = np.random.default_rng(0)
    X.indices[:] = rng.integers(0, 30, X.nnz) if to == "random" else to
    chosen = ChosenColumns(basis, np.arange(0, basis.n_columns, 2))
    for space in (chosen, Hashed(basis, 64).column_space(30)):
        out = np.empty(61, np.int64), np.empty(10**5, np.int32), np.empty(10**5)
        nnz = cpu.fill(space, x, slice(0, 60), out, 2)
        assert nnz >= 0
        assert ((out[1][:nnz] >= 0) & (out[1][:nnz] < space.n_columns)).all()
        for product, n, m in (
            (cpu.Expansion(space, x)._native.apply, space.n_columns, 60),
            (cpu.Expansion(space, x)._native.apply_transposed, 60, space.n_columns),
        ):
            product(np.ones(n), np.zeros(m), 10**4, 2, 0)
