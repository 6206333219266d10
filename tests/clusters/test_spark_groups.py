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
from pyspark.ml.feature import OneHotEncoder, StringIndexer, VectorAssembler
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


# ---------------------------------------------------------------------------------------- metadata


def assembled(spark, groups="metadata", **more):
    """A pipeline of two variables with levels and a number, and rows for it."""
    rows = [("Berlin", "a_b", 1.5), ("Rome", "c", 2.5), ("Oslo", "a_b", 0.5), ("Rome", "a_b", 4.0)]
    numbered = [(i, *row, float(i)) for i, row in enumerate(rows)]
    frame = spark.createDataFrame(numbered, ["id", "city", "city_kind", "age", "label"])
    names = ["city", "city_kind"]
    levels, encoded = ([f"{name}_{end}" for name in names] for end in ("index", "levels"))
    stages = [
        StringIndexer(inputCols=names, outputCols=levels),
        OneHotEncoder(inputCols=levels, outputCols=encoded, dropLast=False),
        VectorAssembler(inputCols=["age", *encoded], outputCol="x"),
        PolynomialFeatures(**STAGES, groups=groups, includeBias=False, **more),
    ]
    return frame, stages


def rows_of(frame):
    """The column x, some of whose vectors are dense."""
    return sparse.csr_array([row.x.toArray() for row in frame.orderBy("id").collect()])


def test_groups_from_metadata(spark):
    frame, stages = assembled(spark)
    out = Pipeline(stages=stages).fit(frame).transform(frame)
    labels = [None, *["city_levels"] * 3, *["city_kind_levels"] * 2]
    wanted = polysparse.expand(rows_of(out), groups=labels, include_bias=False)
    assert_same_bits(matrix_of(out, "out"), wanted)


def test_terms_of_columns_and_of_numbers(spark):
    terms = ["city_levels:city_kind_levels", "age"]
    frame, stages = assembled(spark, terms=terms)
    out = Pipeline(stages=stages).fit(frame).transform(frame)
    labels = ["age", *["city_levels"] * 3, *["city_kind_levels"] * 2]
    wanted = polysparse.expand(rows_of(out), groups=labels, terms=terms, include_bias=False)
    assert_same_bits(matrix_of(out, "out"), wanted)
    ridge = PolynomialRidge(featuresCol="x", groups="metadata", terms=terms)
    model = ridge.fit(out).model
    assert sorted(model.importance()["name"]) == ["age", "city_levels:city_kind_levels"]


def test_metadata_that_are_missing(spark, frame):
    with pytest.raises(IllegalArgumentException, match="'x' has no metadata on its features"):
        PolynomialFeatures(**STAGES, groups="metadata").transform(frame)
    rows, stages = assembled(spark)
    out = Pipeline(stages=stages[:-1]).fit(rows).transform(rows).drop("city_levels")
    with pytest.raises(IllegalArgumentException, match=r"'city_levels_Rome'.* is not named after"):
        stages[-1].transform(out)


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
