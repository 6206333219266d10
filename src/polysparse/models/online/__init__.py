"""Models that learn from rows as they arrive.

`learner.py` has the state of a learner and divides rows into blocks, `scaling.py` has its scales
and rates, `refusals.py` what it cannot learn from, `progress.py` keeps what it predicted before it
learned, and `sampling.py` keeps some rows to name hashed columns by. `base.py` has what the public
models share, which are in `classifier.py` and `regressor.py`.
"""
