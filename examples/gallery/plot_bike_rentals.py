"""
From a table to the interactions that matter
============================================

Bikes are rented by the hour. When, and in which weather? Pass a table of categories and numbers to
:class:`~polysparse.PolynomialRidge`, and list the variables that interact. The data are generated,
so the answer is known.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from polysparse import PolynomialRidge, TableEncoder

# %%
# A table of 20,000 hours, with strings, categories and numbers. Some weather reports are missing.

rng = np.random.default_rng(0)
n_hours = 20_000
weather = ["clear", "cloudy", "rain", "snow"]
rentals = pd.DataFrame(
    {
        "hour": pd.Categorical(rng.integers(0, 24, n_hours)),
        "day": rng.choice(["workday", "weekend", "holiday"], n_hours, p=[0.68, 0.28, 0.04]),
        "weather": rng.choice(weather, n_hours, p=[0.5, 0.3, 0.17, 0.03]),
        "season": rng.choice(["spring", "summer", "fall", "winter"], n_hours),
        "temperature": rng.normal(15, 8, n_hours).round(1),
        "wind": rng.gamma(3, 4, n_hours).round(1),
    }
)
rentals.loc[rng.random(n_hours) < 0.02, "weather"] = None

# %%
# Two interactions are planted. The hour matters differently on workdays, when people commute, and
# on other days, when they go out in the afternoon. Warm weather only matters in dry hours. Wind and
# season have no effect.

hour = rentals["hour"].to_numpy().astype(int)
commute = np.exp(-((hour - 8) ** 2) / 4) + np.exp(-((hour - 18) ** 2) / 6)
leisure = np.exp(-((hour - 15) ** 2) / 18)
is_dry = rentals["weather"].isin(["clear", "cloudy"])
count = 200 + 250 * np.where(rentals["day"] == "workday", commute, leisure)
count += 8 * rentals["temperature"] * is_dry + rng.normal(0, 40, n_hours)
rentals.head(3)

# %%
# Pass the table to the model. Each column of strings or categories becomes a group of indicators.
# Pairs of levels of the same variable are left out.

train, test = slice(0, 15_000), slice(15_000, n_hours)
model = PolynomialRidge(alpha=10).fit(rentals[train], count[train])
single = PolynomialRidge(alpha=10, degree=1).fit(rentals[train], count[train])
print(f"{rentals.shape[1]} variables, {model.coef_.size:,} terms")
print(f"R^2, single variables: {single.score(rentals[test], count[test]):.3f}")
print(f"R^2, pairs, too:       {model.score(rentals[test], count[test]):.3f}")

# %%
# Which variables matter, and which pairs? The diagonal shows single variables, the other cells show
# pairs.

model.plot_importance()
plt.show()

# %%
# Which levels are behind "hour:day"? The morning and the evening of workdays:

top = model.top_terms(6, within="hour:day")
top[["name", "weight"]].round(1)

# %%
# Snow and missing reports are rare. Set ``min_frequency`` in a :class:`~polysparse.TableEncoder` to
# merge rare levels into "(other)".

encoder = TableEncoder(min_frequency=0.035)
compact = PolynomialRidge(alpha=10, categorical_features=encoder).fit(rentals[train], count[train])
print(*compact.table_encoder_.get_feature_names_out()[24:31], "...")
print(f"{compact.coef_.size:,} terms, R^2 {compact.score(rentals[test], count[test]):.3f}")

# %%
# The model found what was planted: the two pairs with the largest importance are those that
# determine the number of rentals.

importance = model.importance()
pairs = [name for name in importance["name"] if ":" in name]
print("planted: hour:day weather:temperature")
print("found:  ", *pairs[:2])
