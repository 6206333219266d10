"""
Choose the penalty
==================

With all pairs of features there are more coefficients than the data can tell, so the strength of
the penalty matters. :class:`~polysparse.PolynomialLogisticRegressionCV` chooses it by
cross-validation, in less time than a grid search takes. The data are generated.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import log_loss

from polysparse import PolynomialLogisticRegressionCV

# %%
# 2,000 visits with 30 properties. Some of these matter alone, and five pairs matter together.

rng = np.random.default_rng(0)
X = rng.random((8_000, 30)) < 0.3
pairs = rng.choice(30, (5, 2), replace=False)
score = X @ rng.normal(0, 0.5, 30) + 2.0 * sum(X[:, i] & X[:, j] for i, j in pairs) - 1
y = score + rng.logistic(size=len(X)) > 0
X = csr_array(X.astype(float))
train, test = slice(0, 2_000), slice(2_000, 8_000)

# %%
# 25 values of C, five splits. Every split is fitted from the strongest penalty to the
# weakest; each fit starts where the last ones lead.

model = PolynomialLogisticRegressionCV(
    Cs=np.logspace(-4, 2, 25), scoring="neg_log_loss", interaction_only=True
)
model.fit(X[train], y[train])
print(f"{model.coef_.size} terms, {model.scores_.size} fits, C = {model.C_:.3g}")

# %%
# The mean score of each penalty, with its standard error over the splits. On the left the model is
# too rigid, on the right it learns noise.

model.plot_scores()
plt.show()

# %%
# Within one standard error of the best score, a stronger penalty predicts about as well.
# ``selection="one_standard_error"`` takes it:

sparing = PolynomialLogisticRegressionCV(
    Cs=model.Cs_, scoring="neg_log_loss", interaction_only=True, selection="one_standard_error"
)
sparing.fit(X[train], y[train])
for name, each in {"best": model, "one standard error": sparing}.items():
    loss = log_loss(y[test], each.predict_proba(X[test]))
    print(f"{name:19} C = {each.C_:<7.3g} log loss on other rows: {loss:.4f}")

# %%
# The fitted object is a logistic regression like any other: here are the pairs that were planted.

print("planted:", sorted(f"x{min(p)} x{max(p)}" for p in pairs))
model.top_terms(8)
