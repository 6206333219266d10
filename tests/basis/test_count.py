"""MonomialBasis.count: monomials of a degree that the basis has, and none of any other."""

import pytest

from polysparse import MonomialBasis


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", [0, 1, 3, (2, 3), (3, 3)], ids=str)
def test_counts_of_all_degrees_add_up_to_the_columns(degree, interaction_only):
    basis = MonomialBasis(5, degree, interaction_only=interaction_only)
    assert sum(basis.count(5, d) for d in range(10)) == basis.n_columns


@pytest.mark.parametrize(
    ("basis", "degree"),
    [
        (MonomialBasis(5, 3), 4),
        (MonomialBasis(5, (2, 3)), 1),
        (MonomialBasis(2, 5, interaction_only=True), 3),
        (MonomialBasis(0, 5), 1),
        (MonomialBasis(5, 2, include_bias=False), 0),
    ],
    ids=str,
)
def test_a_degree_outside_the_basis_has_none(basis, degree):
    assert basis.count(basis.n_features, degree) == 0


def test_columns_beyond_int64_in_a_list_are_named():
    with pytest.raises(ValueError, match=r"column 9223372036854775808 is not in the basis"):
        MonomialBasis(4).unrank([0, 2**63])
    with pytest.raises(ValueError, match=r"columns must be integers; got dtype float64"):
        MonomialBasis(4).unrank([0, 2.5])
