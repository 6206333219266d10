"""
How many claims: counts with exposures
======================================

Insurance policies run for different periods, so numbers of claims cannot be compared directly.
:class:`~polysparse.PolynomialPoissonRegressor` models the rate of claims per year, with the
logarithm of the period as an offset. Which variables interact? The data are generated, so the
answer is known.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import mean_poisson_deviance

from polysparse import PolynomialPoissonRegressor

# %%
# A table of 40,000 policies.

rng = np.random.default_rng(0)
n_policies = 40_000
policies = pd.DataFrame(
    {
        "age": rng.choice(["18 to 24", "25 to 39", "40 to 64", "65 and over"], n_policies),
        "car": rng.choice(["small", "family", "sports", "van"], n_policies, p=[0.4, 0.4, 0.1, 0.1]),
        "area": rng.choice(["city", "suburb", "country"], n_policies),
        "fuel": rng.choice(["petrol", "diesel", "electric"], n_policies),
        "color": rng.choice(["red", "white", "black", "blue"], n_policies),
    }
)
years = rng.uniform(0.1, 2.0, n_policies)

# %%
# Young drivers have more claims, and so do cars in the city. Two interactions are planted: young
# drivers of sports cars, and vans in the city. Fuel and color have no effect.

is_young, is_city = policies["age"].eq("18 to 24"), policies["area"].eq("city")
log_rate = -2.5 + 0.4 * is_young + 0.4 * is_city
log_rate += 1.2 * (is_young & policies["car"].eq("sports"))
log_rate += 1.0 * (is_city & policies["car"].eq("van"))
claims = rng.poisson(years * np.exp(log_rate))
policies.assign(years=years.round(2), claims=claims).head(3)

# %%
# Pass the logarithm of the years as ``offset`` to ``fit`` and to ``predict``. On held-out policies,
# pairs of variables lower the deviance. Without the offset, predictions ignore how long a policy
# runs.

train, test = slice(0, 30_000), slice(30_000, n_policies)
log_years = np.log(years)
model = PolynomialPoissonRegressor(1e-4)
model.fit(policies[train], claims[train], offset=log_years[train])
single = PolynomialPoissonRegressor(1e-4, degree=1)
single.fit(policies[train], claims[train], offset=log_years[train])
without = PolynomialPoissonRegressor(1e-4).fit(policies[train], claims[train])
predictions = {
    "single variables": single.predict(policies[test], offset=log_years[test]),
    "pairs, too": model.predict(policies[test], offset=log_years[test]),
    "pairs, but no offset": without.predict(policies[test]),
}
for name, expected in predictions.items():
    print(f"{name:22} deviance {mean_poisson_deviance(claims[test], expected):.4f}")

# %%
# Which variables matter, and which pairs?

model.plot_importance()
plt.show()

# %%
# Without an offset, ``predict`` returns claims per year. Sort the test policies by this prediction,
# and divide them into five groups. The observed rate of each group should be the predicted one:

per_year = model.predict(policies[test])
order = np.argsort(per_year)
groups = np.array_split(order, 5)
predicted = [np.average(per_year[g], weights=years[test][g]) for g in groups]
observed = [claims[test][g].sum() / years[test][g].sum() for g in groups]

figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.plot([0, max(predicted)], [0, max(predicted)], color="0.7")
ax.plot(predicted, observed, "o")
ax.set(xlabel="predicted claims per year", ylabel="observed claims per year")
plt.show()

# %%
# The model found what was planted: these pairs of variables have the largest importance. Weights
# are differences of the logarithm of the rate; regularization moves a part of them to single
# variables.

importance = model.importance()
pairs = [name for name in importance["name"] if ":" in name]
for pair in pairs[:2]:
    top = model.top_terms(1, within=pair)
    print(f"{pair}: {top['name'][0]}, {top['weight'][0]:+.2f}")
