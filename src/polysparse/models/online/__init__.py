"""Models that learn from rows as they arrive.

`learner.py` has the state of a learner and divides rows into blocks, `scaling.py` has its scales
and rates, `refusals.py` what it cannot learn from, `progress.py` keeps what it predicted before it
learned, `sampling.py` keeps some rows to name hashed columns by, and `estimators.py` has the public
models.
"""
