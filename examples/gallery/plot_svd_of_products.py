"""
Directions in the space of all products
=======================================

:class:`~polysparse.PolynomialOperator` is a linear operator for SciPy's solvers. Here ``svds``
finds the heaviest directions of all products of up to three pixels: a matrix that is never built.
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
print(f"{A.shape[0]:,} x {A.shape[1]:,}; built, {plan.nbytes / 1e6:.0f} MB")

# %%
# The second and third direction, for pixels as they are and for their products.

figure, axes = plt.subplots(1, 2, figsize=(10, 5))
for ax, operator, title in zip(
    axes, (X, A), ("64 pixels", "all products of up to three"), strict=True
):
    u, s, _ = svds(operator, k=3, random_state=0)
    points = ax.scatter(*(u * s)[:, 1::-1].T, c=y, cmap="tab10", s=14, alpha=0.8)
    ax.set(title=title, xticks=[], yticks=[])
points.set_clim(-0.5, 9.5)
figure.colorbar(points, ax=axes, label="digit", ticks=range(10))
plt.show()
