"""
How many hashed columns are enough?
===================================

:class:`~polysparse.HashedPolynomialFeatures` sends every product to one of ``n_columns`` columns,
and learns nothing. Too few columns, and products that share one get into each other's way.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import SGDClassifier

from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures

# %%
# Rows of 15 ones over 2,000 features. The label hangs on which of 300 planted pairs a row has.

rng = np.random.default_rng(1)
n_rows, n_features = 20_000, 2_000
columns = (n_features ** rng.random((n_rows, 15))).astype(np.int32)
offsets = np.arange(0, columns.size + 1, 15, dtype=np.int32)
X = csr_array((np.ones(columns.size), columns.ravel(), offsets), shape=(n_rows, n_features))
X.sum_duplicates()
X.data[:] = 1
pairs = np.sort((60 ** rng.random((300, 2))).astype(np.int64), axis=1)
weights = 2 * rng.standard_normal(len(pairs))
score = X[:, pairs[:, 0]].multiply(X[:, pairs[:, 1]]) @ weights
y = score + rng.logistic(size=n_rows) > np.median(score)
train, test = slice(0, 15_000), slice(15_000, n_rows)

# %%
# The same model on features alone, on observed columns, and on more and more hashed ones.


def accuracy(transform):
    """Train on what transform makes of X, and return the accuracy on other rows."""
    model = SGDClassifier(loss="log_loss", alpha=1e-4, average=True, random_state=0)
    return model.fit(transform(X[train]), y[train]).score(transform(X[test]), y[test])


observed = ObservedPolynomialFeatures(interaction_only=True).fit(X[train])
bits = range(6, 23, 2)
hashed = [HashedPolynomialFeatures(interaction_only=True, n_columns=2**b) for b in bits]
scores = [accuracy(poly.transform) for poly in hashed]
found = [poly.collisions(X[train]) for poly in hashed]
shared = [each.n_sharing / each.n_monomials for each in found]

# %%
# A fifth as many columns as there are distinct products is enough here for the accuracy of exact
# columns, although nearly all products share one: most are rare, and do little harm.

figure, ax = plt.subplots()
n_columns = [2**b for b in bits]
ax.plot(n_columns, scores, "o-", color="C0", label="hashed products")
for label, value, style in (
    ("every product its own column", accuracy(observed.transform), "-"),
    ("no products", accuracy(lambda X: X), ":"),
):
    ax.axhline(value, color="0.4", ls=style, label=label)
ax.axvline(observed.n_output_features_, color="0.75", lw=1)
ax.annotate(
    "distinct products", (observed.n_output_features_, ax.get_ylim()[0]), (-4, 4),
    textcoords="offset points", rotation=90, ha="right", va="bottom", color="0.5",
)  # fmt: skip
ax.set(xscale="log", xlabel="n_columns", ylabel="accuracy on other rows")
ax.set_xscale("log", base=2)
share = ax.twinx()
share.plot(n_columns, shared, "--", color="C1")
share.set_ylabel("products that share a column", color="C1")
share.yaxis.set_major_formatter("{x:.0%}")
share.grid(False)
share.spines["right"].set_visible(True)
ax.legend(loc="lower center")
plt.show()
