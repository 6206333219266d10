"""Polynomial and interaction features of sparse matrices, without ever densifying them."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

try:
    from polysparse import _kernels as _kernels
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "polysparse's compiled module is missing: was the package built? "
        "Install it with 'pip install .' from its source folder."
    ) from error

from polysparse.basis import MonomialBasis
from polysparse.expansion import expand, iter_expand, plan
from polysparse.planning import ExpansionPlan

if TYPE_CHECKING:
    from polysparse.hashed import HashedPolynomialFeatures
    from polysparse.observed import ObservedPolynomialFeatures
    from polysparse.store import iter_load, load
    from polysparse.transformers import PolynomialFeatures

__version__ = _version("polysparse")
__all__ = [
    "ExpansionPlan",
    "HashedPolynomialFeatures",
    "MonomialBasis",
    "ObservedPolynomialFeatures",
    "PolynomialFeatures",
    "expand",
    "iter_expand",
    "iter_load",
    "load",
    "plan",
]

# Names that not everybody needs load on first use.
_LAZY = {
    "HashedPolynomialFeatures": "polysparse.hashed",
    "ObservedPolynomialFeatures": "polysparse.observed",
    "PolynomialFeatures": "polysparse.transformers",
    "iter_load": "polysparse.store",
    "load": "polysparse.store",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'polysparse' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
