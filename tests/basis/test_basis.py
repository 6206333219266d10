"""The bijection, both ways; the paper's mappings; names and powers."""

import pickle
from itertools import combinations, combinations_with_replacement
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import PolynomialFeatures as SklearnPolynomialFeatures

import reference
from polysparse import MonomialBasis

BASES = [
    pytest.param(n, degree, interaction_only, bias, id=f"{n}-{degree}-{interaction_only}-{bias}")
    for n in (0, 1, 2, 5, 8)
    for degree in (1, 2, 3, 5, (2, 2), (3, 4), (0, 3), (4, 5))
    for interaction_only in (False, True)
    for bias in (True, False)
]


def triangle(n):
    return n * (n + 1) // 2


def tetrahedron(n):
    return n * (n + 1) * (n + 2) // 6


@pytest.mark.parametrize("n_features", range(1, 12))
def test_the_four_mappings_of_the_paper(n_features):
    D = n_features
    plain = {"include_bias": False}
    for i, j in combinations_with_replacement(range(D), 2):
        column = MonomialBasis(D, (2, 2), **plain).rank((i, j))
        assert column == triangle(D) - (triangle(D - i) - (j - i))
    for i, j in combinations(range(D), 2):
        column = MonomialBasis(D, (2, 2), interaction_only=True, **plain).rank((i, j))
        assert column == triangle(D - 1) - (triangle(D - i - 1) - (j - i - 1))
    for i, j, k in combinations_with_replacement(range(D), 3):
        column = MonomialBasis(D, (3, 3), **plain).rank((i, j, k))
        assert column == tetrahedron(D) - (tetrahedron(D - i - 1) + triangle(D - j) - (k - j))
    for i, j, k in combinations(range(D), 3):
        column = MonomialBasis(D, (3, 3), interaction_only=True, **plain).rank((i, j, k))
        below = tetrahedron(D - i - 3) + triangle(D - j - 1) - (k - j - 1)
        assert column == tetrahedron(D - 2) - below


def test_the_table_of_the_paper():
    basis = MonomialBasis(5, (3, 3), interaction_only=True, include_bias=False)
    table = ["012", "013", "014", "023", "024", "034", "123", "124", "134", "234"]
    for column, digits in enumerate(table):
        assert basis.rank([int(digit) for digit in digits]) == column


@pytest.mark.parametrize(("n", "degree", "interaction_only", "bias"), BASES)
def test_rank_and_unrank_are_the_law(n, degree, interaction_only, bias):
    basis = MonomialBasis(n, degree, interaction_only=interaction_only, include_bias=bias)
    tuples = reference.monomials(n, degree, interaction_only, bias)
    assert basis.n_columns == len(tuples)
    assert [basis.rank(t) for t in tuples] == list(range(len(tuples)))
    assert [basis.unrank(c) for c in range(len(tuples))] == tuples
    if tuples:
        np.testing.assert_array_equal(basis.rank(tuples), range(len(tuples)))
    columns = np.arange(len(tuples))
    np.testing.assert_array_equal(basis.rank(basis.unrank(columns)), columns)
    for d, columns_of_d in basis.degree_slices.items():
        assert all(len(t) == d for t in tuples[columns_of_d])
        assert columns_of_d.stop - columns_of_d.start == sum(len(t) == d for t in tuples)


@given(
    n_features=st.one_of(st.integers(1, 20), st.integers(1, 2**62)),
    low=st.integers(0, 9),
    extra=st.integers(0, 5),
    interaction_only=st.booleans(),
    bias=st.booleans(),
    draw=st.randoms(use_true_random=False),
)
@settings(max_examples=500)
def test_rank_inverts_unrank_in_any_basis(n_features, low, extra, interaction_only, bias, draw):
    basis = MonomialBasis(
        n_features,
        (low, max(1, low + extra)),
        interaction_only=interaction_only,
        include_bias=bias,
    )
    if not 0 < basis.n_columns < 2**63:
        return
    columns = [0, basis.n_columns - 1, *(draw.randrange(basis.n_columns) for _ in range(20))]
    tuples = basis.unrank(columns)
    np.testing.assert_array_equal(basis.rank(tuples), columns)
    order = np.argsort(columns, kind="stable")
    rows = [[t[t >= 0].size, *t] for t in tuples[order]]
    assert rows == sorted(rows)
    assert tuples.max(initial=0) < n_features


@pytest.mark.parametrize(
    ("degree", "int32", "int64"),
    [(2, 65_534, 4_294_967_294), (3, 2_342, 3_810_776), (4, 473, 121_973), (5, 188, 16_170)],
)
def test_both_sides_of_the_limits_of_the_index_types(degree, int32, int64):
    assert MonomialBasis(int32, degree).n_columns <= 2**31 - 1
    assert MonomialBasis(int32 + 1, degree).n_columns > 2**31 - 1
    last = MonomialBasis(int64, degree)
    assert last.n_columns <= 2**63 - 1
    assert last.rank((int64 - 1,) * degree) == last.n_columns - 1
    assert last.unrank(last.n_columns - 1) == (int64 - 1,) * degree
    beyond = MonomialBasis(int64 + 1, degree)
    assert beyond.n_columns == comb(int64 + 1 + degree, degree) > 2**63 - 1
    with pytest.raises(ValueError, match=r"at most 2\*\*63 - 1 can be indexed"):
        beyond.rank((0,))
    with pytest.raises(ValueError, match=r"at most 2\*\*63 - 1 can be indexed"):
        beyond.unrank(0)


def test_intermediate_products_do_not_overflow():
    """3 D^2 i passes 2^63 from D = 1,454,084 on; ranks in float64 go wrong from D = 144,264."""
    for D in (144_264, 1_454_084, 3_810_776):
        basis = MonomialBasis(D, (3, 3), include_bias=False)
        for i, j, k in [(D - 3, D - 2, D - 1), (D // 2, D // 2, D - 1), (1, D // 3, D // 3)]:
            exact = comb(D + 2, 3) - 1 - comb(D + 1 - i, 3) - comb(D - j, 2) - (D - 1 - k)
            assert basis.rank((i, j, k)) == exact
            assert basis.unrank(exact) == (i, j, k)


def test_a_basis_of_a_billion_features_is_cheap():
    basis = MonomialBasis(10**9, 2)
    assert basis.n_columns == comb(10**9 + 2, 2)
    assert basis.unrank(basis.rank((123_456_789, 987_654_321))) == (123_456_789, 987_654_321)
    assert basis.names([10**9 + 1]).tolist() == ["x0^2"]
    assert basis.powers([10**9 + 1]).shape == (1, 10**9)


def test_the_widest_basis_of_all():
    basis = MonomialBasis(2**63 - 1, 1, include_bias=False)
    for column in (0, 5, 2**62, 2**63 - 2):
        assert basis.unrank(column) == (column,)
        assert basis.rank((column,)) == column


def test_order_inside_a_tuple_does_not_matter():
    basis = MonomialBasis(6, 3)
    assert basis.rank((4, 0, 2)) == basis.rank((0, 2, 4))
    np.testing.assert_array_equal(
        basis.rank(np.array([[4, 0, 2], [5, 1, -1]])), basis.rank([(0, 2, 4), (1, 5)])
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_any_integer_dtype_will_do(dtype):
    basis = MonomialBasis(6, 2)
    assert basis.unrank(np.array([7, 9], dtype=dtype)).tolist() == [[0, 0], [0, 2]]
    assert basis.rank(np.array([[0, 0], [0, 2]], dtype=dtype)).tolist() == [7, 9]
    assert basis.unrank(dtype(9)) == (0, 2)


@pytest.mark.parametrize(
    ("tuples", "message"),
    [
        ((0, 6), r"tuple \(0, 6\) is not in the basis: input columns must be in \[0, 6\)"),
        ((-1, 2), r"tuple \(-1, 2\) .* -1 is not an input column"),
        ((-2, 2), r"must be in \[0, 6\)"),
        ((1, 2, 3, 4), r"its degree is not in \[2, 3\]"),
        ((1,), r"its degree is not in \[2, 3\]"),
        ((), "include_bias=False"),
        ((2, 2), "interaction_only=True does not allow a column twice"),
        ([(0, 1), (2, 2)], r"tuple \(2, 2\)"),
        (np.array([[-1, 2, 3]]), "-1 may only stand at the end"),
        ((0.5, 1.5), "tuples must be integers; got dtype float64"),
        (("a", "b"), "tuples must be integers"),
        (np.zeros((2, 2, 2), int), "got 3 dimensions"),
        ((0, 2**70), r"must be in \[0, 6\)"),
        (5, "tuples must be a tuple of input columns, or several; got 5"),
        ([(0, 1), 2], "tuples must all be sequences of input columns"),
    ],
)
def test_rank_refuses_what_is_no_monomial(tuples, message):
    basis = MonomialBasis(6, (2, 3), interaction_only=True, include_bias=False)
    with pytest.raises(ValueError, match=message):
        basis.rank(tuples)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (-1, r"column -1 is not in the basis, which has columns \[0, 28\)"),
        (28, "column 28 is not in the basis"),
        ([3, 99], "column 99"),
        (2**63, "not in the basis"),
        (np.uint64(2**64 - 1), "not in the basis"),
        (1.0, "columns must be integers; got dtype float64"),
        ([[1]], "got 2 dimensions"),
    ],
)
def test_unrank_refuses_what_is_no_column(columns, message):
    with pytest.raises(ValueError, match=message):
        MonomialBasis(6, 2).unrank(columns)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1,), "n_features must be a non-negative int; got -1"),
        ((2.0,), "n_features must be a non-negative int; got 2.0"),
        ((3, -1), "degree must be a non-negative int.*got -1"),
        ((3, 2.5), "got 2.5"),
        ((3, "2"), "got '2'"),
        ((3, None), "got None"),
        ((3, (1, 2, 3)), r"got \(1, 2, 3\)"),
        ((3, (3, 2)), r"min_degree <= max_degree; got \(3, 2\)"),
        ((3, b"12"), "degree must be a non-negative int"),
        ((3, np.array(2)), "degree must be a non-negative int"),
        ((1, 10**9), r"degree=1000000000 is too high: at most 1,000,000"),
    ],
)
def test_a_basis_refuses_wrong_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        MonomialBasis(*arguments)


@pytest.mark.parametrize("flag", ["interaction_only", "include_bias"])
def test_flags_must_be_flags(flag):
    with pytest.raises(ValueError, match=f"{flag} must be True or False; got 'False'"):
        MonomialBasis(3, **{flag: "False"})


def test_degrees_beyond_the_last_interaction_cost_nothing():
    basis = MonomialBasis(3, 10**9, interaction_only=True)
    assert basis.n_columns == 8
    assert list(basis.degree_slices) == [0, 1, 2, 3]
    assert basis.unrank([7]).tolist() == [[0, 1, 2]]
    assert basis.names().tolist() == ["1", "x0", "x1", "x2", "x0 x1", "x0 x2", "x1 x2", "x0 x1 x2"]
    assert basis.powers().toarray().sum(axis=1).tolist() == [0, 1, 1, 1, 2, 2, 2, 3]


def test_high_powers_of_few_features():
    basis = MonomialBasis(1, 5000)
    assert basis.powers().toarray().ravel().tolist() == list(range(5001))
    assert basis.names()[-1] == "x0^5000"
    basis = MonomialBasis(2, 300)
    columns = np.arange(basis.n_columns)[::37]
    assert basis.names()[columns].tolist() == basis.names(columns).tolist()


def test_numbers_beyond_reading_are_told_by_their_size():
    basis = MonomialBasis(100_000, 5000)
    with pytest.raises(ValueError, match=r"would have about 10\^\d+ columns"):
        basis.unrank(0)


def test_a_basis_without_columns_is_refused_if_it_never_has_any():
    with pytest.raises(ValueError, match="leaves no column at all"):
        MonomialBasis(3, 0, include_bias=False)
    assert MonomialBasis(2, (3, 3), interaction_only=True, include_bias=False).n_columns == 0


@pytest.mark.parametrize(("n", "degree", "interaction_only", "bias"), BASES)
def test_names_and_powers_are_those_of_scikit_learn(n, degree, interaction_only, bias):
    basis = MonomialBasis(n, degree, interaction_only=interaction_only, include_bias=bias)
    if n == 0 or basis.n_columns == 0:  # scikit-learn raises for either
        assert basis.names().tolist() == ["1"][: basis.n_columns]
        assert basis.powers().shape == (basis.n_columns, n)
        return
    peer = SklearnPolynomialFeatures(degree, interaction_only=interaction_only, include_bias=bias)
    peer.fit(np.zeros((1, n)))
    names = [f"feature {j}" if j % 2 else f"f{j}" for j in range(n)]
    np.testing.assert_array_equal(basis.names(), peer.get_feature_names_out())
    np.testing.assert_array_equal(
        basis.names(input_features=names), peer.get_feature_names_out(names)
    )
    np.testing.assert_array_equal(basis.powers().toarray(), peer.powers_)
    assert basis.powers().dtype == peer.powers_.dtype
    columns = np.arange(basis.n_columns)[::-2]
    np.testing.assert_array_equal(basis.names(columns, names), basis.names(None, names)[columns])
    np.testing.assert_array_equal(basis.powers(columns).toarray(), peer.powers_[columns])


def test_names_of_one_column():
    assert MonomialBasis(3, 2).names(5).tolist() == ["x0 x1"]


def test_names_refuse_the_wrong_number_of_features():
    with pytest.raises(ValueError, match="input_features has 2 names; the basis has n_features=3"):
        MonomialBasis(3).names(input_features=["a", "b"])


@pytest.mark.parametrize(
    ("features", "sep"),
    [(["a", "2"], "^"), (["ab", "a", "b"], ""), (["xa", "x", "ab", "b"], "aa")],
)
def test_names_that_a_separator_makes_equal_are_refused(features, sep):
    names = MonomialBasis(len(features), 3)._names_that_may_clash(None, features, sep)[0]
    assert len(set(names)) < len(names)
    with pytest.raises(ValueError, match="are both named"):
        MonomialBasis(len(features), 3).names(input_features=features, sep=sep)


def test_features_of_the_same_name_are_not_a_power():
    basis = MonomialBasis(3, interaction_only=True, groups=list("abc"))
    assert basis.names([4], input_features=["a", "a", "b"]).tolist() == ["a a"]


def test_names_that_clash_are_refused():
    basis = MonomialBasis(3, 2)
    with pytest.raises(ValueError, match="columns 3 and 5 are both named 'a b'"):
        basis.names(input_features=["a", "b", "a b"])
    with pytest.raises(ValueError, match="columns 5 and 3 are both named 'a b'"):
        basis.names([5, 3], ["a", "b", "a b"])
    with pytest.raises(ValueError, match="are both named '1'"):
        basis.names(input_features=["1", "b", "c"])
    assert basis.names([3, 3], ["a b", "c", "d"]).tolist() == ["d", "d"]
    assert basis.names(input_features=["new york", "b", "c^2"])[6] == "new york c^2"


def test_everything_of_a_wide_basis_is_refused_before_it_is_built():
    basis = MonomialBasis(10**9, 2)
    with pytest.raises(MemoryError, match=r"names of all 500,000,001,500,000,001 columns would"):
        basis.names()
    with pytest.raises(MemoryError, match=r"Pass columns=\[...\]"):
        basis.powers()


def test_bases_compare_hash_print_and_pickle_by_value():
    basis = MonomialBasis(np.int64(7), np.array([0, 3]), interaction_only=np.True_)
    same = MonomialBasis(7, 3, interaction_only=True)
    assert basis.rank((1, 2)) == same.rank((1, 2))
    assert basis == same
    assert hash(basis) == hash(same)
    assert basis != MonomialBasis(7, 2, interaction_only=True)
    assert eval(repr(basis)) == basis
    copy = pickle.loads(pickle.dumps(basis))
    assert copy == basis
    assert copy.unrank(9) == basis.unrank(9)
    with pytest.raises(AttributeError):
        basis.n_features = 3
