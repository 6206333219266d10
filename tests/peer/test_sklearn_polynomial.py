"""scikit-learn's own tests of PolynomialFeatures, run on ours.

The installed scikit-learn's test module is imported while `sklearn.preprocessing` offers our class
in place of its own, and nothing else is changed. Its tests of PolynomialFeatures, with the fixtures
they use, then stand in this module's namespace for pytest to find.
"""

import importlib
from unittest import mock

import pytest

import polysparse

THEIRS = "sklearn.preprocessing.tests.test_polynomial"

# Tests of scikit-learn's private helpers or of its own implementation's limits, with the reason.
DESELECTED: dict[str, str] = {
    "test_sizeof_LARGEST_INT_t": "asks for the size of a type inside scikit-learn's Cython code",
}

with mock.patch("sklearn.preprocessing.PolynomialFeatures", polysparse.PolynomialFeatures):
    theirs = importlib.import_module(THEIRS)
assert theirs.PolynomialFeatures is polysparse.PolynomialFeatures


def is_ours_to_pass(name: str) -> bool:
    return (
        name.startswith("test_")
        and "spline_transformer" not in name
        and "split_transform" not in name
        and name not in DESELECTED
    )


def is_fixture(value: object) -> bool:
    return "Fixture" in type(value).__name__ or hasattr(value, "_pytestfixturefunction")


@pytest.fixture
def global_random_seed():
    """A fixture of scikit-learn's conftest, which is not loaded."""
    return 42


assert DESELECTED.keys() <= vars(theirs).keys()
globals().update(
    {
        name: value
        for name, value in vars(theirs).items()
        if is_ours_to_pass(name) or is_fixture(value)
    }
)
