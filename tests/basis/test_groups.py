"""Groups of features and chosen terms: ranks, names and counts are those of the enumeration."""

import pickle
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from groupings import GROUPINGS, all_terms
from polysparse import MonomialBasis


def tuples_of(basis):
    """All tuples of a basis, as `unrank` decodes them."""
    rows = basis.unrank(np.arange(basis.n_columns)).tolist()
    return [tuple(j for j in row if j >= 0) for row in rows]


@given(
    labels=st.lists(st.sampled_from(["a", "b", "c", None]), max_size=7),
    low=st.integers(0, 3),
    extra=st.integers(0, 3),
    interaction_only=st.booleans(),
    bias=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_columns_are_those_of_the_enumeration(labels, low, extra, interaction_only, bias):
    degree = (low, max(low + extra, 1))
    n = len(labels)
    flags = {"interaction_only": interaction_only, "include_bias": bias, "groups": labels}
    basis = MonomialBasis(n, degree, **flags)
    expected = reference.monomials(n, degree, **flags)
    assert basis.n_columns == len(expected)
    assert tuples_of(basis) == expected
    if expected:
        assert basis.rank(expected).tolist() == list(range(len(expected)))
    ends = [columns.stop for columns in basis.degree_slices.values()]
    assert ends[-1:] in ([len(expected)], [])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_terms_are_those_of_the_enumeration(grouping, bias):
    labels = grouping(8)
    terms = all_terms(labels, 3)
    basis = MonomialBasis(8, groups=labels, terms=terms, include_bias=bias)
    expected = reference.monomials(8, groups=labels, terms=terms, include_bias=bias)
    assert tuples_of(basis) == expected
    assert basis.rank(expected).tolist() == list(range(len(expected)))
    assert basis.powers().shape == (len(expected), 8)


def test_groups_of_one_are_the_plain_basis():
    for interaction_only in (False, True):
        plain = MonomialBasis(5, 3, interaction_only=interaction_only)
        grouped = MonomialBasis(
            5, 3, interaction_only=interaction_only, groups=dict.fromkeys("abcde", 1)
        )
        assert tuples_of(grouped) == tuples_of(plain)


@pytest.mark.parametrize(
    "groups",
    [
        ["u", "u", "i", "i", "i"],
        {"u": 2, "i": 3},
        np.array(["u", "u", "i", "i", "i"]),
        [7, 7, 9, 9, 9],
    ],
    ids=["labels", "sizes by label", "array", "integers that are not sizes"],
)
def test_groups_may_be_given_in_several_ways(groups):
    basis = MonomialBasis(5, groups=groups, include_bias=False)
    assert basis.n_columns == 5 + 2 * 3
    assert MonomialBasis(5, groups=[2, 3], include_bias=False).n_columns == 11


def test_an_empty_group_changes_no_column():
    basis = MonomialBasis(5, 3, groups={"a": 0, "u": 2, "b": 0, "i": 3, "c": 0})
    assert tuples_of(basis) == tuples_of(MonomialBasis(5, 3, groups={"u": 2, "i": 3}))


def test_a_degree_above_the_number_of_groups_adds_no_columns():
    assert MonomialBasis(5, 9, groups=[2, 3]).n_columns == 1 + 5 + 6
    assert MonomialBasis(5, (3, 9), groups=[2, 3]).n_columns == 1


@pytest.mark.parametrize(
    ("formulas", "terms"),
    [
        (["u:i"], [(0, 1)]),
        (["i:u", "h"], [(2,), (0, 1)]),
        (["u*h"], [(0,), (2,), (0, 2)]),
        (["(u + i + h)**2"], [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]),
        (["u*i*h"], [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]),
        (["u:(i + h)"], [(0, 1), (0, 2)]),
        (["u + i", "u*h"], [(0,), (1,), (2,), (0, 2)]),
        ("u:i + h", [(2,), (0, 1)]),
        ([("h", "u")], [(0, 2)]),
        ([(2, 0)], [(0, 2)]),
        (["`u`:i"], [(0, 1)]),
    ],
)
def test_formulas_have_the_operators_that_people_know(formulas, terms):
    basis = MonomialBasis(6, groups={"u": 1, "i": 2, "h": 3}, terms=formulas)
    assert basis.terms == tuple(terms)


def test_labels_that_are_not_words_stand_between_backticks():
    basis = MonomialBasis(
        3, groups={"hours per week": 2, "a:b": 1}, terms=["`hours per week`:`a:b`"]
    )
    assert basis.n_columns == 1 + 2


def test_terms_without_groups_name_features():
    basis = MonomialBasis(3, terms=["x0:x2", "x1"], include_bias=False)
    assert basis.names().tolist() == ["x1", "x0 x2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": ["a", "b"]}, "2 labels, but there are 4 features"),
        ({"groups": [1, 2]}, "groups have 3 features in all, but there are 4"),
        ({"groups": {"a": 3, "b": 2}}, "groups have 5 features in all, but there are 4"),
        ({"groups": [2, -1, 3]}, "group 1 has -1"),
        ({"groups": [1, 1, 1, 1]}, "may be labels of the features, or sizes"),
        (
            {"groups": [2, 2], "terms": ["g0:g7"]},
            "'g7', which is not a group. There are 'g0', 'g1'.",
        ),
        ({"groups": {"user": 2, "item": 2}, "terms": ["users"]}, "Did you mean 'user'?"),
        ({"groups": [2, 2], "terms": ["g0:g0"]}, "names the group 'g0' twice"),
        ({"groups": [2, 2], "terms": ["g0:g1", "g1:g0"]}, "twice, the first time as 'g0:g1'"),
        ({"groups": [2, 2], "terms": ["g0:"]}, "a label is missing"),
        ({"groups": [2, 2], "terms": ["(g0"]}, "a parenthesis is not closed"),
        ({"groups": [2, 2], "terms": ["g0**0"]}, "needs a positive integer"),
        ({"groups": [2, 2], "terms": ["g0 g1"]}, "'g1' is not expected"),
        ({"groups": [2, 2], "terms": []}, "terms is empty"),
        ({"groups": [2, 2], "terms": [()]}, "a term is empty"),
        ({"groups": [2, 2], "terms": ["g0"], "degree": 3}, "degree=3 contradicts terms"),
        ({"groups": ["x3", "x3", "a", None], "terms": ["x3"]}, "two groups are named 'x3'"),
        ({"groups": [2, 1, 1], "degree": 1001}, "at most 1,000 is supported with groups"),
    ],
)
def test_wrong_groups_and_terms_are_refused(arguments, message):
    with pytest.raises(ValueError) as caught:
        MonomialBasis(4, **arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "groups", ["abcd", 4, [1.5, 2.5, 0.0, 0.0], [("a",), ("b",), ("a",), ("b",)]]
)
def test_groups_of_the_wrong_type_are_refused(groups):
    with pytest.raises(TypeError, match="labels"):
        MonomialBasis(4, groups=groups)


@pytest.mark.parametrize(
    ("tuples", "message"),
    [
        ((0, 1), "two of its columns are in the same group"),
        ((0, 0), "two of its columns are in the same group"),
        ((4, 4, 4), "its degree is not in"),
    ],
)
def test_rank_refuses_two_members_of_a_group(tuples, message):
    with pytest.raises(ValueError, match=message):
        MonomialBasis(5, groups=[2, 2, 1]).rank(tuples)


def test_rank_refuses_what_no_term_has():
    with pytest.raises(ValueError, match="no term has its groups"):
        MonomialBasis(5, groups=[2, 2, 1], terms=["g0:g1", "g2"]).rank([(0, 2), (0, 4)])


def test_columns_are_exact_next_to_the_limit():
    sizes = {"a": 2**31, "b": 2**31 - 1}
    basis = MonomialBasis(2**32 - 1, (2, 2), groups=sizes, include_bias=False)
    assert basis.n_columns == 2**31 * (2**31 - 1)
    MonomialBasis(2**32 - 1, (2, 2), groups=sizes).require_indexable()
    with pytest.raises(ValueError, match=r"at most 2\*\*63 - 1"):
        MonomialBasis(3 * 2**31, (2, 2), groups=[2**31] * 3, include_bias=False).require_indexable()


def test_counts_are_exact_whatever_their_size():
    basis = MonomialBasis(3000, 7, groups=[3] * 1000, include_bias=False)
    assert basis.count(3000, 7) == comb(1000, 7) * 3**7
    mixed = MonomialBasis(1500, 5, groups=[2] * 500 + [1] * 500)
    assert mixed.count(1500, 2) == comb(500, 2) * 4 + 1000 * 500 + comb(501, 2)


def test_a_million_groups():
    basis = MonomialBasis(10**6, 2, groups=[None] * (10**6 - 2) + ["last"] * 2)
    last = basis.n_columns - 1
    n = 10**6
    assert basis.unrank(last) == (n - 3, n - 1)
    assert basis.rank((n - 3, n - 1)) == last
    assert basis.rank(basis.unrank([0, 5, last // 2, last])).tolist() == [0, 5, last // 2, last]


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_bases_with_groups_travel_and_compare(grouping):
    for terms in (None, all_terms(grouping(9), 2)):
        basis = MonomialBasis(9, groups=grouping(9), terms=terms)
        assert pickle.loads(pickle.dumps(basis)) == basis
        assert MonomialBasis(**basis.as_dict()) == basis
        assert hash(MonomialBasis(**basis.as_dict())) == hash(basis)
    assert basis != MonomialBasis(9)
    assert repr(basis).endswith("terms)")
