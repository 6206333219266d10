"""Groups of features and chosen terms: ranks, names and counts are those of the enumeration."""

import pickle
from math import comb, factorial

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
@settings(max_examples=300)
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


def test_groups_of_a_description_keep_their_order():
    first, other = (MonomialBasis(4, groups=each) for each in ({"a": 2, "b": 2}, {"b": 2, "a": 2}))
    assert first.as_dict() != other.as_dict()
    pairs = tuple(map(tuple, first.as_dict()["groups"]))
    assert MonomialBasis(4, groups=pairs) == first
    with pytest.raises(ValueError, match="groups has a label twice"):
        MonomialBasis(4, groups=[["a", 2], ["a", 2]])


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
        (["`u`:i"], [(0, 1)]),
        (["(u + i)*(u + h)"], [(0,), (1,), (2,), (0, 2), (0, 1), (1, 2)]),
        (["u*u"], [(0,)]),
        (["(u + u:i)**2"], [(0,), (0, 1)]),
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
        ({"groups": [2, -1, 3]}, "group 'g1' has -1"),
        ({"groups": {"a": 3, "b": 2}}, "(groups={'a': 3, 'b': 2})"),
        ({"groups": {"a": [0, 1], "b": [2, 3]}}, "not its members; group 'a' has [0, 1]"),
        ({"groups": np.ones((2, 2), dtype=int)}, "groups must be one-dimensional"),
        ({"groups": [1, 1, 1, 1]}, "may be labels of the features, or sizes"),
        (
            {"groups": [2, 2], "terms": ["g0:g7"]},
            "'g7', which is not a group. There are 'g0', 'g1'.",
        ),
        ({"groups": {"user": 2, "item": 2}, "terms": ["users"]}, "Did you mean 'user'?"),
        ({"groups": {"user": 2, "item": 2}, "terms": ["user,item"]}, "each formula on its own"),
        ({"groups": [2, 2], "terms": ["g0:g0"]}, "'g0:g0' names the group 'g0' twice"),
        ({"groups": [2, 2], "terms": [("g0", "g0")]}, "('g0', 'g0') names the group 'g0' twice"),
        ({"groups": {"c:d": 4}, "terms": ["c:d"]}, "write `c:d` in backticks, or a tuple ('c:d',)"),
        ({"groups": [2, 2], "terms": [(1,)]}, "terms names 1, which is not a group"),
        ({"groups": [2, 2], "terms": ["(" * 5000]}, "more than 100 nested parentheses"),
        ({"groups": [2, 2], "terms": ["g0**" + "9" * 5000]}, "needs a positive integer"),
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
    "groups",
    [
        "abcd",
        b"abcd",
        4,
        [1.5, 2.5, 0.0, 0.0],
        [2.0, 2.0],
        [("a",), ("b",), ("a",), ("b",)],
        iter(["a", "a", "b", "b"]),
    ],
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


def test_a_label_that_is_missing_is_located():
    with pytest.raises(TypeError, match=r"got nan for feature 2\. Use None for a feature that is"):
        MonomialBasis(4, groups=["a", "a", float("nan"), "b"])


def test_integers_in_terms_are_labels():
    basis = MonomialBasis(4, groups=[1, 1, 0, 0], terms=[(1,), (np.int64(0), "1")])
    assert basis.names().tolist() == ["1", "x0", "x1", "x0 x2", "x0 x3", "x1 x2", "x1 x3"]


@pytest.mark.parametrize("terms", [[b"a"], b"a", [(True,)], [97], iter(["x0"]), [iter(["x0"])]])
def test_terms_of_the_wrong_type_are_refused(terms):
    with pytest.raises(TypeError, match=r"terms? must"):
        MonomialBasis(200, terms=terms)


def test_terms_of_a_basis_may_be_passed_on():
    basis = MonomialBasis(6, groups={"u": 1, "i": 2, "h": 3}, terms=["u:h", "i"])
    assert MonomialBasis(6, groups=basis.groups, terms=basis.terms) == basis
    assert basis.as_dict()["terms"] == [["i"], ["u", "h"]]
    with pytest.raises(ValueError, match="more than 2 groups: pass labels"):
        MonomialBasis(6, groups=[3, 3], terms=basis.terms)


def test_an_int_degree_is_the_maximum_of_terms():
    sizes = {"a": 1, "b": 1, "c": 1}
    basis = MonomialBasis(3, degree=3, groups=sizes, terms=["a*b*c"])
    assert (basis.min_degree, basis.max_degree) == (1, 3)
    assert MonomialBasis(3, degree=(1, 3), groups=sizes, terms=["a*b*c"]) == basis
    with pytest.raises(ValueError, match="contradicts terms, whose degrees are 1 to 3"):
        MonomialBasis(3, degree=(2, 3), groups=sizes, terms=["a*b*c"])


@pytest.mark.parametrize("formula", ["({})**22", "({0})*({0})**4", "({0}):({0})**4"])
def test_a_formula_with_too_many_terms_is_refused_before_it_is_built(formula):
    formula = formula.format(" + ".join(f"x{j}" for j in range(22)))
    with pytest.raises(ValueError, match="more than 100,000 terms"):
        MonomialBasis(22, terms=[formula])


def test_terms_of_many_features_make_no_names():
    basis = MonomialBasis(2 * 10**6, terms=["x0:x1999999"], include_bias=False)
    assert basis.names().tolist() == ["x0 x1999999"]
    assert "groups" not in basis.as_dict()
    assert MonomialBasis(**basis.as_dict()) == basis


@pytest.mark.parametrize("how", [{"groups": {"a": 10**15}}, {"terms": ["x0:x1"]}])
def test_groups_that_do_not_fit_into_memory_are_refused(how):
    with pytest.raises(MemoryError, match="would need"):
        MonomialBasis(10**15, **how).names([0])
    with pytest.raises(ValueError, match=r"at most 2\*\*63 - 1 features"):
        MonomialBasis(10**25, **how if "terms" in how else {"groups": {"a": 10**25}})


def test_counts_of_many_sizes_are_quick():
    sizes = list(range(1, 1001))
    basis = MonomialBasis(sum(sizes), 1000, groups=sizes, interaction_only=True)
    assert basis.count(sum(sizes), 1000) == factorial(1000)
