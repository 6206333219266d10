"""Sparse containers on a GPU: their arrays, where they are, and results of the same kind."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import cupy
from cupyx.scipy import sparse

from polysparse.matrix.canonical import require_two_dimensions

Array = Any  # a cupy.ndarray


@dataclass(frozen=True)
class Container:
    """A CSR matrix on a GPU, whichever library it is of.

    Attributes
    ----------
    shape : tuple of int
        Numbers of rows and columns.
    indptr, indices, data : cupy.ndarray
        The arrays of X, not copied.
    wrap : callable
        Makes a container of the same kind of a shape, indptr, indices and data.
    stream : cupy.cuda.Stream or None
        The stream that X's library works on now; None if that is CuPy's own.
    """

    shape: tuple[int, int]
    indptr: Array
    indices: Array
    data: Array
    wrap: Callable[..., Any]
    stream: Any = None

    @contextmanager
    def on_its_device(self) -> Iterator[None]:
        """Work on the device of X, on the stream of its library."""
        with self.data.device:
            if self.stream is None:
                yield
            else:
                with self.stream:
                    yield


def container_of(X: Any) -> Container:
    """Read a container; raise TypeError if it is not a CSR matrix on a GPU."""
    if type(X).__module__.partition(".")[0] == "torch":
        return _of_torch(X)
    if getattr(X, "format", "csr") != "csr":
        raise TypeError(f"X is in {X.format.upper()} format on the GPU: pass X.tocsr().")
    if getattr(X, "ndim", 2) != 2:
        require_two_dimensions(X)
    is_cupy = type(X).__module__.partition(".")[0] == "cupyx"
    kind = type(X) if is_cupy else sparse.csr_matrix
    indptr, indices, data = (cupy.asarray(array) for array in (X.indptr, X.indices, X.data))
    return Container((int(X.shape[0]), int(X.shape[1])), indptr, indices, data, _wrapper(kind))


def _wrapper(kind: Any) -> Callable[..., Any]:
    def wrap(shape: tuple[int, int], indptr: Array, indices: Array, data: Array) -> Any:
        """Wrap arrays that are canonical by construction.

        The public constructor looks through the arrays to choose an index dtype.
        """
        if hasattr(kind, "_from_parts"):
            return kind._from_parts(data, indices, indptr, shape, has_canonical_format=True)
        return kind((data, indices, indptr), shape=shape)

    return wrap


@dataclass(frozen=True)
class _ForeignStream:
    """A stream of another library, as CuPy reads it."""

    pointer: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.pointer


def _stream_at(pointer: int) -> Any:
    if hasattr(cupy.cuda.Stream, "from_external"):
        return cupy.cuda.Stream.from_external(_ForeignStream(pointer))
    return cupy.cuda.ExternalStream(pointer)


def _of_torch(X: Any) -> Container:
    import torch

    if X.layout != torch.sparse_csr:
        raise TypeError(
            f"X is a tensor of layout {X.layout} on the GPU: pass X.coalesce().to_sparse_csr() or, "
            "if it is dense, X.to_sparse_csr()."
        )
    require_two_dimensions(X)
    X = X.detach()
    stream = _stream_at(torch.cuda.current_stream(X.device).cuda_stream)

    def wrap(shape: tuple[int, int], indptr: Array, indices: Array, data: Array) -> Any:
        arrays = (torch.from_dlpack(array) for array in (indptr, indices, data))
        with warnings.catch_warnings():  # that nothing is checked
            warnings.simplefilter("ignore", UserWarning)
            return torch.sparse_csr_tensor(*arrays, size=shape, check_invariants=False)

    with cupy.cuda.Device(X.device.index), stream:
        parts = (X.crow_indices(), X.col_indices(), X.values())
        indptr, indices, data = (cupy.from_dlpack(part) for part in parts)
    return Container((int(X.shape[0]), int(X.shape[1])), indptr, indices, data, wrap, stream)
