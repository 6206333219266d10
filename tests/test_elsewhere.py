"""Containers whose values are elsewhere are recognised without importing their libraries."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from polysparse import PolynomialOperator
from polysparse.elsewhere import handler_of, require_here


class Array:
    """As a dask array presents itself."""


Array.__module__ = "dask.array.core"


@pytest.mark.parametrize("X", [np.ones((2, 2)), sparse.csr_array((2, 2)), [[1.0]], None])
def test_what_is_here_has_no_handler(X):
    assert handler_of(X) is None
    require_here(X)


def test_what_is_elsewhere_is_refused_where_it_cannot_be_handed_over():
    with pytest.raises(TypeError, match=r"X is of dask.*Give X\.compute\(\)"):
        require_here(Array())


def test_an_operator_needs_its_matrix_here():
    with pytest.raises(TypeError, match="its values are elsewhere"):
        PolynomialOperator(Array())


def test_without_dask_the_extra_is_named():
    program = "import sys; sys.modules['dask'] = None; import polysparse.dask"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.endswith(
        "ImportError: polysparse.dask needs Dask: pip install 'polysparse[dask]'.\n"
    )


def test_polysparse_does_not_import_dask():
    program = "import sys, polysparse; polysparse.expand([[1.0]]); print('dask' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n"
