"""
Singular vectors of the degree-3 expansion
==========================================

:class:`~polysparse.PolynomialOperator` is a linear operator for SciPy's solvers. Here ``svds``
finds the top singular vectors of the degree-3 expansion of pixels, without building it.
"""

import matplotlib.pyplot as plt
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds
from sklearn.datasets import load_digits

import polysparse
from polysparse import PolynomialOperator

# %%
# The matrix would have 47,904 columns.

images, y = load_digits(return_X_y=True)
X = csr_array((images > 7).astype(float))
A = PolynomialOperator(X, degree=3, include_bias=False)
plan = polysparse.plan(X, degree=3, include_bias=False)
print(f"{A.shape[0]:,} x {A.shape[1]:,}; would take {plan.nbytes / 1e6:.0f} MB")

# %%
# Project the images on the second and third singular vector, for pixels and for the expansion.

figure, axes = plt.subplots(1, 2, figsize=(10, 5))
for ax, operator, title in zip(
    axes, (X, A), ("64 pixels", "all terms of up to three pixels"), strict=True
):
    u, s, _ = svds(operator, k=3, random_state=0)
    points = ax.scatter(*(u * s)[:, 1::-1].T, c=y, cmap="tab10", s=14, alpha=0.8)
    ax.set(title=title, xticks=[], yticks=[])
points.set_clim(-0.5, 9.5)
figure.colorbar(points, ax=axes, label="digit", ticks=range(10))
plt.show()
