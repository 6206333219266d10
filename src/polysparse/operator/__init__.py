"""The expanded matrix as a linear operator, without building it.

PolynomialOperator is a SciPy LinearOperator with the shape and the columns of an expansion. The
engine computes its matrix-vector products from X. Uses `expansion` to build some rows.
"""
