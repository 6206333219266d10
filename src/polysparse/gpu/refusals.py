"""What is not supported on a GPU."""

from __future__ import annotations

from polysparse.basis.monomial_basis import MonomialBasis


def require_no_groups(basis: MonomialBasis) -> None:
    """Raise ValueError for groups or terms, which the GPU kernels do not support."""
    if basis._is_grouped:
        what = "groups" if basis.terms is None else "terms"
        raise ValueError(
            f"X is on a GPU, where {what} are not supported: compute in memory, with X.get(), or "
            "X.cpu() for a tensor."
        )
