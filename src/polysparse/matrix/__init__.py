"""Matrices in and out: the one door for input, and the arrays of a result.

Whatever the caller has becomes arrays that an engine can trust; the caller's own are never changed.
Uses `engine` to look through arrays, and `machine`.
"""
