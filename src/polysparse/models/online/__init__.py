"""Models that learn from rows as they arrive.

`learner.py` has the state of a learner and divides rows into blocks, `scaling.py` finds its scales
and rates from the first rows, `progress.py` keeps what it predicted before it learned, and
`estimators.py` has the public models.
"""
