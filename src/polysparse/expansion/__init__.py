"""Expansions: planned, whole, or in blocks of rows.

`functions` holds the public functions, and `planning` the plan of an expansion; `whole` and
`by_blocks` compute it. There are no branches on dtypes and no loops over data here: those belong
to the engine.
"""
