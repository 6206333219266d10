"""Dispatch by the container of X: which backend computes if X is a Dask array or on a GPU.

A public function or method that takes X begins with a decorator, which calls the backend of X with
the same arguments instead, if X has one::

    @dispatch("expand")
    def expand(X, degree=2, *, columns=None): ...

A backend is a module with the functions of `Backend`: `polysparse.dask.handler` or
`polysparse.gpu.handler`. Both are below the packages that dispatch, so a backend is imported by its
name, when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import wraps
from importlib import import_module
from inspect import signature
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


class Backend(Protocol):
    """What is computed for a container by its own module; mypy checks each against this.

    Arguments are those of the public function or method of the same name, defaults included. The
    first argument is the estimator of a method, or the class of an operator.
    """

    def expand(
        self,
        X: Any,
        degree: Any,
        *,
        columns: Any,
        n_jobs: int | None,
        max_bytes: int | str | None,
        out: Any,
        **flags: Any,
    ) -> Any:
        """Return the expansion, as the same kind of container."""
        ...

    def iter_expand(
        self,
        X: Any,
        degree: Any,
        *,
        columns: Any,
        n_jobs: int | None,
        max_bytes: int,
        reuse: bool,
        **flags: Any,
    ) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows of the expansion."""
        ...

    def plan(self, X: Any, degree: Any, *, columns: Any, n_jobs: int | None, **flags: Any) -> Any:
        """Return an ExpansionPlan."""
        ...

    def operator(
        self,
        cls: type,
        X: Any,
        degree: Any,
        *,
        columns: Any,
        dtype: Any,
        n_jobs: int | None,
        **flags: Any,
    ) -> Any:
        """Return an operator with the methods of PolynomialOperator."""
        ...

    def transform(self, estimator: Any, X: Any) -> Any:
        """Return what a transformer returns, as the same kind of container."""
        ...

    def sample_of(self, X: Any) -> Any:
        """Return a row of zeros in memory, as wide as X; no row if X has none."""
        ...

    def count(self, estimator: Any, X: Any, columns: Any) -> Any:
        """Return a ColumnTally of columns, of all of a basis or of chosen ones, that occur in X."""
        ...

    def top_interactions(
        self,
        X: Any,
        target: Any,
        k: int,
        *,
        degree: Any,
        n_jobs: int | None,
        verbose: int,
        **how: Any,
    ) -> Any:
        """Return a TopInteractions of single features and pairs."""
        ...

    def open_rows(
        self, model: Any, X: Any, y: Any, sample_weight: Any, offset: Any = None
    ) -> AbstractContextManager[Any]:
        """Return a context manager of a RowStore to fit a model to."""
        ...

    def predict(self, model: Any, X: Any, offset: Any = None, *, method: str) -> Any:
        """Return what a method of a fitted model returns; an offset is added to the scores."""
        ...


class _Container(NamedTuple):
    """A kind of container: its backend, and how to bring its values into memory."""

    backend: str
    is_what: str
    way_out: str


_DASK = _Container(
    "polysparse.dask.handler",
    "a Dask array",
    "X.compute() if it fits, or X.blocks[0].compute() for a part of it",
)
_GPU = _Container("polysparse.gpu.handler", "on a GPU", "X.get(), or X.cpu() for a tensor")


def dispatch(operation: str, **more: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let the backend of X, if it has one, compute instead of the decorated function or method.

    `operation` is a function of `Backend`, and `more` are arguments for it alone.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = signature(function)
        position = list(parameters.parameters).index("X")

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            backend = backend_of(args[position] if len(args) > position else kwargs.get("X"))
            if backend is None:
                return function(*args, **kwargs)
            bound = parameters.bind(*args, **kwargs)
            bound.apply_defaults()
            return cast(R, getattr(backend, operation)(*bound.args, **bound.kwargs, **more))

        return call

    return decorate


def backend_of(X: Any) -> Backend | None:
    """Return the module that computes for a container, or None if X is in memory."""
    container = _container_of(X)
    return None if container is None else cast(Backend, import_module(container.backend))


def sample_of(X: Any) -> Any:
    """Return X, or a row of zeros in its place if it is not in memory: enough to know its width."""
    backend = backend_of(X)
    return X if backend is None else backend.sample_of(X)


def require_in_memory(X: Any) -> None:
    """Raise TypeError if X is a Dask array or on a GPU."""
    container = _container_of(X)
    if container is not None:
        raise TypeError(
            f"X is {container.is_what}; this function needs it in memory. Call {container.way_out}."
        )


def require_degree(X: Any, degree: tuple[int, int], highest: int) -> None:
    """Raise ValueError if a degree that is searched row by row is given for X out of memory."""
    container = _container_of(X)
    if container is not None and degree[1] > highest:
        raise ValueError(
            f"degree={degree!r} is searched prefix by prefix, which needs X in memory, but X is "
            f"{container.is_what}. Search up to degree={highest} there, and higher degrees among "
            f"the features of the best; or call {container.way_out}."
        )


def require_no_out(X: Any, out: Any) -> None:
    """Raise ValueError if memory for a result is given, which only applies to X in memory."""
    container = _container_of(X)
    if out is not None and container is not None:
        raise ValueError(f"out only applies to X in memory, but X is {container.is_what}.")


def _container_of(X: Any) -> _Container | None:
    """Return what kind of container X is, without an import; None if its values are in memory."""
    package = type(X).__module__.partition(".")[0]
    if package in ("scipy", "numpy"):
        return None
    if package == "dask":
        return _DASK
    if package == "torch":
        return _GPU if getattr(X, "is_cuda", False) and "sparse" in str(X.layout) else None
    is_on_gpu = package == "cupyx" or (
        hasattr(X, "indptr") and hasattr(X.data, "__cuda_array_interface__")
    )
    return _GPU if is_on_gpu else None
