"""Generate people.csv: 4,000 people, whose income depends on three planted interactions.

`python examples/people.py` writes the file next to this script. It always has the same rows.
"""

from pathlib import Path

import numpy as np
import pandas as pd

LEVELS = {
    "education": ["school", "college", "bachelor", "master"],
    "occupation": ["sales", "craft", "service", "office", "technology"],
    "shift": ["day", "night"],
    "region": ["north", "south", "east", "west"],
}
PLANTED = {
    ("education=master", "occupation=sales"): 3.0,
    ("education=college", "occupation=technology"): 2.5,
    ("occupation=craft", "shift=night"): 2.5,
}


def people(n_rows=4_000):
    """Return a table. Hours have a main effect, and the region has no effect."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.choice(levels, n_rows) for name, levels in LEVELS.items()})
    table["hours"] = rng.integers(20, 61, n_rows)
    log_odds = 0.04 * (table["hours"] - 40) - 1.5
    for pair, effect in PLANTED.items():
        (one, level), (other, second) = (feature.split("=") for feature in pair)
        log_odds += effect * (table[one].eq(level) & table[other].eq(second))
    table["income"] = np.where(log_odds + rng.logistic(size=n_rows) > 0, ">50K", "<=50K")
    return table


if __name__ == "__main__":
    file = Path(__file__).with_name("people.csv")
    people().to_csv(file, index=False, lineterminator="\n")
