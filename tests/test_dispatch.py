"""Dask arrays and matrices on a GPU are recognised without importing their libraries."""

import subprocess
import sys
import typing
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from polysparse.dispatch import backend_of, require_in_memory
from polysparse.extras import how_to_install


class Array:
    """As a dask array presents itself."""


Array.__module__ = "dask.array.core"


@pytest.mark.parametrize("X", [np.ones((2, 2)), sparse.csr_array((2, 2)), [[1.0]], None])
def test_what_is_in_memory_has_no_backend(X):
    assert backend_of(X) is None
    require_in_memory(X)


def test_a_dask_array_is_refused_where_values_are_needed_in_memory():
    with pytest.raises(
        TypeError, match=r"X is a Dask array; this function needs it in memory. Call X\.compute\(\)"
    ):
        require_in_memory(Array())


class Tensor:
    """As a sparse tensor presents itself."""

    def __init__(self, layout, is_cuda):
        self.layout, self.is_cuda = layout, is_cuda


Tensor.__module__ = "torch"


class DeviceArray:
    """As an array on a GPU presents itself."""

    __cuda_array_interface__: typing.ClassVar = {}


@pytest.mark.parametrize(
    "X",
    [
        Tensor("torch.sparse_csr", is_cuda=True),
        Tensor("torch.sparse_coo", is_cuda=True),
        SimpleNamespace(indptr=DeviceArray(), data=DeviceArray()),
    ],
)
def test_a_matrix_on_a_gpu_is_refused_where_values_are_needed_in_memory(X):
    with pytest.raises(
        TypeError, match=r"X is on a GPU; this function needs it in memory. Call X\.get\(\)"
    ):
        require_in_memory(X)


@pytest.mark.parametrize(
    "X", [Tensor("torch.sparse_csr", is_cuda=False), Tensor("torch.strided", is_cuda=True)]
)
def test_other_tensors_have_no_backend(X):
    assert backend_of(X) is None


def test_without_cupy_the_extra_is_named():
    program = "import sys; sys.modules['cupy'] = None; import polysparse.gpu.handler"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.endswith(f"including those of PyTorch: {how_to_install('cuda')}\n")


def test_without_dask_the_extra_is_named():
    program = "import sys; sys.modules['dask'] = None; import polysparse.dask"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    message = f"ImportError: polysparse.dask needs Dask: {how_to_install('dask')}\n"
    assert done.stderr.endswith(message)


def test_polysparse_imports_neither_dask_nor_anything_of_a_gpu():
    program = """
import sys, polysparse
from scipy.sparse import csr_array
polysparse.expand([[1.0]]), polysparse.plan(csr_array((1, 1)))
polysparse.PolynomialOperator(csr_array((1, 1)))
polysparse.PolynomialRidge().fit([[1.0]], [1.0])
print({"dask", "cupy", "torch", "polysparse.gpu", "polysparse.dask"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr
