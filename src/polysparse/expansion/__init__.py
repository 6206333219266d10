"""Expansions: planned, whole, or in blocks of rows.

`functions` holds the public functions, `planning` what an expansion will be; `whole` and
`by_blocks` make it. No dtype branches and no loops over data: those are the engine's.
"""
