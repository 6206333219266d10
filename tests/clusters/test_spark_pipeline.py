"""The stages are citizens of pyspark.ml: params, copies, persistence, pipelines, tuning."""

import inspect
import re

import numpy as np
import pytest
from scipy import sparse

import csr_zoo
from spark_frames import assert_same_bits, frame_of, matrix_of, vectors_of

pytest.importorskip("pyspark")

from pyspark.ml import Pipeline, PipelineModel
from pyspark.sql import functions as F

from polysparse.spark import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialLogisticRegression,
    PolynomialRidge,
    PolynomialRidgeModel,
)

X = sparse.csr_array(csr_zoo.random_dense(60, 5, 0.5, seed=3))
KINDS = PolynomialFeatures, HashedPolynomialFeatures, ObservedPolynomialFeatures
ESTIMATORS = *KINDS, PolynomialRidge, PolynomialLogisticRegression

# For each kind, params that are not the defaults.
PARAMS = {
    PolynomialFeatures: {"degree": [1, 3], "interactionOnly": True, "columnOrder": "sklearn"},
    HashedPolynomialFeatures: {"nColumns": 77, "alternateSign": False, "seed": 2**64 - 1},
    ObservedPolynomialFeatures: {"minCount": 2, "maxColumns": 9, "includeBias": False},
}


@pytest.fixture(scope="module")
def frame(spark):
    label = (F.col("id") % 2).cast("double")
    return frame_of(spark, vectors_of(X)).withColumn("label", label).repartition(2).cache()


@pytest.mark.parametrize("kind", KINDS)
def test_every_param_is_documented_and_has_a_getter_and_a_setter(kind):
    stage = kind()
    for param in stage.params:
        name = param.name[0].upper() + param.name[1:]
        assert f"{param.name}: " in stage.explainParams()
        assert f"\n    {param.name}" in kind.__doc__ or "Col" in param.name
        if param.name != "inputCol":  # which has no default
            assert getattr(stage, f"get{name}")() == stage.getOrDefault(param)
        assert callable(getattr(stage, f"set{name}"))


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_signatures_and_help_show_the_params(kind):
    parameters = inspect.signature(kind).parameters
    assert set(parameters) == {param.name for param in kind().params}
    assert inspect.signature(kind.setParams).parameters.keys() == {"self", *parameters}
    stage = kind()
    for name, each in parameters.items():
        assert each.kind is inspect.Parameter.KEYWORD_ONLY
        if stage.hasDefault(name) and name != "outputCol":
            assert stage.getOrDefault(name) == each.default
        getter, setter = (
            getattr(kind, f"{verb}{name[0].upper()}{name[1:]}") for verb in ("get", "set")
        )
        for method in (getter, setter):
            assert name in method.__doc__
            assert method.__qualname__ == f"{kind.__name__}.{method.__name__}"
            assert method.__module__ == kind.__module__
            assert method.__name__ in dir(stage)
        assert getter.__annotations__ == {"return": each.annotation}
        assert setter.__annotations__ == {"value": each.annotation}
        assert f"\n    {name} : " in kind.__doc__
    assert kind.__doc__.index("Parameters\n") < kind.__doc__.index("See Also\n")


def test_a_fitted_model_has_setters_only_for_what_a_fit_does_not_fix():
    setters = {name for name in dir(PolynomialRidgeModel) if re.match("set[A-Z]", name)}
    assert setters == {"setFeaturesCol", "setPredictionCol"}
    assert PolynomialRidgeModel(None).getMaxIter() == PolynomialRidge().getMaxIter() == 5000


@pytest.mark.parametrize("kind", KINDS)
def test_params_can_be_given_set_and_copied(kind):
    given = kind(**PARAMS[kind])
    later = kind()
    assert later.setParams(**PARAMS[kind]) is later
    one_by_one = kind()
    for name, value in PARAMS[kind].items():
        getattr(one_by_one, f"set{name[0].upper()}{name[1:]}")(value)
    for stage in (given, later, one_by_one, given.copy()):
        assert {param.name: stage.getOrDefault(param) for param in stage._paramMap} == PARAMS[kind]
    other = given.copy({given.degree: 5})
    assert other.getDegree() == 5
    assert given.getDegree() != 5
    assert other.uid == given.uid


def test_columns_are_given_by_position_nowhere():
    with pytest.raises(TypeError, match="keyword"):
        PolynomialFeatures(2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stage_can_be_saved_and_loaded(spark, kind, tmp_path):
    stage = kind(**PARAMS[kind], inputCol="x", outputCol="out")
    stage.save(str(tmp_path / "stage"))
    same = kind.load(str(tmp_path / "stage"))
    assert type(same) is kind
    assert same.uid == stage.uid
    assert same.explainParams() == stage.explainParams()
    stage.setDegree(4).write().overwrite().save(str(tmp_path / "stage"))
    assert kind.load(str(tmp_path / "stage")).getDegree() == 4


def test_a_pipeline_can_be_fitted_saved_and_loaded(frame, tmp_path):
    from pyspark.ml.classification import LogisticRegression

    pipeline = Pipeline(
        stages=[
            PolynomialFeatures(interactionOnly=True, inputCol="x", outputCol="pairs"),
            HashedPolynomialFeatures(nColumns=32, inputCol="x", outputCol="hashed"),
            ObservedPolynomialFeatures(minCount=3, inputCol="x", outputCol="out"),
            LogisticRegression(featuresCol="out", maxIter=3),
        ]
    )
    pipeline.save(str(tmp_path / "pipeline"))
    model = Pipeline.load(str(tmp_path / "pipeline")).fit(frame)
    model.save(str(tmp_path / "model"))
    same = PipelineModel.load(str(tmp_path / "model"))
    found, expected = same.transform(frame), model.transform(frame)
    for column in ("pairs", "hashed", "out"):
        assert_same_bits(matrix_of(found, column), matrix_of(expected, column))
    predictions = [
        [row.prediction for row in each.select("id", "prediction").orderBy("id").collect()]
        for each in (found, expected)
    ]
    assert predictions[0] == predictions[1]


def test_a_cross_validator_chooses_the_degree_that_a_product_needs(spark, tmp_path):
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.evaluation import BinaryClassificationEvaluator
    from pyspark.ml.tuning import CrossValidator, CrossValidatorModel, ParamGridBuilder

    signs = np.sign(np.random.default_rng(0).normal(size=(60, 2)))
    positive = F.col("id").isin(np.flatnonzero(signs.prod(axis=1) > 0).tolist())
    frame = frame_of(spark, vectors_of(signs)).withColumn("label", positive.cast("double")).cache()
    poly = PolynomialFeatures(includeBias=False, inputCol="x", outputCol="out")
    logistic = LogisticRegression(featuresCol="out", maxIter=5, regParam=0.01)
    search = CrossValidator(
        estimator=Pipeline(stages=[poly, logistic]),
        estimatorParamMaps=ParamGridBuilder().addGrid(poly.degree, [1, [2, 2]]).build(),
        evaluator=BinaryClassificationEvaluator(),
        numFolds=2,
        seed=0,
    )
    best = search.fit(frame)
    assert best.bestModel.stages[0].getDegree() == [2, 2]
    assert best.avgMetrics[1] == 1.0 > best.avgMetrics[0]
    best.save(str(tmp_path / "search"))
    same = CrossValidatorModel.load(str(tmp_path / "search"))
    assert same.bestModel.stages[0].getDegree() == [2, 2]
