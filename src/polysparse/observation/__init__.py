"""Which columns of an expansion occur, and in how many rows, over any number of batches.

Never makes an expansion. Uses `engine` to count, and `basis`, `columns` and `matrix`.
"""
