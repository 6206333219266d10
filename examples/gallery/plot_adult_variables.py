"""
Which variables interact?
=========================

From a census table to a heat map of interacting variables. A logistic regression has a term for
each pair of levels of different variables.
:meth:`~polysparse.PolynomialLogisticRegression.importance` adds up the terms of each pair of
variables, so you read "education:occupation" instead of thousands of pairs of levels.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from polysparse import PolynomialLogisticRegression

# %%
# The data are generated, in the shape of the Adult data of UCI: 20,000 people with 12 categorical
# variables, their age and their hours of work.

LEVELS = {
    "workclass": "private self-employed federal state local unpaid",
    "education": "primary school some-college associate bachelor master doctorate",
    "marital": "never married divorced separated widowed",
    "occupation": "clerical craft executive farming cleaning machines protective sales "
    "service support transport professional",
    "relationship": "alone spouse child other-relative unmarried",
    "sex": "female male",
    "region": "north south east west islands",
    "birthplace": "here neighbor overseas unknown",
    "industry": "trade health building schools transport finance public food media other",
    "housing": "owner mortgage tenant family",
    "shift": "day evening night rotating",
    "commute": "none short long very-long",
}
rng = np.random.default_rng(0)
n_people = 20_000
codes = {}
for name, levels in LEVELS.items():
    frequency = 1 / np.arange(1, len(levels.split()) + 1) ** 0.7  # some levels are rare
    codes[name] = rng.choice(len(frequency), n_people, p=frequency / frequency.sum())
people = pd.DataFrame({name: np.array(LEVELS[name].split())[c] for name, c in codes.items()})
people["age"] = np.round(17 + 60 * rng.beta(1.5, 2.5, n_people))
people["hours"] = np.round(np.clip(rng.normal(40, 11, n_people), 1, 99))

# %%
# Income depends on education, on hours, and on three planted pairs: long hours pay in the middle of
# life, some occupations pay for some degrees, and marriage matters differently for men and women.
# The other variables are noise.

pay = rng.normal(size=(7, 12))
marriage = np.array([[0.5, -0.9, 0.3, 0.4, -0.3], [-0.5, 0.9, -0.3, -0.4, 0.3]])
middle = 1 - ((people["age"] - 45) / 17) ** 2
simulated = {
    "education": 0.4 * (codes["education"] - 2.0),
    "hours": (people["hours"] - 40) / 15,
    "age:hours": np.clip(middle, -1.5, 1) * np.tanh((people["hours"] - 40) / 8) * 1.5,
    "education:occupation": 1.2 * pay[codes["education"], codes["occupation"]],
    "marital:sex": 1.3 * marriage[codes["sex"], codes["marital"]],
}
log_odds = sum(simulated.values()) - 1.0
income = np.where(log_odds + rng.logistic(size=n_people) > 0, ">50K", "<=50K")
people.head(3)

# %%
# Pass the DataFrame to the model, which encodes strings and categories. The effects of age and
# hours are not linear, so divide these numbers into six bins each.

for name in ("age", "hours"):
    people[name] = pd.cut(people[name], 6).astype(str)
train, test = slice(0, 15_000), slice(15_000, n_people)
model = PolynomialLogisticRegression(C=0.05).fit(people[train], income[train])
print(f"{people.shape[1]} variables, {model.coef_.size:,} terms")

# %%
# Pairs explain what single variables cannot:

single = PolynomialLogisticRegression(C=0.05, degree=1).fit(people[train], income[train])
for name, fitted in (("single variables", single), ("pairs, too", model)):
    print(f"{name:16} accuracy {fitted.score(people[test], income[test]):.3f}")

# %%
# The importance of a pair of variables is the variance of its contribution to the log-odds. Main
# effects are smaller than in the simulation, because regularization spreads them over the pairs
# that contain the variable.

importance = model.importance()
importance[["name", "variance", "share"]].head(8).round(3)

# %%
# The same as a heat map, with single variables on the diagonal. Noise variables are pale.

model.plot_importance()
plt.show()

# %%
# Which levels matter in a pair? ``within`` selects its terms.

top = model.top_terms(6, within="education:occupation")
top[["name", "weight", "rows"]].round(2)

# %%
# Which terms contribute most to the prediction for one person?

model.contributions(people[test][:1], 4)[["name", "contribution"]].round(2)

# %%
# The model found what was planted: the three pairs with the largest importance are those that
# determine income.

pairs = [name for name, members in zip(importance["name"], importance["groups"], strict=True)
         if len(members) == 2]  # fmt: skip
print("planted:", *sorted(name for name in simulated if ":" in name))
print("found:  ", *sorted(pairs[:3]))
