"""Polynomial and interaction features of sparse matrices, without ever densifying them.

Transformers for scikit-learn:

PolynomialFeatures
    All columns: a drop-in replacement for scikit-learn's class.
ObservedPolynomialFeatures
    Only the columns that occur in the data.
HashedPolynomialFeatures
    A fixed number of hashed columns; nothing is learned.
SelectedPolynomialFeatures
    Only the columns with the largest scores against y.
InteractionTransformer
    Encode variables and generate their interactions.
TableEncoder
    Encode a table of categories and numbers as a sparse matrix.

Models for scikit-learn, which never build the expansion:

PolynomialRidge
    Ridge regression.
PolynomialLasso, PolynomialElasticNet
    Regression with a penalty that selects columns.
PolynomialLogisticRegression
    Logistic regression, of two classes or more; with an L1 penalty, too.
PolynomialPoissonRegressor, PolynomialGammaRegressor, PolynomialTweedieRegressor
    Regression of counts and of amounts, with exposures.
PolynomialLinearSVC, PolynomialLinearSVR
    Support vector machines with squared losses, for classes and for numbers.
PolynomialFTRLClassifier, PolynomialFTRLRegressor
    Models that learn from rows as they arrive.
PolynomialRidgeCV, PolynomialLogisticRegressionCV
PolynomialPoissonRegressorCV, PolynomialGammaRegressorCV, PolynomialTweedieRegressorCV
PolynomialLinearSVCCV, PolynomialLinearSVRCV, PolynomialLassoCV, PolynomialElasticNetCV
    The same with the penalty chosen by cross-validation.

Functions:

expand
    Compute the polynomial features of a matrix.
iter_expand
    Compute them in blocks of rows, in bounded memory.
plan
    Describe the result in advance; returns an ExpansionPlan.
load, iter_load
    Read what the command ``polysparse expand`` wrote into a directory, whole or in blocks of rows.
load_model
    Read a fitted model that was saved.
top_interactions
    Find the interactions with the largest scores against a target; returns TopInteractions.
interaction_test
    Find the interactions with the largest statistics and test whether they are due to chance;
    returns TestedInteractions.
groups_from
    Find the variable that each output of a fitted transformer comes from, as `groups`.

Operators:

PolynomialOperator
    The expanded matrix as a SciPy LinearOperator, without building it.

Descriptions:

MonomialBasis
    The terms as numbered columns: from a term to its column and back, names and powers.
ExpansionPlan
    Shape, stored values and bytes of an expansion.

Examples
--------
>>> import polysparse
>>> from scipy.sparse import csr_array
>>> X = csr_array([[0.0, 2.0], [3.0, 0.0]])
>>> polysparse.expand(X, degree=2).toarray()
array([[1., 0., 2., 0., 0., 4.],
       [1., 3., 0., 9., 0., 0.]])
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.expansion.functions import expand, iter_expand, plan
from polysparse.expansion.planning import ExpansionPlan

if TYPE_CHECKING:
    from polysparse.estimators.grouping import groups_from
    from polysparse.estimators.hashed import HashedPolynomialFeatures
    from polysparse.estimators.interactions import InteractionTransformer
    from polysparse.estimators.observed import ObservedPolynomialFeatures
    from polysparse.estimators.polynomial import PolynomialFeatures
    from polysparse.estimators.selected import SelectedPolynomialFeatures
    from polysparse.estimators.table_encoder import TableEncoder
    from polysparse.files.store import iter_load, load
    from polysparse.models.cross_validated import (
        PolynomialElasticNetCV,
        PolynomialGammaRegressorCV,
        PolynomialLassoCV,
        PolynomialLinearSVCCV,
        PolynomialLinearSVRCV,
        PolynomialLogisticRegressionCV,
        PolynomialPoissonRegressorCV,
        PolynomialRidgeCV,
        PolynomialTweedieRegressorCV,
    )
    from polysparse.models.elastic_net import PolynomialElasticNet, PolynomialLasso
    from polysparse.models.generalized import (
        PolynomialGammaRegressor,
        PolynomialPoissonRegressor,
        PolynomialTweedieRegressor,
    )
    from polysparse.models.loading import load_model
    from polysparse.models.logistic import PolynomialLogisticRegression
    from polysparse.models.online.classifier import PolynomialFTRLClassifier
    from polysparse.models.online.regressor import PolynomialFTRLRegressor
    from polysparse.models.ridge import PolynomialRidge
    from polysparse.models.support_vectors import PolynomialLinearSVC, PolynomialLinearSVR
    from polysparse.operator.polynomial_operator import PolynomialOperator
    from polysparse.search.functions import top_interactions
    from polysparse.search.result import TopInteractions
    from polysparse.significance.functions import interaction_test
    from polysparse.significance.result import TestedInteractions

__version__ = _version("polysparse")
__all__ = [
    "ExpansionPlan",
    "HashedPolynomialFeatures",
    "InteractionTransformer",
    "MonomialBasis",
    "ObservedPolynomialFeatures",
    "PolynomialElasticNet",
    "PolynomialElasticNetCV",
    "PolynomialFTRLClassifier",
    "PolynomialFTRLRegressor",
    "PolynomialFeatures",
    "PolynomialGammaRegressor",
    "PolynomialGammaRegressorCV",
    "PolynomialLasso",
    "PolynomialLassoCV",
    "PolynomialLinearSVC",
    "PolynomialLinearSVCCV",
    "PolynomialLinearSVR",
    "PolynomialLinearSVRCV",
    "PolynomialLogisticRegression",
    "PolynomialLogisticRegressionCV",
    "PolynomialOperator",
    "PolynomialPoissonRegressor",
    "PolynomialPoissonRegressorCV",
    "PolynomialRidge",
    "PolynomialRidgeCV",
    "PolynomialTweedieRegressor",
    "PolynomialTweedieRegressorCV",
    "SelectedPolynomialFeatures",
    "TableEncoder",
    "TestedInteractions",
    "TopInteractions",
    "expand",
    "groups_from",
    "interaction_test",
    "iter_expand",
    "iter_load",
    "load",
    "load_model",
    "plan",
    "top_interactions",
]

# Names that not every user needs are imported on first use.
_LAZY = {
    "HashedPolynomialFeatures": "polysparse.estimators.hashed",
    "InteractionTransformer": "polysparse.estimators.interactions",
    "ObservedPolynomialFeatures": "polysparse.estimators.observed",
    "PolynomialElasticNet": "polysparse.models.elastic_net",
    "PolynomialElasticNetCV": "polysparse.models.cross_validated",
    "PolynomialFTRLClassifier": "polysparse.models.online.classifier",
    "PolynomialFTRLRegressor": "polysparse.models.online.regressor",
    "PolynomialFeatures": "polysparse.estimators.polynomial",
    "PolynomialGammaRegressor": "polysparse.models.generalized",
    "PolynomialGammaRegressorCV": "polysparse.models.cross_validated",
    "PolynomialLasso": "polysparse.models.elastic_net",
    "PolynomialLassoCV": "polysparse.models.cross_validated",
    "PolynomialLinearSVC": "polysparse.models.support_vectors",
    "PolynomialLinearSVCCV": "polysparse.models.cross_validated",
    "PolynomialLinearSVR": "polysparse.models.support_vectors",
    "PolynomialLinearSVRCV": "polysparse.models.cross_validated",
    "PolynomialLogisticRegression": "polysparse.models.logistic",
    "PolynomialLogisticRegressionCV": "polysparse.models.cross_validated",
    "PolynomialOperator": "polysparse.operator.polynomial_operator",
    "PolynomialPoissonRegressor": "polysparse.models.generalized",
    "PolynomialPoissonRegressorCV": "polysparse.models.cross_validated",
    "PolynomialRidge": "polysparse.models.ridge",
    "PolynomialRidgeCV": "polysparse.models.cross_validated",
    "PolynomialTweedieRegressor": "polysparse.models.generalized",
    "PolynomialTweedieRegressorCV": "polysparse.models.cross_validated",
    "SelectedPolynomialFeatures": "polysparse.estimators.selected",
    "TableEncoder": "polysparse.estimators.table_encoder",
    "TestedInteractions": "polysparse.significance.result",
    "TopInteractions": "polysparse.search.result",
    "groups_from": "polysparse.estimators.grouping",
    "interaction_test": "polysparse.significance.functions",
    "iter_load": "polysparse.files.store",
    "load": "polysparse.files.store",
    "load_model": "polysparse.models.loading",
    "top_interactions": "polysparse.search.functions",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'polysparse' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
