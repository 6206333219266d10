"""AllColumns, ChosenColumns and HashedColumns are values: compared, pickled, described as JSON."""

import json
import pickle
from itertools import combinations

import numpy as np
import pytest

from checks import bits
from csr_zoo import random_csr
from polysparse import MonomialBasis
from polysparse.columns.spaces import AllColumns, ChosenColumns, HashedColumns
from polysparse.expansion.whole import expand_columns
from polysparse.matrix.canonical import as_canonical_csr


def chosen(*ranks, degree=2):
    return ChosenColumns(MonomialBasis(4, degree), np.array(ranks, dtype=np.int64))


# Builders, so that every call gives another object. No two of them are of the same columns.
OF_ONE_BASIS = {
    "all": lambda: AllColumns(MonomialBasis(4)),
    "chosen": lambda: chosen(1, 5, 14),
    "chosen, with the same ends": lambda: chosen(1, 6, 14),
    "chosen, with the same beginning": lambda: chosen(1, 5),
    "chosen, every one": lambda: chosen(*range(15)),
    "chosen, none": lambda: chosen(),
    "hashed": lambda: HashedColumns(MonomialBasis(4), 15, True, 0),
    "hashed, with another seed": lambda: HashedColumns(MonomialBasis(4), 15, True, 1),
    "hashed, without signs": lambda: HashedColumns(MonomialBasis(4), 15, False, 0),
    "hashed, more": lambda: HashedColumns(MonomialBasis(4), 16, True, 0),
}
SPACES = {
    **OF_ONE_BASIS,
    "all of degree 3": lambda: AllColumns(MonomialBasis(4, 3)),
    "chosen of degree 3": lambda: chosen(1, 5, 14, degree=3),
    "hashed of degree 3": lambda: HashedColumns(MonomialBasis(4, 3), 15, True, 0),
}
every_space = pytest.mark.parametrize("build", SPACES.values(), ids=SPACES)


@every_space
def test_equal_content_is_equal_and_has_one_hash(build):
    one, other = build(), build()
    assert one is not other
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1


def test_other_content_is_unequal():
    for one, other in combinations(SPACES, 2):
        assert SPACES[one]() != SPACES[other](), (one, other)


@every_space
def test_nothing_else_is_equal(build):
    space = build()
    assert space != space.basis
    assert space != space.describe()


@every_space
@pytest.mark.parametrize("is_used", [False, True])
def test_a_pickled_copy_is_equal_and_gives_the_same_expansion(build, is_used):
    space, x = build(), as_canonical_csr(random_csr(9, 4))
    if is_used:
        expand_columns(space, x, n_jobs=1, max_bytes=None)
    copy = pickle.loads(pickle.dumps(space))
    assert copy == space
    assert hash(copy) == hash(space)
    results = [expand_columns(s, x, n_jobs=1, max_bytes=None) for s in (space, copy)]
    assert bits(results[0]) == bits(results[1])


@every_space
def test_a_description_is_json(build):
    description = build().describe()
    assert json.loads(json.dumps(description)) == description
    assert description["kind"] == build().kind


def test_descriptions_tell_columns_of_one_basis_apart():
    for one, other in combinations(OF_ONE_BASIS, 2):
        assert OF_ONE_BASIS[one]().describe() != OF_ONE_BASIS[other]().describe(), (one, other)


@pytest.mark.parametrize("dtype", ["<i8", ">i8"])
@pytest.mark.parametrize("step", [1, 2])
def test_chosen_columns_are_described_alike_however_they_lie_in_memory(dtype, step):
    ranks = np.repeat(np.array([1, 5, 14], dtype=dtype), step)[::step]
    space = ChosenColumns(MonomialBasis(4), ranks)
    assert space.describe() == chosen(1, 5, 14).describe()
    assert space == chosen(1, 5, 14)
    assert hash(space) == hash(chosen(1, 5, 14))


def test_as_many_columns_can_be_chosen_as_int32_can_number():
    most = 2**31 - 1
    ranks = np.broadcast_to(np.int64(0), most + 1)  # as long as that, in the memory of one
    basis = MonomialBasis(10**6)
    ChosenColumns(basis, ranks[:most]).require_indexable()
    with pytest.raises(
        ValueError, match=r"2,147,483,648 columns were chosen; at most 2,147,483,647 can be\. Set"
    ):
        ChosenColumns(basis, ranks).require_indexable()


def test_columns_are_chosen_from_a_basis_that_int64_can_number():
    with pytest.raises(ValueError, match=r"at most 2\*\*63 - 1 can be indexed"):
        ChosenColumns(MonomialBasis(10**6, 4), np.arange(3)).require_indexable()
