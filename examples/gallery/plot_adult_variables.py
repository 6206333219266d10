"""
Which variables interact?
=========================

From a census table to a heat map of interacting variables. Every variable is encoded as several
columns, and a logistic regression has a term for each pair of columns of different variables.
:meth:`~polysparse.PolynomialLogisticRegression.importance` adds up the terms of each pair of
variables, so that you read "education with occupation" instead of thousands of pairs of levels.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder

from polysparse import MonomialBasis, PolynomialLogisticRegression, groups_from

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
# Income depends on education and on hours alone, and on three pairs: long hours pay in the middle
# of life, some occupations pay for some degrees, and marriage matters differently for men and
# women. The other variables are noise.

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
score = sum(simulated.values()) - 1.0
income = np.where(score + rng.logistic(size=n_people) > 0, ">50K", "<=50K")
people.head(3)

# %%
# One pipeline from the DataFrame to the model. ``groups_from`` lists the variable of each encoded
# column, and ``groups`` excludes the pairs of columns of the same variable, which are always zero.

numbers = ["age", "hours"]
bins = KBinsDiscretizer(6, strategy="uniform")
encoder = ColumnTransformer(
    [("levels", OneHotEncoder(), [*LEVELS]), ("bins", bins, numbers)],
    verbose_feature_names_out=False,
).fit(people)
groups = groups_from(encoder)
model = PolynomialLogisticRegression(
    C=0.05, groups=groups, feature_names=encoder.get_feature_names_out()
)
train, test = slice(0, 15_000), slice(15_000, n_people)
pipeline = make_pipeline(encoder, model).fit(people[train], income[train])

n_all = MonomialBasis(len(groups), interaction_only=True, include_bias=False).n_columns
print(f"{len(groups)} columns, {model.coef_.size:,} terms; {n_all:,} without groups")

# %%
# Pairs explain what single variables cannot:

single = make_pipeline(encoder, PolynomialLogisticRegression(C=0.05, degree=1))
single.fit(people[train], income[train])
for name, fitted in (("single variables", single), ("pairs, too", pipeline)):
    print(f"{name:16} accuracy {fitted.score(people[test], income[test]):.3f}")

# %%
# The importance of a pair of variables is the variance of its contribution to the score. Main
# effects are smaller than in the simulation: regularization spreads them over all pairs that the
# variables are in.

importance = model.importance()
importance[["name", "variance", "share"]].head(8).round(3)

# %%
# The same as a heat map, with single variables on the diagonal. Noise is pale.

model.plot_importance()
plt.show()

# %%
# Which levels matter in a pair? ``within`` selects its terms.

top = model.top_terms(6, within="education:occupation")
top[["name", "weight", "rows"]].round(2)

# %%
# And for one person, the terms that contribute most to the score:

one = encoder.transform(people[test])[:1]
model.contributions(one, 4)[["name", "contribution"]].round(2)

# %%
# The model recovered the simulated interactions: the pairs with the largest importance are the
# three that determine income.

pairs = [name for name, members in zip(importance["name"], importance["groups"], strict=True)
         if len(members) == 2]  # fmt: skip
print("simulated:", *sorted(name for name in simulated if ":" in name))
print("found:    ", *sorted(pairs[:3]))
