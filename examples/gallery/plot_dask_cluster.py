"""
A Dask cluster on one machine
=============================

Rows that are stored in blocks on a cluster are expanded, counted and transformed on their workers.
:func:`~polysparse.expand` and the transformers take a Dask array and return a lazy one.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask import delayed
from dask.utils import key_split
from distributed import Client, get_task_stream, wait
from scipy.sparse import csr_array

import polysparse
from polysparse import ObservedPolynomialFeatures

# %%
# Start two workers in this process. ``Client("tcp://...")`` connects to another cluster. Each of 24
# blocks has rows with 30 ones in 3,000 features, a few of which are common.

client = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None)


@delayed
def clicks(seed, n_rows=2_500, n_features=3_000):
    """Generate a block of rows on the worker that needs it."""
    rng = np.random.default_rng(seed)
    columns = (n_features ** rng.random((n_rows, 30))).astype(np.int32)
    offsets = np.arange(0, columns.size + 1, 30, dtype=np.int32)
    X = csr_array((np.ones(columns.size), columns.ravel(), offsets), shape=(n_rows, n_features))
    X.sum_duplicates()
    return X


meta = csr_array((0, 0))
blocks = [da.from_delayed(clicks(seed), (2_500, 3_000), meta=meta) for seed in range(24)]
X = da.concatenate(blocks)
XP = polysparse.expand(X, degree=2, interaction_only=True)  # nothing is computed yet
print(XP.shape, XP.chunks[1])

# %%
# Observed columns are counted block by block, and the counts are added up. The result is the same
# as that of ``fit`` on all rows at once. Then the blocks are transformed, and stay on their
# workers.

with get_task_stream(client) as stream:
    poly = ObservedPolynomialFeatures(interaction_only=True, min_count=20).fit(X)
    wait(poly.transform(X).persist())
print(f"{poly.n_output_features_:,} of {XP.shape[1]:,} columns are kept")

# %%
# Dask records which worker ran which task, and when.

STEPS = {"count_block": "count a block", "sum": "add counts", "transform": "transform a block"}
OTHER = "generate a block"
COLORS = dict(zip([*STEPS.values(), OTHER], ("C0", "C3", "C1", "0.75"), strict=True))
spans = [
    (
        task["worker"],
        STEPS.get(key_split(task["key"]), "generate a block"),
        span["start"],
        span["stop"],
    )
    for task in stream.data
    for span in task["startstops"]
    if span["action"] == "compute"
]
begin = min(start for _, _, start, _ in spans)
workers = sorted({worker for worker, *_ in spans})
figure, ax = plt.subplots(figsize=(10, 3))
for step, color in COLORS.items():
    mine = [(workers.index(w), a - begin, b - a) for w, s, a, b in spans if s == step]
    lanes, starts, lengths = zip(*mine, strict=True)
    ax.barh(lanes, lengths, 0.7, starts, color=color, edgecolor="white", lw=0.5, label=step)
ax.set_yticks(range(len(workers)), [f"worker {n + 1}" for n in range(len(workers))])
ax.set_xlabel("seconds")
figure.legend(loc="outside upper center", ncols=4, frameon=False)
plt.show()
client.close()
