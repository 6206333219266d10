"""polysparse on GPUs: matrices on the card are expanded and multiplied there.

`polysparse.expand`, the transformers, PolynomialOperator and the models take CSR matrices of CuPy
and of PyTorch; `handler` lists the functions that they call here. `places.hpp` has the index
arithmetic and the `.cu` files the kernels, which CuPy compiles at first use. Bases, columns and
plans are those of the CPU.
"""
