"""
Genotypes: which pairs of SNPs interact?
========================================

A trait depends on single SNPs and on two pairs of them (epistasis). Find the pairs among all
124,750, and test whether they are due to chance. The data are generated.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array

from polysparse import PolynomialRidge, interaction_test, top_interactions

# %%
# 2,000 people and 300 SNPs. A genotype is 0, 1 or 2: the number of copies of the rarer allele.
# Thirty SNPs have a main effect, and two pairs interact.

rng = np.random.default_rng(0)
n_people, n_snps = 2_000, 300
frequency = rng.uniform(0.2, 0.5, n_snps)
genotypes = rng.binomial(2, frequency, (n_people, n_snps)).astype(float)
names = [f"rs{number}" for number in 1_000 + np.arange(n_snps)]
PLANTED = {("rs1040", "rs1210"): 0.5, ("rs1122", "rs1256"): -0.5}

trait = genotypes[:, :30] @ rng.normal(0, 0.3, 30) + rng.normal(size=n_people)
for (one, other), effect in PLANTED.items():
    trait += effect * genotypes[:, names.index(one)] * genotypes[:, names.index(other)]
X = csr_array(genotypes)

# %%
# Search the residuals of a model on single SNPs. Without this step, pairs of SNPs with main effects
# would also get high scores.

main = PolynomialRidge(degree=1).fit(X, trait)
residuals = trait - main.predict(X)
top = top_interactions(X, residuals, 6, score="correlation", interaction_only=True,
                       min_count=30, feature_names=names)  # fmt: skip
print(top)

# %%
# The test adjusts p-values for all pairs that were searched, by comparison with simulated traits
# that do not depend on interactions.

tested = interaction_test(
    X, trait, 6, n_null=199, min_count=30, feature_names=names, random_state=0
)
print(tested)
ax = tested.plot()
plt.show()

# %%
# The test found what was planted, and nothing else:

print("planted:", ", ".join(sorted(" ".join(pair) for pair in PLANTED)))
print("found:  ", ", ".join(sorted(tested.significant(0.05).names)))
