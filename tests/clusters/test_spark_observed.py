"""Observed columns on Spark are those of the whole matrix, with the same counts."""

import numpy as np
import pytest
from scipy import sparse

import csr_zoo
import polysparse
from spark_frames import assert_same_bits, frame_of, matrix_of, vectors_of

pytest.importorskip("pyspark")

from pyspark.ml.linalg import Vectors
from pyspark.sql import functions as F

from polysparse.spark import ObservedPolynomialFeatures, ObservedPolynomialFeaturesModel

X = sparse.csr_array(csr_zoo.random_dense(40, 9, 0.2, seed=2))


@pytest.fixture(scope="module")
def frame(spark):
    vectors = vectors_of(X, dense_rows=(3, 5))
    skewed = F.greatest(F.col("id"), F.lit(33))
    return frame_of(spark, vectors).repartitionByRange(5, skewed).cache()


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"degree": (2, 3), "minCount": 2, "includeBias": False},
        {"degree": 3, "interactionOnly": True, "maxColumns": 20},
    ],
)
def test_fit_and_transform_give_what_python_gives(frame, params):
    names = {"minCount": "min_count", "maxColumns": "max_columns"}
    names |= {"includeBias": "include_bias", "interactionOnly": "interaction_only"}
    arguments = {names.get(name, name): value for name, value in params.items()}
    expected = polysparse.ObservedPolynomialFeatures(**arguments).fit(X)
    model = ObservedPolynomialFeatures(**params, inputCol="x", outputCol="out").fit(frame)
    assert np.array_equal(model.columns, expected.columns_)
    assert np.array_equal(model.counts, expected.counts_)
    assert model.basis == expected.basis_
    out = model.transform(frame)
    assert_same_bits(matrix_of(out, "out"), expected.transform(X))
    about = out.schema["out"].metadata["ml_attr"]["attrs"]["numeric"]
    assert [each["name"] for each in about] == expected.get_feature_names_out().tolist()


def test_products_that_were_not_seen_are_dropped(spark, frame):
    seen = frame_of(spark, [Vectors.sparse(9, {0: 1.0, 1: 1.0})])
    model = ObservedPolynomialFeatures(includeBias=False, inputCol="x", outputCol="out").fit(seen)
    expected = polysparse.expand(X, include_bias=False, columns=model.columns)
    assert_same_bits(matrix_of(model.transform(frame), "out"), expected)


def test_a_model_can_be_saved_and_loaded(frame, tmp_path):
    poly = ObservedPolynomialFeatures(degree=(1, 2), minCount=3, inputCol="x", outputCol="out")
    model = poly.fit(frame)
    model.save(str(tmp_path / "model"))
    same = ObservedPolynomialFeaturesModel.load(str(tmp_path / "model"))
    assert np.array_equal(same.columns, model.columns)
    assert np.array_equal(same.counts, model.counts)
    assert same.basis == model.basis
    assert same.uid == model.uid == poly.uid
    assert same.explainParams() == model.explainParams()
    assert {path.suffix for path in tmp_path.rglob("part-*")} == {".txt", ".parquet"}
    assert_same_bits(
        matrix_of(same.transform(frame), "out"), matrix_of(model.transform(frame), "out")
    )


def test_a_model_for_other_features_is_refused(spark, frame):
    from pyspark.errors import IllegalArgumentException, SparkRuntimeException

    model = ObservedPolynomialFeatures(inputCol="x", outputCol="out").fit(frame)
    other = frame_of(spark, [Vectors.sparse(8, {0: 1.0})])
    with pytest.raises(SparkRuntimeException, match=r"'x' has a vector of size 8, .* is 9"):
        model.transform(other).collect()
    stated = F.col("x").alias("x", metadata={"ml_attr": {"num_attrs": 8}})
    with pytest.raises(IllegalArgumentException, match=r"'x' has 8 features, .* fitted with 9"):
        model.transform(other.select("id", stated))


def test_nothing_kept_is_refused(frame):
    from pyspark.errors import IllegalArgumentException

    poly = ObservedPolynomialFeatures(minCount=41, inputCol="x", outputCol="out")
    with pytest.raises(IllegalArgumentException, match="'x' occurs in minCount=41 rows: lower"):
        poly.fit(frame)
    with pytest.raises(IllegalArgumentException, match="'x' occurs in minCount=1 rows"):
        poly.setMinCount(1).fit(frame.where("id < 0"))
