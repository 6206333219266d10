"""
Time and memory compared with scikit-learn
==========================================

Both libraries expand the same matrices while this page is built. See :doc:`/speed` for careful
measurements.
"""

import tracemalloc
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from sklearn.preprocessing import PolynomialFeatures

import polysparse

# %%
# The matrices have 2,000 columns, 20 values in each row, and more and more rows. Both results are
# compared.


def rows_of_20(n_rows):
    """Return a matrix whose rows have 20 random values."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(100, size=(n_rows, 20)) + 100 * np.arange(20), axis=1)
    arrays = rng.random(columns.size), columns.ravel(), np.arange(0, columns.size + 1, 20)
    return csr_array(arrays, shape=(n_rows, 2_000))


def cost(expand, X):
    """Return the best of three times, and the peak of memory."""
    seconds = []
    for _ in range(3):
        start = perf_counter()
        expand(X)
        seconds.append(perf_counter() - start)
    tracemalloc.start()
    expand(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return min(seconds), peak


sides = {
    "scikit-learn": lambda X: PolynomialFeatures(2).fit_transform(X),
    "polysparse": lambda X: polysparse.PolynomialFeatures(2).fit_transform(X),
}
sizes = [300, 1_000, 3_000, 10_000, 30_000]
costs, results = {side: [] for side in sides}, []
for size in sizes:
    X = rows_of_20(size)
    theirs, ours = (expand(X) for expand in sides.values())
    assert abs(ours - theirs).max() == 0
    results.append(ours.data.nbytes + ours.indices.nbytes + ours.indptr.nbytes)
    for side, expand in sides.items():
        costs[side].append(cost(expand, X))

# %%
# polysparse only needs the memory of the result.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
for side, color in (("scikit-learn", "0.45"), ("polysparse", "C0")):
    seconds, peaks = zip(*costs[side], strict=True)
    left.loglog(sizes, np.array(seconds) * 1e3, "o-", color=color, label=side)
    right.loglog(sizes, np.array(peaks) / 1e6, "o-", color=color, label=side)
right.loglog(sizes, np.array(results) / 1e6, ":", color="C1", lw=3, label="the result")
left.set(xlabel="rows", title="time, ms")
right.set(xlabel="rows", title="peak of memory, MB")
for ax in (left, right):
    ax.legend()
plt.show()
