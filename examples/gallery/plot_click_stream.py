"""
Learn from a stream
===================

:class:`~polysparse.PolynomialFTRLClassifier` learns from rows as they arrive, on interactions that
are never built. Each row is predicted before the model learns from it, so the loss needs no
held-out rows. If Vowpal Wabbit is installed, its loss on the same stream is drawn, too. The clicks
are generated.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array

from polysparse import PolynomialFTRLClassifier

# %%
# Each of 60,000 rows has a user, an item and an hour. Clicks depend on the hour and two planted
# pairs: user 8 likes item 2, and user 3 likes item 5.

N_ROWS = 60_000
rng = np.random.default_rng(0)
sizes = {"user": 12, "item": 10, "hour": 24}
chosen = {name: rng.integers(size, size=N_ROWS) for name, size in sizes.items()}
first = np.cumsum([0, *sizes.values()])
indices = np.column_stack([f + chosen[name] for f, name in zip(first[:-1], sizes, strict=True)])
X = csr_array((np.ones(3 * N_ROWS), indices.ravel(), np.arange(0, 3 * N_ROWS + 1, 3)))
names = [f"{name}={level}" for name, size in sizes.items() for level in range(size)]


def together(user, item):
    """Whether this user sees this item."""
    return (chosen["user"] == user) & (chosen["item"] == item)


log_odds = 5.0 * (together(8, 2) | together(3, 5)) - 1.5 + 0.05 * chosen["hour"]
y = log_odds + rng.logistic(size=N_ROWS) > 0

# %%
# Learn from blocks of rows, as they would arrive. The learning rate and the scales of features need
# no tuning.

model = PolynomialFTRLClassifier(n_columns=2**16, groups=sizes, feature_names=names)
for begin in range(0, N_ROWS, 1_000):
    block = slice(begin, begin + 1_000)
    model.partial_fit(X[block], y[block], classes=[False, True])
print(f"mean loss {model.progressive_loss_:.4f}, of the last rows {model.recent_loss_:.4f}")

# %%
# The loss falls as the model learns. Both learners predict each row before they learn from it.

axes = model.plot_progress()
try:
    from vowpalwabbit import pyvw
except ImportError:
    print("Vowpal Wabbit is not installed")
else:
    vw = pyvw.Workspace("--interactions ff -b 16 --loss_function logistic --quiet")
    losses = np.empty(N_ROWS)
    for row, is_click in enumerate(y):
        features = " ".join(map(str, indices[row]))
        example = vw.example(f"{1 if is_click else -1} |f {features}")
        vw.learn(example)
        losses[row] = example.get_loss()
        vw.finish_example(example)
    seen = np.arange(1, N_ROWS + 1)
    axes.plot(
        seen[999:], (np.cumsum(losses) / seen)[999:], "C1", label="Vowpal Wabbit, mean so far"
    )
axes.legend()
plt.show()

# %%
# Hashed columns have no names of their own, so the model looks for terms in a sample of the rows.
# The planted pairs come first:

terms = model.top_terms(4)
print(terms[["name", "weight"]].round(2))
assert set(terms["name"][:2]) == {"user=8 item=2", "user=3 item=5"}
