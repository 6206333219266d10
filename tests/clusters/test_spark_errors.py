"""Errors are Spark's own, name the column and show the way out."""

import pytest

from spark_frames import frame_of, vectors_of

pytest.importorskip("pyspark")

from pyspark.errors import IllegalArgumentException, SparkRuntimeException
from pyspark.ml.linalg import SparseVector, Vectors
from pyspark.sql import functions as F

import polysparse
from polysparse.spark import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialLogisticRegression,
)


def stage(kind=PolynomialFeatures, **params):
    return kind(**{"inputCol": "x", "outputCol": "out", **params})


@pytest.fixture(scope="module")
def frame(spark):
    return frame_of(spark, vectors_of([[1.0, 0.0, 2.0]])).cache()


def malformed():
    vector = SparseVector(3, [0], [1.0])
    vector.indices[0] = 7
    return vector


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (None, r"Column 'x' has a row that is null.*drop such rows"),
        (Vectors.sparse(4, {0: 1.0}), r"Column 'x' has a vector of size 4, where n_features is 3"),
        (Vectors.dense([1.0, 2.0]), r"Column 'x' has a vector of size 2, where n_features is 3"),
        (malformed(), r"Column 'x' has a malformed vector: .* is 7"),
    ],
    ids=["null", "other size", "other size, dense", "malformed"],
)
def test_faults_in_rows_are_raised_by_spark_with_the_column(spark, frame, vector, message):
    bad = frame.union(frame_of(spark, [vector]))  # in another partition than the first row
    with pytest.raises(SparkRuntimeException, match=message) as raised:
        stage().transform(bad).collect()
    assert raised.value.getCondition() == "USER_RAISED_EXCEPTION"
    assert "Traceback" not in str(raised.value)


def test_a_fault_in_a_row_is_raised_by_fit_as_well(spark, frame):
    bad = frame.union(frame_of(spark, [None]))
    with pytest.raises(SparkRuntimeException, match="'x' has a row that is null") as raised:
        stage(ObservedPolynomialFeatures).fit(bad)
    assert "Traceback" not in str(raised.value)


def test_rows_before_a_fault_are_not_given_as_null(spark, frame):
    bad = frame.union(frame_of(spark, [None])).coalesce(1)
    with pytest.raises(SparkRuntimeException, match="'x' has a row that is null"):
        stage().transform(bad).where(F.col("out").isNull()).limit(1).collect()


KINDS = PolynomialFeatures, HashedPolynomialFeatures, ObservedPolynomialFeatures


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_checked_before_anything_runs(frame, kind):
    def run(frame, **params):
        asked = stage(kind, **params)
        with pytest.raises(IllegalArgumentException) as early:
            asked.transformSchema(frame.schema)
        act = asked.fit if kind is ObservedPolynomialFeatures else asked.transform
        with pytest.raises(IllegalArgumentException) as late:
            act(frame)
        assert str(early.value) == str(late.value)
        return str(early.value)

    assert run(frame, inputCol="y") == "Column 'y' does not exist. Available: 'id', 'x'."
    assert "Column 'id' must hold vectors, but its type is bigint" in run(frame, inputCol="id")
    assert "Output column 'id' already exists" in run(frame, outputCol="id")
    assert "leaves no column at all" in run(frame, degree=0, includeBias=False)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (stage(HashedPolynomialFeatures, nColumns=0), r"nColumns must be an int \(1 to .*got 0"),
        (stage(HashedPolynomialFeatures, seed=-1), r"seed must be an int \(0 to .*got -1"),
        (stage(ObservedPolynomialFeatures, minCount=0), r"minCount must be an int \(at least 1"),
        (stage(ObservedPolynomialFeatures, maxColumns=0), r"maxColumns must be an int \(at least"),
        (stage(columnOrder="C"), r'columnOrder must be "sklearn" or "spark"; got \'C\''),
        (
            stage(columnOrder="spark", degree=(1, 2)),
            r'columnOrder="spark".* does not support degree=\[1, 2\]: set columnOrder="sklearn"',
        ),
        (stage(columnOrder="spark", interactionOnly=True), "not support interactionOnly=True"),
        (stage(columnOrder="spark", includeBias=True), "not support includeBias=True"),
        (stage(degree=-1), "degree must be a non-negative int"),
    ],
)
def test_params_are_refused_in_the_words_of_spark(frame, asked, message):
    with pytest.raises(IllegalArgumentException, match=message):
        asked.transformSchema(stated(frame, 3).schema)


def test_params_of_a_wrong_type_are_refused_when_they_are_set():
    with pytest.raises(TypeError, match='param "interactionOnly"'):
        PolynomialFeatures(interactionOnly="yes")
    with pytest.raises(TypeError, match=r'param "degree"\. degree must be an int, or a pair'):
        PolynomialFeatures().setDegree("2")
    with pytest.raises(TypeError, match=r'param "classWeight"\. classWeight must map numbers'):
        PolynomialLogisticRegression(classWeight={"a": 1.0})
    with pytest.raises(TypeError, match=r'param "columns"\. columns must be .* got \[0\.5\]'):
        PolynomialLogisticRegression(columns=[0.5])
    with pytest.raises(TypeError, match=r"a transformer on Spark; .* Set columns to 'observed'"):
        PolynomialLogisticRegression(columns=polysparse.HashedPolynomialFeatures())


def test_unknown_params_are_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'order'"):
        PolynomialFeatures(order="spark")
    with pytest.raises(TypeError, match="unexpected keyword argument 'uid'"):
        PolynomialFeatures().setParams(uid="a")


def stated(frame, n_features):
    about = {"ml_attr": {"num_attrs": n_features}}
    return frame.withColumn("x", F.col("x").alias("x", metadata=about))


@pytest.mark.parametrize("order", ["sklearn", "spark"])
def test_an_expansion_wider_than_a_vector_is_refused_by_the_schema(frame, order):
    asked, fits = stage(columnOrder=order), 65_534
    asked.transformSchema(stated(frame, fits).schema)
    with pytest.raises(
        IllegalArgumentException,
        match=r"of column 'x' would have 2,147,5\d\d,\d\d\d terms of degree=2; a vector of "
        r"Spark has at most 2,147,483,647 columns. HashedPolynomialFeatures has nColumns .* "
        r"ObservedPolynomialFeatures keeps only .* at most maxColumns",
    ):
        asked.transformSchema(stated(frame, fits + 1).schema)
    stage(HashedPolynomialFeatures).transformSchema(stated(frame, fits + 1).schema)
    stage(ObservedPolynomialFeatures).transformSchema(stated(frame, fits + 1).schema)


def test_a_wide_first_row_is_refused_before_it_is_expanded(spark):
    wide = frame_of(spark, [Vectors.sparse(10**9, {0: 1.0})])
    with pytest.raises(IllegalArgumentException, match="500,000,001,500,000,001 terms"):
        stage().transform(wide)


def test_a_stream_needs_to_state_its_features(spark, frame, tmp_path):
    frame.write.parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "rows"))
    with pytest.raises(IllegalArgumentException, match=r"'x' of a stream .* put a VectorSizeHint"):
        stage().transform(stream)
    assert stage().transform(stated(stream, 3)).isStreaming
