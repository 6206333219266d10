"""polysparse on Spark: transformers, estimators and models of pyspark.ml.

It uses the rooms above through their functions, and does no arithmetic of its own but for the order
of MLlib's columns. Needs ``pip install 'polysparse[spark]'`` and Java 17 or later.

PolynomialFeatures
    All columns, in the order of scikit-learn or of MLlib.
HashedPolynomialFeatures
    A fixed number of columns, and nothing to learn.
ObservedPolynomialFeatures, ObservedPolynomialFeaturesModel
    Only the columns that occur in the data.
"""

from __future__ import annotations

try:
    import pyarrow  # noqa: F401
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"polysparse.spark needs {error.name}: pip install 'polysparse[spark]'."
    ) from None

from polysparse.spark.hashed import HashedPolynomialFeatures
from polysparse.spark.observed import ObservedPolynomialFeatures
from polysparse.spark.observed_model import ObservedPolynomialFeaturesModel
from polysparse.spark.polynomial import PolynomialFeatures

__all__ = [
    "HashedPolynomialFeatures",
    "ObservedPolynomialFeatures",
    "ObservedPolynomialFeaturesModel",
    "PolynomialFeatures",
]
