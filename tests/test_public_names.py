"""Every public name and attribute: none is added or removed unnoticed.

What packages call of each other begins with an underscore where it is on a public class.
"""

import inspect

import numpy as np
import pytest
from scipy.sparse import csr_array

import polysparse
from polysparse.columns.spaces import AllColumns, ChosenColumns, HashedColumns

X, Y = csr_array([[1.0, 2.0], [3.0, 0.0]]), [1.0, 2.0]

NAMES = """
ExpansionPlan HashedPolynomialFeatures InteractionTransformer MonomialBasis
ObservedPolynomialFeatures PolynomialElasticNet PolynomialElasticNetCV
PolynomialFTRLClassifier PolynomialFTRLRegressor PolynomialFeatures PolynomialGammaRegressor
PolynomialGammaRegressorCV PolynomialLasso PolynomialLassoCV
PolynomialLinearSVC PolynomialLinearSVCCV
PolynomialLinearSVR PolynomialLinearSVRCV PolynomialLogisticRegression
PolynomialLogisticRegressionCV PolynomialOperator PolynomialPoissonRegressor
PolynomialPoissonRegressorCV PolynomialRidge PolynomialRidgeCV PolynomialTweedieRegressor
PolynomialTweedieRegressorCV SelectedPolynomialFeatures TableEncoder TestedInteractions
TopInteractions expand groups_from interaction_test iter_expand iter_load load load_model plan
top_interactions
"""

TRANSFORMER = """
categorical_features degree groups include_bias interaction_only n_features_in_ n_jobs terms
column_space fit get_feature_names_out transform
"""
COLUMNS = "basis degree_ends describe is_exact kind n_columns require_indexable"

# Attributes of all models.
MODEL = """
categorical_features
coef_ column_counts_ column_space_ columns degree feature_names fit_intercept groups
interaction_only intercept_ max_iter
gap_ n_features_in_ n_iter_ n_jobs objective_ penalty_factors terms tol verbose
bootstrap contributions fit importance plot_importance plot_top_terms predict save to_onnx to_text
top_terms
"""

# Of models that choose their penalty.
CHOOSING = "cv plot_scores refit scores_ scoring selection"

# Of models that learn from rows as they come.
ONLINE = """
beta calibration_ categorical_features coef_ column_counts_ column_space_ columns degree
feature_names fit_intercept groups interaction_only intercept_ keep_sample l1 l2 learner_
learning_rate learning_rate_ n_columns n_features_in_ n_jobs n_passes n_sampled_rows_
n_samples_pending_ n_samples_seen_ progressive_loss_ recent_loss_ rows_per_second_ scale_ terms
verbose contributions fit importance partial_fit plot_importance plot_progress plot_top_terms
predict progress save to_onnx to_text top_terms
"""

# Of models of counts and amounts
AMOUNTS = "alpha l1_ratio path penalty plot_calibration score warm_start"


def instances():
    basis = polysparse.MonomialBasis(2)
    yield (
        basis,
        """
        groups include_bias interaction_only max_degree min_degree n_features terms
        as_dict count degree_slices highest lowest n_columns names powers rank require_indexable
        unrank
        """,
    )
    yield (
        polysparse.plan(X),
        """
        columns dtype found is_sparse n_merged profile
        basis bytes_per_value index_dtype is_upper_bound n_rows nbytes nnz nnz_by_degree row_lengths
        shape
        """,
    )
    yield (
        polysparse.PolynomialOperator(X),
        """
        columns dtype n_jobs shape
        column_norms column_sums dot gram matvec rmatvec row_norms rows toarray tocsr
        """,
    )
    yield (
        polysparse.PolynomialFeatures().fit(X),
        TRANSFORMER + "basis_ n_output_features_ order powers_",
    )
    yield (
        polysparse.ObservedPolynomialFeatures().fit(X),
        f"""{TRANSFORMER} columns max_columns min_count remember_rejected sparse_output
        basis_ columns_ counts_ n_output_features_
        forget_rejected inverse load merge partial_fit save""",
    )
    yield (
        polysparse.SelectedPolynomialFeatures().fit(csr_array([[1.0, 2.0], [3.0, 4.0]]), Y),
        f"""{TRANSFORMER} criterion estimator k min_count sparse_output target
        basis_ interactions_ n_output_features_""",
    )
    yield (
        polysparse.HashedPolynomialFeatures().fit(X),
        f"""{TRANSFORMER} alternate_sign n_columns seed sparse_output
        candidates collisions column_of partial_fit""",
    )
    yield (
        polysparse.InteractionTransformer([("as they are", "passthrough", [0, 1])]).fit(X),
        """columns degree include_bias interaction_only n_jobs terms transformers
        column_transformer_ feature_names_in_ features_ groups_ n_features_in_
        fit fit_transform get_feature_names_out transform""",
    )
    yield (
        polysparse.TableEncoder().fit([[1.0]]),
        """categorical_features handle_unknown max_categories min_frequency missing
        categories_ groups_ n_features_in_
        fit fit_transform get_feature_names_out inverse_transform load partial_fit save
        transform""",
    )
    yield polysparse.PolynomialRidge().fit(X, Y), MODEL + "alpha"
    yield (
        polysparse.PolynomialLogisticRegression().fit(X, Y),
        f"""{MODEL} C class_weight classes_ l1_ratio path penalty warm_start
        decision_function plot_calibration predict_log_proba predict_proba""",
    )
    yield polysparse.PolynomialLasso().fit(X, Y), f"{MODEL} alpha l1_ratio path warm_start"
    yield polysparse.PolynomialElasticNet().fit(X, Y), f"{MODEL} alpha l1_ratio path warm_start"
    yield polysparse.PolynomialPoissonRegressor().fit(X, Y), f"{MODEL} {AMOUNTS}"
    yield polysparse.PolynomialGammaRegressor().fit(X, Y), f"{MODEL} {AMOUNTS}"
    yield polysparse.PolynomialTweedieRegressor().fit(X, Y), f"{MODEL} {AMOUNTS} link power"
    yield (
        polysparse.PolynomialLinearSVC().fit(X, Y),
        f"""{MODEL} C class_weight classes_ decision_function intercept_scaling l1_ratio path
        penalty warm_start""",
    )
    yield (
        polysparse.PolynomialLinearSVR().fit(X, Y),
        f"{MODEL} C epsilon intercept_scaling l1_ratio path penalty warm_start",
    )
    yield polysparse.PolynomialFTRLRegressor().fit(X, Y), f"{ONLINE} loss score"
    yield (
        polysparse.PolynomialFTRLClassifier().fit(X, Y),
        f"{ONLINE} classes_ decision_function predict_log_proba predict_proba",
    )
    for plain in (name.removesuffix("CV") for name in NAMES.split() if name.endswith("CV")):
        model = getattr(polysparse, plain)().fit(X, Y)
        name = "C" if hasattr(model, "C") else "alpha"
        own = own_attributes(model) - {name, "warm_start"}
        choosing = getattr(polysparse, f"{plain}CV")(cv=[([0, 1], [0, 1])], **{f"{name}s": [1.0]})
        yield choosing.fit(X, Y), " ".join([CHOOSING, f"{name}_ {name}s {name}s_", *own])
    found = """basis columns counts feature_names score scores target_names targets
    column_space features names plot to_table tuples"""
    yield polysparse.top_interactions(X, Y), found
    pairs = np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0)] * 3)
    yield (
        polysparse.interaction_test(pairs, np.arange(12.0) % 5, min_count=2, n_null=1),
        f"{found} bonferroni model n_tested null_maxima p_values resolution significant",
    )
    yield AllColumns(basis), COLUMNS
    yield ChosenColumns(basis, [1]), COLUMNS + " ranks"
    yield HashedColumns(basis, 8, True, 0), COLUMNS + " alternate_sign seed with_n_columns"


def own_attributes(instance):
    """Public attributes, but for those that only scikit-learn or SciPy define."""
    own = [base for base in type(instance).__mro__ if base.__module__.startswith("polysparse")]
    names = {name for base in own for name in vars(base)} | set(vars(instance))
    names -= {"ndim"}  # which newer versions of SciPy set on operators
    return {n for n in names if not n.startswith("_") and not n.endswith("_request")}


def test_the_package_shows_its_public_names_alone():
    assert sorted(polysparse.__all__) == sorted(NAMES.split())
    assert set(dir(polysparse)) == {*NAMES.split(), "__version__"}


@pytest.mark.parametrize(("instance", "names"), instances(), ids=lambda each: type(each).__name__)
def test_the_attributes_of_public_classes_are_these(instance, names):
    assert own_attributes(instance) == set(names.split())


def test_every_public_class_is_looked_at():
    classes = {n for n in polysparse.__all__ if inspect.isclass(getattr(polysparse, n))}
    assert classes <= {type(instance).__name__ for instance, _ in instances()}
