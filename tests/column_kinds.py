"""A small matrix, and the kinds of columns that it can be expanded into."""

import numpy as np
import pytest
from scipy import sparse

from csr_zoo import random_dense
from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures

X = sparse.csr_array(random_dense(60, 7, 0.4))

# What is given as `columns`.
SPACES = {
    "all": lambda: None,
    "ranks": lambda: np.arange(0, 36, 3),
    "observed": lambda: ObservedPolynomialFeatures(min_count=9, max_columns=20).fit(X),
    "hashed": lambda: HashedPolynomialFeatures(n_columns=50),
    "many hashed": lambda: HashedPolynomialFeatures(n_columns=2**20),
}
every_space = pytest.mark.parametrize("space", SPACES)
selected_space = pytest.mark.parametrize("space", [name for name in SPACES if name != "all"])
