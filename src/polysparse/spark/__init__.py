"""polysparse on Spark: transformers, estimators and models of pyspark.ml.

The arithmetic is done by other packages, except for MLlib's order of columns. Needs the extra
`spark` and Java 17 or later.

PolynomialFeatures
    All columns, in the order of scikit-learn or of MLlib.
HashedPolynomialFeatures
    Terms hashed to a fixed number of columns, without a fit.
ObservedPolynomialFeatures, ObservedPolynomialFeaturesModel
    Only the terms that occur in the data.
PolynomialLogisticRegression, PolynomialRidge, PolynomialPoissonRegressor,
PolynomialGammaRegressor, PolynomialTweedieRegressor, PolynomialLinearSVC, PolynomialLinearSVR, and
their models
    Linear models that are fitted and that predict without an expansion.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from polysparse.extras import how_to_install

try:
    import pyarrow  # noqa: F401
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError(f"polysparse.spark needs {error.name}: {how_to_install('spark')}") from None

if TYPE_CHECKING:
    from polysparse.spark.generalized import (
        PolynomialGammaRegressor,
        PolynomialGammaRegressorModel,
        PolynomialPoissonRegressor,
        PolynomialPoissonRegressorModel,
        PolynomialTweedieRegressor,
        PolynomialTweedieRegressorModel,
    )
    from polysparse.spark.hashed import HashedPolynomialFeatures
    from polysparse.spark.logistic import (
        PolynomialLogisticRegression,
        PolynomialLogisticRegressionModel,
    )
    from polysparse.spark.observed import ObservedPolynomialFeatures
    from polysparse.spark.observed_model import ObservedPolynomialFeaturesModel
    from polysparse.spark.polynomial import PolynomialFeatures
    from polysparse.spark.ridge import PolynomialRidge, PolynomialRidgeModel
    from polysparse.spark.support_vectors import (
        PolynomialLinearSVC,
        PolynomialLinearSVCModel,
        PolynomialLinearSVR,
        PolynomialLinearSVRModel,
    )

__all__ = [
    "HashedPolynomialFeatures",
    "ObservedPolynomialFeatures",
    "ObservedPolynomialFeaturesModel",
    "PolynomialFeatures",
    "PolynomialGammaRegressor",
    "PolynomialGammaRegressorModel",
    "PolynomialLinearSVC",
    "PolynomialLinearSVCModel",
    "PolynomialLinearSVR",
    "PolynomialLinearSVRModel",
    "PolynomialLogisticRegression",
    "PolynomialLogisticRegressionModel",
    "PolynomialPoissonRegressor",
    "PolynomialPoissonRegressorModel",
    "PolynomialRidge",
    "PolynomialRidgeModel",
    "PolynomialTweedieRegressor",
    "PolynomialTweedieRegressorModel",
]

# Workers import this package for their tasks, which need neither stages nor scikit-learn.
_LAZY = {
    "HashedPolynomialFeatures": "polysparse.spark.hashed",
    "ObservedPolynomialFeatures": "polysparse.spark.observed",
    "ObservedPolynomialFeaturesModel": "polysparse.spark.observed_model",
    "PolynomialFeatures": "polysparse.spark.polynomial",
    "PolynomialGammaRegressor": "polysparse.spark.generalized",
    "PolynomialGammaRegressorModel": "polysparse.spark.generalized",
    "PolynomialLinearSVC": "polysparse.spark.support_vectors",
    "PolynomialLinearSVCModel": "polysparse.spark.support_vectors",
    "PolynomialLinearSVR": "polysparse.spark.support_vectors",
    "PolynomialLinearSVRModel": "polysparse.spark.support_vectors",
    "PolynomialLogisticRegression": "polysparse.spark.logistic",
    "PolynomialLogisticRegressionModel": "polysparse.spark.logistic",
    "PolynomialPoissonRegressor": "polysparse.spark.generalized",
    "PolynomialPoissonRegressorModel": "polysparse.spark.generalized",
    "PolynomialRidge": "polysparse.spark.ridge",
    "PolynomialRidgeModel": "polysparse.spark.ridge",
    "PolynomialTweedieRegressor": "polysparse.spark.generalized",
    "PolynomialTweedieRegressorModel": "polysparse.spark.generalized",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'polysparse.spark' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
