"""An operator is used as SciPy's own LinearOperator is, whatever short cuts its products take."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from column_kinds import SPACES, X
from looping import loop_over
from polysparse import PolynomialOperator
from products import weights

OWN = {"__new__", "__init__", "__repr__", "_matvec", "_rmatvec", "_matmat", "_rmatmat"}


class ByScipy(PolynomialOperator):
    """The same products, by the methods of SciPy. All numbers are real."""

    def _transpose(self):
        return self._adjoint()


OWN |= vars(ByScipy).keys()
for name, method in vars(LinearOperator).items():
    if callable(method) and name not in OWN:
        setattr(ByScipy, name, method)


class Labelled(np.ndarray):
    """An array of a class of its own."""


def vectors(n):
    """Everything that may be given as a vector or as several, right or wrong."""
    v = weights(n, 1)[:, 0]
    read_only = v.copy()
    read_only.flags.writeable = False
    return {
        "vector": v,
        "read-only": read_only,
        "column": v[:, np.newaxis],
        "row": v[np.newaxis],
        "list": v.tolist(),
        "tuple": tuple(v.tolist()),
        "column as lists": v[:, np.newaxis].tolist(),
        "matrix": v[:, np.newaxis].view(np.matrix),
        "row matrix": v[np.newaxis].view(np.matrix),
        "masked": np.ma.masked_array(v, v > 0),
        "subclass": v.view(Labelled),
        "strided": np.repeat(v, 2)[::2],
        "reversed": v[::-1],
        "broadcast": np.broadcast_to(1.5, n),
        "float32": v.astype(np.float32),
        "big-endian": v.astype(">f8"),
        "half": v.astype(np.float16),
        "integers": np.arange(n),
        "bool": v > 0,
        "complex": v + 1j,
        "complex column": (v + 1j)[:, np.newaxis],
        "objects": v.astype(object),
        "several": weights(n, 3),
        "several in Fortran order": np.asfortranarray(weights(n, 3)),
        "several as a matrix": weights(n, 3).view(np.matrix),
        "none of many": np.empty((n, 0)),
        "too long": np.ones(n + 1),
        "too short": np.ones(n - 1),
        "too long column": np.ones((n + 1, 1)),
        "empty": np.empty(0),
        "three dimensions": np.ones((n, 1, 1)),
        "no dimension": np.array(2.0),
        "number": 2.0,
        "number of NumPy": np.float32(2),
        "sparse column": sparse.csr_array(v[:, np.newaxis]),
        "sparse vector": sparse.coo_array(v),
        "sparse matrix": sparse.csr_matrix(np.ones((n, 2))),
        "operator": aslinearoperator(np.eye(n)),
        "word": "word",
        "nothing": None,
    }


USES = {
    "matvec": lambda A, v: A.matvec(v),
    "rmatvec of the transpose": lambda A, v: A.T.rmatvec(v),
    "matmat": lambda A, v: A.matmat(v),
    "@": lambda A, v: A @ v,
    "*": lambda A, v: A * v,
    "dot": lambda A, v: A.dot(v),
    "call": lambda A, v: A(v),
    "from the right": lambda A, v: v @ A.T,
    "transposed twice": lambda A, v: A.T.T @ v,
    "adjoint twice": lambda A, v: A.H.H @ v,
    "adjoint of the transpose": lambda A, v: A.T.H @ v,
    "scaled": lambda A, v: (2 * A) @ v,
    "scaled by a complex number": lambda A, v: (A * 2j) @ v,
    "divided": lambda A, v: (A / 4) @ v,
    "negative": lambda A, v: (-A) @ v,
    "sum": lambda A, v: (A + 3 * A) @ v,
    "difference": lambda A, v: (A - A) @ v,
    "product": lambda A, v: (A.T @ A) @ v,
    "product of four": lambda A, v: ((A.H @ A) ** 2) @ v,
}


def outcome(use, *arguments):
    """What comes of a use, to be compared: the result to the bit, or the error."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            found = use(*arguments)
        except Exception as error:
            return type(error), str(error)
    issued = [(w.category, str(w.message)) for w in warned]
    if isinstance(found, LinearOperator):
        return found.shape, found.dtype, issued
    is_plain = found.flags.c_contiguous, found.flags.writeable
    return type(found), found.shape, found.dtype, found.tobytes(), is_plain, issued


@loop_over("kind", vectors(1))
@pytest.mark.parametrize("use", USES)
def test_the_outcome_is_that_of_scipys_methods(use, kind):
    for dtype in (np.float64, np.float32):
        ours, theirs = (make(X, dtype=dtype) for make in (PolynomialOperator, ByScipy))
        for A, B in ((ours, theirs), (ours.T, theirs.T), (ours.H, theirs.H)):
            v = vectors(A.shape[1])[kind]
            assert outcome(USES[use], A, v) == outcome(USES[use], B, v)


@pytest.mark.parametrize("space", SPACES)
def test_a_vector_is_multiplied_as_one_of_scipys_would_be(space):
    ours, theirs = (make(X, columns=SPACES[space]()) for make in (PolynomialOperator, ByScipy))
    for A, B in ((ours, theirs), (ours.T, theirs.T)):
        v = weights(A.shape[1], 1)[:, 0]
        assert outcome(USES["@"], A, v) == outcome(USES["@"], B, v)


@pytest.mark.parametrize("which", ["T", "H"])
def test_the_transpose_is_an_operator(which):
    A = PolynomialOperator(X)
    transposed = getattr(A, which)
    assert isinstance(transposed, LinearOperator)
    assert transposed.shape == A.shape[::-1]
    assert transposed.dtype == A.dtype
    assert transposed.args == (A,)
    assert transposed.T.shape == transposed.H.shape == A.shape
    assert "36x60" in repr(transposed)


def test_products_that_a_subclass_overrides_are_its_own():
    class Doubled(PolynomialOperator):
        def _matvec(self, v):
            return 2 * super()._matvec(v)

    v = weights(36, 1)[:, 0]
    expected = 2 * (PolynomialOperator(X) @ v)
    for product in (Doubled(X) @ v, Doubled(X).matvec(v), Doubled(X).T.rmatvec(v)):
        np.testing.assert_array_equal(product, expected)
