"""
Three features that only matter together
========================================

100,000 features have 167 trillion triples. ``top_interactions`` finds those with the largest scores
by exact search, and ``interaction_test`` tests which of them are not due to chance.
"""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from polysparse import MonomialBasis, PolynomialRidge, interaction_test, top_interactions

# %%
# A few features are frequent and most are rare, as words are. Three triples change the target in
# 60 rows each. Their features and pairs also occur in other rows, where they have no joint effect.

N_ROWS, N_FEATURES, PER_ROW, EACH = 20_000, 100_000, 30, 60
PLANTED = {(300, 4_000, 70_000): 2.0, (25, 900, 12_345): -1.7, (2_000, 30_000, 99_999): 1.5}
rng = np.random.default_rng(0)
weights = 1 / np.arange(10, N_FEATURES + 10)
features = [rng.choice(N_FEATURES, N_ROWS * PER_ROW, p=weights / weights.sum())]
rows = [np.repeat(np.arange(N_ROWS), PER_ROW)]
for triple in PLANTED:
    for members in (triple, *combinations(triple, 2)):
        features.append(np.repeat(members, EACH))
        rows.append(np.tile(rng.choice(N_ROWS, EACH, replace=False), len(members)))
places = np.concatenate(rows), np.concatenate(features)
X = sparse.csr_array((np.ones(len(places[0])), places), shape=(N_ROWS, N_FEATURES))
X.data[:] = 1

effects = 0.3 * rng.normal(size=N_FEATURES)
y = X @ effects + rng.normal(size=N_ROWS)
for triple, effect in PLANTED.items():
    y += effect * X[:, list(triple)].toarray().prod(axis=1)
basis = MonomialBasis(N_FEATURES, (3, 3), interaction_only=True, include_bias=False)
print(f"{X.shape[1]:,} features, {basis.n_columns:,} triples")

# %%
# Search the residuals of a linear model for triples that occur in 30 rows or more. Their features
# occur in at least as many rows, so all other features can be left out of the linear model.

frequent = np.flatnonzero(X.sum(axis=0) >= 30)
main = PolynomialRidge(degree=1).fit(X[:, frequent], y)
residuals = y - main.predict(X[:, frequent])
top = top_interactions(X, residuals, 12, degree=(3, 3), score="correlation", min_count=30)
print(top)

# %%
# The largest of so many correlations would be large by chance, too. The test compares them with the
# largest ones for simulated targets, which do not depend on interactions.

names = [f"x{j}" for j in frequent]
tested = interaction_test(
    X[:, frequent],
    y,
    12,
    degree=(3, 3),
    min_count=30,
    n_null=99,
    feature_names=names,
    random_state=0,
)
print(tested)

# %%
# The statistics of the planted triples are larger than those for any simulated target. The next
# ones are not.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
top.plot(ax=left)
right.hist(tested.null_maxima, bins=12, color="0.8")
for name, score, p in zip(tested.names, tested.scores, tested.p_values, strict=True):
    is_found = p <= 0.05
    right.axvline(abs(score), color="C1" if is_found else "0.5", lw=2 if is_found else 0.7)
    if is_found:
        label, at = f"{name}: p={p:.2g}", (abs(score) - 0.05, 0.97)
        where = right.get_xaxis_transform()
        right.annotate(label, at, xycoords=where, rotation=90, ha="right", va="top")
right.set_xlabel("size of the statistic; gray: the largest of each simulated target")
right.set_ylabel("simulated targets")
plt.show()

# %%
# The test found what was planted, and nothing else:

print("planted:", ", ".join(sorted(" ".join(f"x{j}" for j in triple) for triple in PLANTED)))
print("found:  ", ", ".join(sorted(tested.significant(0.05).names)))
