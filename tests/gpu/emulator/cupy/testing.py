"""NumPy's comparisons."""

from numpy.testing import assert_allclose as assert_allclose
