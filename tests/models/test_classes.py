"""The classes of rows are those that scikit-learn finds, by whichever way."""

import warnings

import numpy as np
import pytest
from sklearn.utils.multiclass import check_classification_targets

from polysparse.models.classes import find_classes

rng = np.random.default_rng(0)
two, ten = rng.integers(0, 2, 200), rng.integers(0, 10, 200)

TARGETS = {
    "two": two,
    "ten": ten,
    "one": np.ones(50, int),
    "negative": 2 * two - 1,
    "with gaps": 37 * ten - 100,
    "far apart": 10**6 * ten,
    "just close enough": 1023 * two,
    "just too far apart": 1024 * two,
    "huge": 2**62 + ten,
    "huge floats": 1e300 * two,
    "beyond the exact": 2.0**53 + 2 * ten,
    "bool": two > 0,
    "int8 from end to end": np.where(two, 127, -128).astype(np.int8),
    "uint8": ten.astype(np.uint8),
    "int32": ten.astype(np.int32),
    "uint64": ten.astype(np.uint64),
    "huge uint64": 2**64 - 1 - ten.astype(np.uint64),
    "float32": ten.astype(np.float32),
    "float64": two - 3.0,
    "half": ten.astype(np.float16),
    "long": ten.astype(np.longdouble),
    "big-endian": ten.astype(">i4"),
    "strided": np.repeat(ten, 2)[::2],
    "words": np.array(["no", "yes"])[two],
    "objects": np.array(["no", "yes"], object)[two],
    "objects, out of order": np.array(["é", "z", "", "Z"] * 5, object),
    "one object": np.array(["a"] * 5, object),
    "an object for each row": np.array([f"level {i}" for i in range(9)], object),
    "texts of NumPy": np.array([np.str_("b"), np.str_("a")] * 5, object),
    "texts and numbers": np.array(["a", 1] * 5, object),
    "numbers as objects": np.array([1, 2] * 5, object),
    "lists": np.array([["a"], "b", "b", "b"], object),
    "fractions": two + 0.5,
    "negative zero": np.where(two, 1.0, -0.0),
    "zeros of both signs": np.array([-0.0, 0.0, 1.0, 1.0, 0.0, -0.0] * 40),
    "numbers": rng.standard_normal(200),
    "as many as rows": np.arange(20),
    "more than half": np.arange(20) % 11,
    "half of the rows": np.arange(20) % 10,
    "none": np.empty(0, int),
    "not finite": np.array([0.0, 1.0, np.inf, np.nan] * 5),
    "infinite": np.array([0.0, np.inf] * 5),
    "two columns": np.column_stack([two, two]),
}


def by_scikit_learn(y):
    check_classification_targets(y)
    return np.unique(y, return_inverse=True)


def outcome(find, y):
    """Classes and numbers, and warnings; or the error."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            classes, numbers = find(y)
        except (TypeError, ValueError) as error:
            return str(error)
    found = classes.dtype, repr(classes.tolist()), numbers.dtype, numbers.tolist()
    return found, [(w.category, str(w.message)) for w in warned]


@pytest.mark.parametrize("kind", TARGETS)
def test_classes_are_those_of_scikit_learn(kind):
    y = TARGETS[kind]
    before = y.copy()
    assert outcome(find_classes, y) == outcome(by_scikit_learn, y)
    np.testing.assert_array_equal(y, before)


@pytest.mark.parametrize(
    "kind", ["two", "ten", "negative", "with gaps", "bool", "float64", "objects"]
)
def test_rows_of_few_integers_and_of_texts_are_not_sorted(kind, monkeypatch):
    def fail(*_, **__):
        raise AssertionError("rows are sorted")

    monkeypatch.setattr(np, "unique", fail)
    find_classes(TARGETS[kind])
