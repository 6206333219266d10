"""
A click log: keep only the columns that occur
=============================================

One-hot data have far more possible pairs than rows, and most pairs never occur.
:class:`~polysparse.ObservedPolynomialFeatures` keeps those that occur in at least ``min_count``
rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import SGDClassifier

from polysparse import MonomialBasis, ObservedPolynomialFeatures

# %%
# A generated log has 12 fields, each with a few common and many rare levels. Whether an impression
# is clicked depends on the pair of levels of the first two fields, and on chance.

rng = np.random.default_rng(0)
n_rows, n_levels = 40_000, np.array([30, 30, *[2_000] * 10])
levels = (n_levels ** rng.random((n_rows, len(n_levels)))).astype(np.int64)
columns = levels + np.concatenate([[0], np.cumsum(n_levels)[:-1]])
X = csr_array(
    (np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, len(n_levels))),
    shape=(n_rows, n_levels.sum()),
)
taste = rng.standard_normal((30, 30)) * 2
y = taste[levels[:, 0], levels[:, 1]] + rng.logistic(size=n_rows) > 0
train, test = slice(0, 30_000), slice(30_000, n_rows)

# %%
# With all pairs there would be 201 million columns. How many of them occur?

basis = MonomialBasis(X.shape[1], interaction_only=True)
poly = ObservedPolynomialFeatures(interaction_only=True).fit(X[train])
print(f"{basis.n_columns:,} columns, of which {poly.n_output_features_:,} occur")

# %%
# Most occur only once, which is not enough to learn from. Train a model for several ``min_count``.

counts = [1, 2, 3, 5, 10, 20, 50, 100, 300, 1_000]
kept, accuracy = [], []
for min_count in counts:
    chosen = ObservedPolynomialFeatures(interaction_only=True, min_count=min_count)
    model = SGDClassifier(loss="log_loss", alpha=3e-5, random_state=0)
    model.fit(chosen.fit_transform(X[train]), y[train])
    kept.append(chosen.n_output_features_)
    accuracy.append(model.score(chosen.transform(X[test]), y[test]))

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
rows = np.sort(poly.counts_)[::-1]
left.loglog(np.arange(1, len(rows) + 1), rows, color="C0")
left.set(xlabel="columns, the most frequent first", ylabel="rows with the column")
left.set_title("a few pairs are common, most occur once")
right.semilogx(kept, accuracy, "o-", color="C1")
for n, score, min_count in zip(kept, accuracy, counts, strict=True):
    right.annotate(f"{min_count:,}", (n, score), (0, 7), textcoords="offset points", ha="center")
right.set(xlabel="columns kept", ylabel="accuracy on test rows")
right.set_title("accuracy, labeled by min_count")
right.margins(0.1)
plt.show()

# %%
# The model found what was planted: the largest terms are pairs of levels of the first two fields.
# Their features are numbered from 0 to 29 and from 30 to 59.

chosen = ObservedPolynomialFeatures(interaction_only=True, min_count=20)
model = SGDClassifier(loss="log_loss", alpha=3e-5, random_state=0)
model.fit(chosen.fit_transform(X[train]), y[train])
largest = np.argsort(-np.abs(model.coef_[0]))[:30]
names = chosen.get_feature_names_out()[largest]
pairs = [[int(feature[1:]) for feature in name.split()] for name in names]
found = sum(len(pair) == 2 and pair[0] < 30 <= pair[1] < 60 for pair in pairs)
print(f"{found} of the {len(pairs)} largest terms are pairs of the first two fields")
