"""The expanded matrix as something to multiply with, never stored.

PolynomialOperator is a LinearOperator of SciPy with the shape and the columns of an expansion. Its
products come from an engine, which reads X alone. Uses `expansion`, for a look at some rows.
"""
