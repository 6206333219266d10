"""
Choose the penalty
==================

With all pairs of features, there are more coefficients than the data can determine, so the strength
of the penalty matters. :class:`~polysparse.PolynomialLogisticRegressionCV` chooses it by
cross-validation, in less time than a grid search takes. The data are generated.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import log_loss

from polysparse import PolynomialLogisticRegressionCV

# %%
# 2,000 training rows with 30 features. All features have a main effect, and five pairs interact.

rng = np.random.default_rng(0)
X = rng.random((8_000, 30)) < 0.3
pairs = rng.choice(30, (5, 2), replace=False)
log_odds = X @ rng.normal(0, 0.5, 30) + 2.0 * sum(X[:, i] & X[:, j] for i, j in pairs) - 1
y = log_odds + rng.logistic(size=len(X)) > 0
X = csr_array(X.astype(float))
train, test = slice(0, 2_000), slice(2_000, 8_000)

# %%
# Try 25 values of C on five splits. Each split is fitted from the strongest penalty to the weakest,
# and each fit starts from the results of the previous ones.

model = PolynomialLogisticRegressionCV(
    Cs=np.logspace(-4, 2, 25), scoring="neg_log_loss", interaction_only=True
)
model.fit(X[train], y[train])
print(f"{model.coef_.size} terms, {model.scores_.size} fits, C = {model.C_:.3g}")

# %%
# The mean score of each penalty, with its standard error over the splits. On the left the penalty
# is too strong; on the right the model overfits.

model.plot_scores()
plt.show()

# %%
# Within one standard error of the best score, a stronger penalty predicts about as well.
# ``selection="one_standard_error"`` takes it:

simpler = PolynomialLogisticRegressionCV(
    Cs=model.Cs_, scoring="neg_log_loss", interaction_only=True, selection="one_standard_error"
)
simpler.fit(X[train], y[train])
for name, each in {"best": model, "one standard error": simpler}.items():
    loss = log_loss(y[test], each.predict_proba(X[test]))
    print(f"{name:19} C = {each.C_:<7.3g} log loss on test rows: {loss:.4f}")

# %%
# The fitted object is a logistic regression like any other. Its five largest pairs are the planted
# ones:

print("planted:", sorted(f"x{min(p)} x{max(p)}" for p in pairs))
model.top_terms(8)
