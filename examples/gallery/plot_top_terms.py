"""
Which pairs tell malignant from benign?
=======================================

A logistic regression on all pairs of binned measurements, and its heaviest terms by name. The pairs
are never built.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import KBinsDiscretizer

from polysparse import PolynomialLogisticRegression

# %%
# 30 measurements of 569 tumors come with scikit-learn. Each becomes four columns, of which one is
# 1: in which quarter of its range a measurement is.

data = load_breast_cancer()
bins = KBinsDiscretizer(4, encode="onehot", strategy="uniform")
quarters = ("lowest", "low", "high", "highest")
names = [f"[{name} {quarter}]" for name in data.feature_names for quarter in quarters]
X = bins.fit_transform(data.data)
y = data.target_names[data.target]

# %%
# Cross-validation chooses the penalty. At their best both models are equally good on so few rows.
# The model of pairs needs a stronger penalty.

penalties = np.logspace(-3, 1, 7)
scores = {
    degree: [
        cross_val_score(
            PolynomialLogisticRegression(C, degree=degree, interaction_only=True),
            X, y, cv=4, scoring="neg_log_loss",
        ).mean()
        for C in penalties
    ]
    for degree in (1, 2)
}  # fmt: skip

figure, ax = plt.subplots()
for degree, label in ((1, "single columns"), (2, "columns and pairs")):
    ax.semilogx(penalties, -np.array(scores[degree]), "o-", label=label)
ax.set(xlabel="C", ylabel="log loss, cross-validated")
ax.legend()
plt.show()

# %%
# The terms of the model with the best penalty. ``rows`` is the number of rows in which a term is 1.

best = penalties[np.argmax(scores[2])]
model = PolynomialLogisticRegression(best, interaction_only=True, feature_names=names).fit(X, y)
print(f"{model.coef_.shape[1]:,} terms")
model.top_terms(5).round(3)

# %%

model.plot_top_terms(20).set_xlabel("weight: towards benign, or malignant")
plt.show()
