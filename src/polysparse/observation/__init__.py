"""Which columns of an expansion occur, and in how many rows, over any number of batches.

The expansion itself is never computed. Uses `engine` to count, and `basis`, `columns` and `matrix`.
"""
