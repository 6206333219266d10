"""
Handwritten digits: pairs of pixels
===================================

Which pairs of inked pixels indicate a digit? Fit a model of ten classes to all pairs of the 64
pixels of scikit-learn's digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from polysparse import PolynomialLogisticRegression

# %%
# Pixels have 17 levels of gray. Here, pixels above 7 become 1. Pairs of pixels predict better than
# single pixels, and triples a little better than pairs.

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
# The pairs with the largest weights for each digit, drawn over its mean image: blue for positive
# weights, orange for negative ones.

model = models[2]
basis = model.column_space_.basis
pairs = basis.degree_slices[2]
figure, axes = plt.subplots(2, 5, figsize=(10, 4.6))
for digit, ax in enumerate(axes.flat):
    ax.imshow(X[y == digit].mean(axis=0).reshape(8, 8), cmap="Greys", vmax=2.2)
    weights = model.coef_[digit, pairs]
    largest = np.argsort(-np.abs(weights))[:14]
    for pair, weight in zip(basis.unrank(pairs.start + largest), weights[largest], strict=True):
        rows, columns = np.divmod(pair, 8)
        ax.plot(columns, rows, "o-", color="C0" if weight > 0 else "C1", lw=25 * abs(weight), ms=3)
    ax.set(xticks=[], yticks=[], title=digit)
    ax.grid(False)
plt.show()
