"""polysparse on GPUs: what is on the card is expanded and multiplied there.

`polysparse.expand`, the transformers, PolynomialOperator and the models take CSR matrices of CuPy
and of PyTorch, and `handler` lists what other packages hand over to this one. `places.hpp` has the
index arithmetic and the `.cu` files the kernels, which CuPy compiles at first use. Bases, columns
and plans are those of the packages above.
"""

from __future__ import annotations

try:
    import cupy  # noqa: F401
except ImportError as error:
    raise ImportError(
        "Matrices on a GPU need CuPy, also those of PyTorch: pip install 'polysparse[cuda]'."
    ) from error
