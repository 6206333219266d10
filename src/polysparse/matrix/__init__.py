"""Matrices in and out: the single entry point for input, and the arrays of a result.

Input of any kind becomes arrays that an engine can trust. The caller's arrays are never changed.
Uses `engine` to inspect arrays, and `machine`.
"""
