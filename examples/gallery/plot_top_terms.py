"""
Which pairs distinguish malignant from benign tumors?
=====================================================

Fit a logistic regression to all pairs of binned measurements, without building the pairs, and list
its largest terms by name. On these data, pairs do not improve predictions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import KBinsDiscretizer

from polysparse import PolynomialLogisticRegression

# %%
# 30 measurements of 569 tumors come with scikit-learn. Each measurement becomes four columns, one
# for each quarter of its range.

data = load_breast_cancer()
bins = KBinsDiscretizer(4, encode="onehot", strategy="uniform")
quarters = ("lowest", "low", "high", "highest")
names = [f"[{name} {quarter}]" for name in data.feature_names for quarter in quarters]
X = bins.fit_transform(data.data)
y = data.target_names[data.target]

# %%
# Choose the penalty by cross-validation. With the best penalty, both models predict equally well.
# The model with pairs needs a stronger penalty, because it has many more coefficients.
#
# Pairs do not help here because single measurements already separate the classes, and because 569
# rows are too few to estimate thousands of pairs. Expect pairs to help if there are many rows for
# each pair, and if the effect of a feature depends on another one: see
# :doc:`/gallery/plot_word_pairs`, where accuracy is 51 % for single words and 97 % for pairs.

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
# List the terms of the model with the best penalty. ``rows`` is the number of rows in which a term
# is 1.

best = penalties[np.argmax(scores[2])]
model = PolynomialLogisticRegression(best, interaction_only=True, feature_names=names).fit(X, y)
print(f"{model.coef_.shape[1]:,} terms")
model.top_terms(5).round(3)

# %%

model.plot_top_terms(20).set_xlabel("weight: negative for benign, positive for malignant")
plt.show()
