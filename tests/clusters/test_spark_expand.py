"""Expansions on Spark have the bits of `expand` on the whole matrix, in all partitions."""

import gc

import numpy as np
import pytest
from scipy import sparse

import csr_zoo
import polysparse
from spark_frames import assert_same_bits, frame_of, matrix_of, vectors_of

pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.ml.linalg import Vectors
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from polysparse.spark import HashedPolynomialFeatures, PolynomialFeatures
from polysparse.spark.vectors import on_rows

X = sparse.csr_array(csr_zoo.random_dense(40, 9, 0.3, seed=1))


@pytest.fixture(scope="module")
def frame(spark):
    return frame_of(spark, vectors_of(X, dense_rows=range(0, 40, 3))).cache()


def expanded(stage, frame):
    out = stage.setInputCol("x").setOutputCol("out").transform(frame)
    return matrix_of(out, "out")


LAYOUTS = {
    "one": lambda frame: frame,
    "many": lambda frame: frame.repartition(9, "id"),
    "skewed": lambda frame: frame.repartition(3, F.greatest(F.col("id"), F.lit(33))),
    "some empty": lambda frame: frame.repartition(2).union(frame.where("id < 0").repartition(3)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_partitions_do_not_matter(frame, layout):
    found = expanded(PolynomialFeatures(), LAYOUTS[layout](frame))
    assert_same_bits(found, polysparse.expand(X))


def test_partitions_may_have_one_row(frame):
    few = frame.where("id < 4").repartitionByRange(5, "id")
    assert few.select(F.spark_partition_id()).distinct().count() == 4
    assert_same_bits(expanded(PolynomialFeatures(), few), polysparse.expand(X[:4]))


def test_batches_do_not_matter(spark, frame):
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(setting)
    try:
        spark.conf.set(setting, 7)
        assert_same_bits(expanded(PolynomialFeatures(degree=3), frame), polysparse.expand(X, 3))
    finally:
        spark.conf.set(setting, before)


@pytest.mark.parametrize(
    "params",
    [
        {"degree": 0},
        {"degree": 1},
        {"degree": 2, "interactionOnly": True},
        {"degree": 3, "includeBias": False},
        {"degree": 4},
        {"degree": (2, 3), "interactionOnly": True, "includeBias": False},
    ],
)
def test_params_are_those_of_expand(frame, params):
    names = {"interactionOnly": "interaction_only", "includeBias": "include_bias"}
    arguments = {names.get(name, name): value for name, value in params.items()}
    expected = polysparse.expand(X, **arguments)
    assert_same_bits(expanded(PolynomialFeatures(**params), frame), expected)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"degree": 3, "nColumns": 50, "seed": 2**64 - 1},
        {"nColumns": 2**31 - 1, "alternateSign": False, "includeBias": False},
    ],
)
def test_hashed_columns_are_those_of_python(frame, params):
    names = {"nColumns": "n_columns", "alternateSign": "alternate_sign"}
    names |= {"includeBias": "include_bias"}
    arguments = {names.get(name, name): value for name, value in params.items()}
    expected = polysparse.HashedPolynomialFeatures(**arguments).transform(X)
    assert_same_bits(expanded(HashedPolynomialFeatures(**params), frame), expected)


@pytest.mark.parametrize(
    "build",
    [
        csr_zoo.empty_rows,
        csr_zoo.no_stored_values,
        csr_zoo.no_features,
        csr_zoo.one_feature,
        csr_zoo.uneven_rows,
        csr_zoo.extreme_values,
    ],
    ids=lambda build: build.__name__,
)
def test_awkward_vectors(spark, build):
    dense = build()[1]
    found = expanded(PolynomialFeatures(degree=3), frame_of(spark, vectors_of(dense)))
    assert_same_bits(found, polysparse.expand(sparse.csr_array(dense), 3))


def test_stored_zeros_are_no_features(spark):
    frame = frame_of(spark, [Vectors.sparse(3, [0, 1], [0.0, 2.0]), Vectors.dense([3.0, -0.0, 0])])
    expected = polysparse.expand(sparse.csr_array([[0.0, 2.0, 0.0], [3.0, 0.0, 0.0]]))
    assert_same_bits(expanded(PolynomialFeatures(), frame), expected)


def test_a_dataset_without_rows_has_a_result_without_rows(frame):
    out = PolynomialFeatures(inputCol="x", outputCol="out").transform(frame.where("id < 0"))
    assert out.collect() == []
    assert out.columns == ["id", "x", "out"]


def test_other_columns_stay_and_names_may_have_dots(frame):
    renamed = frame.withColumnRenamed("x", "a.b")
    out = PolynomialFeatures(inputCol="a.b", outputCol="c.d").transform(renamed)
    assert out.columns == ["id", "a.b", "c.d"]
    assert_same_bits(matrix_of(out.withColumnRenamed("c.d", "out"), "out"), polysparse.expand(X))


def test_wide_vectors_make_blocks_that_are_sent_one_by_one(spark):
    """Every row makes 15 MB, more than a block that stays in cache."""
    rng = np.random.default_rng(0)
    dense = np.zeros((3, 3000))
    for row in dense:
        row[rng.choice(3000, 1600, replace=False)] = rng.integers(1, 9, 1600)
    stage = PolynomialFeatures(includeBias=False, inputCol="x", outputCol="out")
    out = stage.transform(frame_of(spark, vectors_of(dense)))
    assert_same_bits(
        matrix_of(out, "out"), polysparse.expand(sparse.csr_array(dense), include_bias=False)
    )


def test_columns_of_narrow_expansions_are_named(frame):
    hinted = frame.withColumn("x", F.col("x").alias("x", metadata={"ml_attr": {
        "attrs": {"numeric": [{"idx": 0, "name": "age"}], "binary": [{"idx": 2}]}, "num_attrs": 9
    }}))  # fmt: skip
    stage = PolynomialFeatures(inputCol="x", outputCol="out")
    about = stage.transform(hinted).schema["out"].metadata["ml_attr"]
    expected = polysparse.MonomialBasis(9).names(None, ["age", *(f"x{j}" for j in range(1, 9))])
    assert [each["idx"] for each in about["attrs"]["numeric"]] == list(range(55))
    assert [each["name"] for each in about["attrs"]["numeric"]] == expected.tolist()
    assert about["num_attrs"] == 55
    assert stage.transformSchema(hinted.schema)["out"].metadata["ml_attr"] == about


def test_columns_of_wide_or_hashed_expansions_are_counted_only(frame):
    for stage, n_columns in (
        (PolynomialFeatures(degree=7), 11440),
        (HashedPolynomialFeatures(), 2**20),
    ):
        out = stage.setInputCol("x").setOutputCol("out").transform(frame)
        assert out.schema["out"].metadata == {"ml_attr": {"num_attrs": n_columns}}


def test_workers_except_their_modules_from_the_search_for_garbage(frame):
    """Spark searches after each task, among all objects that are not frozen."""

    def excepted(x):
        yield pa.array([gc.get_freeze_count()] * x.shape[0])

    counts = frame.select(on_rows(excepted, LongType(), "x", 9)).collect()
    assert min(count for (count,) in counts) > 10_000
