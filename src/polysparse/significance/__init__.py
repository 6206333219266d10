"""Significance: whether interactions are in the data by chance.

Uses `search` and `engine` for the statistics of all interactions, and `models` for main effects.
"""
