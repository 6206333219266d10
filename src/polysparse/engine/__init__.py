"""The CPU engine: counts, fills, observes and multiplies, with the compiled module.

Only `cpu` imports the compiled module. It reads bases and columns by their attributes (see
`descriptions`) and imports nothing of polysparse except `thresholds`, so every other package may
call it.
"""
