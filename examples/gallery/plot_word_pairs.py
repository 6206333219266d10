"""
Text: pairs of words
====================

In a review, "not" and "bad" together mean something else than each word alone. A linear model on
single words cannot learn this. A model on pairs of words can, and its largest terms are these
pairs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from polysparse import PolynomialLogisticRegression

# %%
# Reviews are generated. Each has an opinion, which another word may negate, among words without
# meaning.

PRAISE, BLAME = ["good", "great", "lovely", "fine"], ["bad", "awful", "dull", "poor"]
NEGATIONS = ["not", "never", "hardly"]
rng = np.random.default_rng(0)
filler = [f"word{n}" for n in range(300)]


def review():
    """Return a text, and whether it praises."""
    praises, negated = rng.random(2) < 0.5
    words = [*rng.choice(filler, 12), rng.choice(PRAISE if praises else BLAME)]
    words += [rng.choice(NEGATIONS)] if negated else []
    return " ".join(rng.permutation(words)), praises != negated


texts, labels = zip(*(review() for _ in range(12_000)), strict=True)
print(texts[0])

# %%
# Each word is a column. Fit models of degree 1 and 2 to more and more of the reviews, without
# building the pairs, and score them on the last 4,000 reviews.

count = CountVectorizer(binary=True)
X = count.fit_transform(texts).astype(np.float64)
y = np.where(labels, "praise", "blame")
sizes = [500, 1_000, 2_000, 4_000, 8_000]
scores = {1: [], 2: []}
for degree, reached in scores.items():
    for size in sizes:
        model = PolynomialLogisticRegression(C=0.1, degree=degree, interaction_only=True)
        reached.append(model.fit(X[:size], y[:size]).score(X[-4_000:], y[-4_000:]))
print(f"{X.shape[1]} words, {model.coef_.shape[1]:,} words and pairs")

# %%
# Single words are little better than chance. The largest terms are the planted pairs: a negation
# and an opinion. For data on which pairs do not help, see :doc:`/gallery/plot_top_terms`.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 5))
for degree, label in ((1, "words"), (2, "words and pairs")):
    left.plot(sizes, scores[degree], "o-", color=f"C{degree % 2}", label=label)
left.set(xscale="log", xlabel="reviews", ylabel="accuracy", ylim=(0.45, 1.02))
left.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
left.minorticks_off()
left.legend()
model.plot_top_terms(24, feature_names=count.get_feature_names_out(), ax=right)
right.set_title("the largest terms: blame (negative) or praise (positive)")
plt.show()
