"""Groups and terms on Spark: the results in Python, groups from metadata, what is saved."""

import numpy as np
import pytest
from scipy import sparse

import csr_zoo
import polysparse
from groupings import GROUPINGS, interleaved
from spark_frames import assert_same_bits, frame_of, matrix_of, vectors_of

pytest.importorskip("pyspark")

from pyspark.errors import IllegalArgumentException
from pyspark.ml import Pipeline, PipelineModel
from pyspark.sql import functions as F

from polysparse.spark import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialLogisticRegression,
    PolynomialRidge,
)

X = sparse.csr_array(csr_zoo.random_dense(60, 7, 0.4, seed=2))
GROUPED = {each.__name__: {"groups": each(7)} for each in GROUPINGS}
GROUPED["sizes"] = {"groups": [3, 4]}
GROUPED["labels with sizes"] = {"groups": {"b": 3, "a": 4}}
GROUPED["terms"] = {"groups": interleaved(7), "terms": ["g0:g1", ("g1", "g2"), "g0"]}
GROUPED["features as terms"] = {"terms": "x0*x3"}
STAGES = {"inputCol": "x", "outputCol": "out"}
KINDS = PolynomialFeatures, HashedPolynomialFeatures, ObservedPolynomialFeatures
MODELS = PolynomialRidge, PolynomialLogisticRegression
every_grouping = pytest.mark.parametrize("grouping", GROUPED)


@pytest.fixture(scope="module")
def frame(spark):
    label = (F.col("id") % 2).cast("double")
    return frame_of(spark, vectors_of(X)).withColumn("label", label).repartition(3).cache()


@every_grouping
def test_expand(frame, grouping):
    out = PolynomialFeatures(**STAGES, **GROUPED[grouping]).transform(frame)
    assert_same_bits(matrix_of(out, "out"), polysparse.expand(X, **GROUPED[grouping]))


@pytest.mark.parametrize("grouping", ["interleaved", "terms"])
def test_hashed_and_observed(frame, grouping):
    how = GROUPED[grouping]
    hashed = HashedPolynomialFeatures(nColumns=50, **STAGES, **how).transform(frame)
    wanted = polysparse.HashedPolynomialFeatures(n_columns=50, **how).fit_transform(X)
    assert_same_bits(matrix_of(hashed, "out"), wanted)
    model = ObservedPolynomialFeatures(minCount=3, **STAGES, **how).fit(frame)
    here = polysparse.ObservedPolynomialFeatures(min_count=3, **how).fit(X)
    np.testing.assert_array_equal(model.columns, here.columns_)
    np.testing.assert_array_equal(model.counts, here.counts_)
    assert_same_bits(matrix_of(model.transform(frame), "out"), here.transform(X))


@pytest.mark.parametrize("columns", ["all", "observed", "hashed"])
@pytest.mark.parametrize("grouping", ["interleaved", "terms"])
def test_fits_and_importance(frame, grouping, columns):
    how = GROUPED[grouping] | {"columns": columns}
    fitted = PolynomialRidge(featuresCol="x", nColumns=64, **how).fit(frame)
    if columns == "hashed":
        how["columns"] = polysparse.HashedPolynomialFeatures(n_columns=64, **GROUPED[grouping])
    y = np.arange(60) % 2.0
    wanted = polysparse.PolynomialRidge(**how).fit(X, y)
    np.testing.assert_allclose(fitted.coefficients, wanted.coef_, rtol=1e-4, atol=1e-6)
    assert fitted.model.column_space_ == wanted.column_space_
    if columns != "hashed":
        ours, theirs = (model.importance() for model in (fitted.model, wanted))
        assert list(ours["name"]) == list(theirs["name"])
        np.testing.assert_allclose(ours["variance"], theirs["variance"], rtol=1e-3)


# ------------------------------------------------------------------------------------------ params


@pytest.mark.parametrize("kind", [*KINDS, *MODELS])
def test_stages_are_saved_with_groups_and_terms(spark, kind, tmp_path):
    given = {"groups": ["a", "", None, "a"], "terms": ["a:x1", ("a", "x2")]}
    stage = kind(**given)
    stage.write().save(str(tmp_path / "stage"))
    loaded = kind.load(str(tmp_path / "stage"))
    for each in (stage, loaded, loaded.copy()):
        assert each.getGroups() == ["a", None, None, "a"]
        assert each.getTerms() == ["a:x1", ["a", "x2"]]
    sizes = kind().setGroups({"user": 3, "item": 2})
    sizes.write().save(str(tmp_path / "sizes"))
    assert list(kind.load(str(tmp_path / "sizes")).getGroups().items()) == [
        ("user", 3),
        ("item", 2),
    ]


def test_fitted_stages_are_saved_with_groups(frame, tmp_path):
    how = GROUPED["terms"]
    stages = [ObservedPolynomialFeatures(**STAGES, **how), PolynomialRidge(featuresCol="x", **how)]
    fitted = Pipeline(stages=stages).fit(frame)
    fitted.write().save(str(tmp_path / "fitted"))
    loaded = PipelineModel.load(str(tmp_path / "fitted"))
    assert loaded.stages[0].basis == fitted.stages[0].basis
    assert loaded.stages[1].model.column_space_ == fitted.stages[1].model.column_space_
    wanted, found = (matrix_of(each.transform(frame), "out") for each in (fitted, loaded))
    assert_same_bits(found, wanted)
    ours, theirs = (each.stages[1].model.importance() for each in (loaded, fitted))
    assert list(ours["variance"]) == list(theirs["variance"])


@pytest.mark.parametrize(
    ("param", "value"),
    [
        ("groups", "some"),
        ("groups", [1.5, 2]),
        ("groups", {"a": "b"}),
        ("groups", 7),
        ("terms", 3),
        ("terms", [3]),
        ("terms", [["a", 3]]),
    ],
)
def test_values_of_the_wrong_type(param, value):
    with pytest.raises(TypeError):
        PolynomialFeatures(**{param: value})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"groups": ["a", "b"]}, "groups has 2 labels, but there are 7 features"),
        ({"groups": [3, 3]}, "groups have 6 features in all, but there are 7"),
        ({"terms": ["x0:x9"]}, "terms names 'x9', which is not a group"),
        ({"terms": ["x0:x1"], "degree": 3}, "degree=3 contradicts terms"),
        ({"groups": [3, 4], "columnOrder": "spark"}, "which does not support groups="),
        ({"terms": ["x0:x1"], "columnOrder": "spark"}, "which does not support terms="),
    ],
)
def test_refusals(frame, params, message):
    with pytest.raises(IllegalArgumentException, match=message):
        PolynomialFeatures(**STAGES, **params).transform(frame)
