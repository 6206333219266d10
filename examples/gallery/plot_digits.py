"""
Handwritten digits: pairs of pixels
===================================

Which two pixels, inked together, speak for a digit? A model of ten classes on all pairs of the 64
pixels of scikit-learn's digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from polysparse import PolynomialLogisticRegression

# %%
# Pixels have 17 levels of gray; what is not white is 1 here.

images, y = load_digits(return_X_y=True)
X = (images > 7).astype(float)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
models = {
    degree: PolynomialLogisticRegression(0.1, degree=degree, interaction_only=True)
    for degree in (1, 2, 3)
}
for degree, model in models.items():
    score = model.fit(X_train, y_train).score(X_test, y_test)
    print(f"degree {degree}: {model.coef_.shape[1]:>6,} columns, accuracy {score:.3f}")

# %%
# The heaviest pairs of each digit, drawn over its mean image: blue for pairs that speak for it,
# orange for those that speak against it.

model = models[2]
basis = model.column_space_.basis
pairs = basis.degree_slices[2]
figure, axes = plt.subplots(2, 5, figsize=(10, 4.6))
for digit, ax in enumerate(axes.flat):
    ax.imshow(X[y == digit].mean(axis=0).reshape(8, 8), cmap="Greys", vmax=2.2)
    weights = model.coef_[digit, pairs]
    heaviest = np.argsort(-np.abs(weights))[:14]
    for pair, weight in zip(basis.unrank(pairs.start + heaviest), weights[heaviest], strict=True):
        rows, columns = np.divmod(pair, 8)
        ax.plot(columns, rows, "o-", color="C0" if weight > 0 else "C1", lw=25 * abs(weight), ms=3)
    ax.set(xticks=[], yticks=[], title=digit)
    ax.grid(False)
plt.show()
