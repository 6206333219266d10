"""A model that is fitted to a Spark dataset is the one that is fitted to the whole matrix."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

pytest.importorskip("pyspark")

import polysparse
import polysparse.spark as on_spark
from csr_zoo import random_csr
from expand_on_cluster import dense_rows
from model_data import classes_for, numbers_for
from polysparse.clusters.data_blocks import DataBlock
from polysparse.matrix.canonical import as_canonical_csr
from polysparse.spark import block_files
from polysparse.spark.cluster import SparkCluster
from polysparse.spark.packing import join, pack_rows, unpack
from spark_frames import frame_of, vectors_of

X = random_csr(90, 6, 0.5)
WEIGHTS = 1 + np.arange(90) % 3.0
TARGETS = {
    "two": classes_for(X, 2).astype(float),
    "three": 10 * classes_for(X, 3).astype(float) - 5,  # any numbers are classes
    "ridge": numbers_for(X),
}
TOL = 1e-2  # few passes: iterates are the same but for rounding


def frame(spark, target, n_partitions=2):
    """Numbered rows with labels and weights; one partition more is empty."""
    from pyspark.sql import functions as F

    numbers = [(i, float(TARGETS[target][i]), float(WEIGHTS[i])) for i in range(90)]
    labels = spark.createDataFrame(numbers, ["id", "label", "weight"])
    rows = frame_of(spark, vectors_of(X, dense_rows={3, 4, 50})).join(labels, "id")
    rows = rows.withColumnRenamed("x", "features").withColumn("part", F.col("id") % n_partitions)
    return rows.repartitionByRange(n_partitions + 1, "part").drop("part").cache()


def make(target, **params):
    kind = on_spark.PolynomialRidge if target == "ridge" else on_spark.PolynomialLogisticRegression
    return kind(**{"tol": TOL, "weightCol": "weight", **params})


def in_python(target, **parameters):
    kind = (
        polysparse.PolynomialRidge if target == "ridge" else polysparse.PolynomialLogisticRegression
    )
    return kind(tol=TOL, **parameters).fit(X, TARGETS[target], WEIGHTS)


def assert_same(found, wanted):
    scale = np.abs(wanted.coef_).max()
    # Conjugate gradients enlarge the rounding of their first steps.
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=0, atol=1e-4 * scale)
    np.testing.assert_allclose(found.intercept_, wanted.intercept_, rtol=0, atol=1e-4 * scale)
    assert found.objective_ == pytest.approx(wanted.objective_, rel=1e-6)
    assert found.column_space_ == wanted.column_space_
    np.testing.assert_array_equal(found.column_counts_, wanted.column_counts_)


@pytest.fixture(scope="module", params=list(TARGETS))
def fitted(request, spark):
    """A target, rows, and the model that is fitted to them."""
    rows = frame(spark, request.param)
    return request.param, rows, make(request.param).fit(rows)


def test_the_model_is_that_of_the_whole_matrix(fitted):
    target, _, stage = fitted
    assert_same(stage.model, in_python(target))


def test_predictions_are_those_of_the_model_in_python(fitted):
    target, rows, stage = fitted
    out = stage.transform(rows).orderBy("id").collect()
    columns = ["id", "features", "label", "weight"]
    columns += (
        ["prediction"] if target == "ridge" else ["rawPrediction", "probability", "prediction"]
    )
    assert out[0].asDict().keys() == set(columns)
    np.testing.assert_array_equal([row.prediction for row in out], stage.model.predict(X))
    if target != "ridge":
        probabilities = np.array([row.probability.toArray() for row in out])
        assert probabilities.tobytes() == stage.model.predict_proba(X).tobytes()
        raw = np.array([row.rawPrediction.toArray() for row in out])
        scores = stage.model.decision_function(X)
        np.testing.assert_array_equal(
            raw, np.column_stack([-scores, scores]) if target == "two" else scores
        )


def test_a_model_is_saved_without_pickle_and_loaded(fitted, tmp_path):
    _, rows, stage = fitted
    stage.setPredictionCol("guess").write().overwrite().save(str(tmp_path / "model"))
    stage.setPredictionCol("prediction")
    again = type(stage).load(str(tmp_path / "model"))
    assert again.uid == stage.uid
    assert again.getPredictionCol() == "guess"
    assert again.coefficients.tobytes() == stage.coefficients.tobytes()
    assert again.transform(rows).first().guess == stage.transform(rows).first().prediction
    assert again.copy().coefficients.tobytes() == stage.coefficients.tobytes()


@pytest.mark.parametrize(
    ("params", "parameters"),
    [
        (
            {"columns": "observed", "minCount": 20, "fitIntercept": False},
            {
                "columns": polysparse.ObservedPolynomialFeatures(min_count=20),
                "fit_intercept": False,
            },
        ),
        (
            {"columns": "hashed", "nColumns": 12, "classWeight": "balanced"},
            {
                "columns": polysparse.HashedPolynomialFeatures(n_columns=12, include_bias=False),
                "class_weight": "balanced",
            },
        ),
        ({"columns": [0, 3, 7, 20]}, {"columns": [0, 3, 7, 20]}),
        ({"classWeight": {0: 3, 1: 0.5}}, {"class_weight": {0: 3, 1: 0.5}}),
    ],
)
def test_columns_and_weights(spark, params, parameters):
    found = make("two", **params).fit(frame(spark, "two"))
    assert_same(found.model, in_python("two", **parameters))


def test_terms_have_the_names_of_features_in_the_metadata(spark, tmp_path):
    from pyspark.ml.feature import VectorAssembler

    numbers = [(float(a), float(b), 3.0 * a * b) for a in range(4) for b in range(4)]
    data = spark.createDataFrame(numbers, ["age", "dose", "label"])
    data = VectorAssembler(inputCols=["age", "dose"], outputCol="features").transform(data)
    model = on_spark.PolynomialRidge(interactionOnly=True).fit(data)
    model.save(str(tmp_path / "model"))
    for each in (model, on_spark.PolynomialRidgeModel.load(str(tmp_path / "model"))):
        assert list(each.model.top_terms(1)["name"]) == ["age dose"]


def test_weights_of_classes_and_column_numbers_are_saved_and_loaded(spark, tmp_path):
    stage = make("two", classWeight={1: 2}, columns=np.array([1, 4]))
    stage.save(str(tmp_path / "stage"))
    again = type(stage).load(str(tmp_path / "stage"))
    model = again.setMaxIter(20).fit(frame(spark, "two"))
    assert_same(model.model, in_python("two", class_weight={1: 2}, columns=[1, 4]))
    model.save(str(tmp_path / "model"))
    for each in (stage, again, model, type(model).load(str(tmp_path / "model"))):
        assert each.getClassWeight() == {1.0: 2.0}
        assert each.getColumns() == [1, 4]
    assert "weight of each label" in stage.explainParam("classWeight")


def test_two_fits_at_once(spark):
    with ThreadPoolExecutor(2) as threads:
        frames = {target: frame(spark, target) for target in ("two", "ridge")}
        made = {t: threads.submit(make(t).fit, rows) for t, rows in frames.items()}
    for target, each in made.items():
        assert_same(each.result().model, in_python(target))


def test_what_workers_import_is_light():
    """scikit-learn takes a worker seconds, in the first fit of a session."""
    code = """
import sys
import numpy as np
import polysparse.spark.cluster
from polysparse.clusters import data_blocks
from polysparse.matrix.canonical import as_canonical_csr
from polysparse.models import contributions
from polysparse.models.weights import WeightRange
from scipy import sparse

x = as_canonical_csr(sparse.csr_array(np.eye(3)))
data = data_blocks.DataBlock(x, np.arange(3.0), np.array([1.0, 2.0, 4.0]))
assert data_blocks.describe(data) == (3, WeightRange(1.0, 4.0, 7.0))
assert data_blocks.count_classes(data)[0].weights.tolist() == [1, 2, 4]
assert "sklearn" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def many_partitions(monkeypatch):
    from pyspark import SparkContext

    monkeypatch.setattr(SparkContext, "defaultParallelism", 20)


@pytest.mark.usefixtures("many_partitions")
def test_many_partitions_are_summed_as_a_tree_in_their_order(spark):
    rows = frame(spark, "ridge", n_partitions=9)
    once, again = (make("ridge", maxIter=100, degree=1).fit(rows) for _ in range(2))
    assert once.coefficients.tobytes() == again.coefficients.tobytes()
    assert_same(once.model, in_python("ridge", degree=1))


def test_a_pipeline_and_a_cross_validator(spark, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.evaluation import BinaryClassificationEvaluator
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

    rows = frame(spark, "two")
    stage = make("two", degree=1)
    pipeline = Pipeline(stages=[stage])
    pipeline.save(str(tmp_path / "pipeline"))
    assert Pipeline.load(str(tmp_path / "pipeline")).getStages()[0].getTol() == TOL
    grid = ParamGridBuilder().addGrid(stage.C, [1e-6, 1.0]).build()
    search = CrossValidator(
        estimator=pipeline,
        estimatorParamMaps=grid,
        evaluator=BinaryClassificationEvaluator(),
        numFolds=2,
    )
    found = search.fit(rows)
    best = found.bestModel
    assert best.stages[0].getC() == [1e-6, 1.0][int(np.argmax(found.avgMetrics))]
    best.save(str(tmp_path / "model"))
    again = PipelineModel.load(str(tmp_path / "model"))
    assert again.stages[0].coefficients.tobytes() == best.stages[0].coefficients.tobytes()


@pytest.mark.usefixtures("java")
def test_a_fit_survives_the_death_of_an_executor(tmp_path):
    program = Path(__file__).parents[1] / "fit_on_cluster.py"
    done = subprocess.run(
        [sys.executable, program, tmp_path], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert len(report["killed"]) == 1
    assert report["killed"][0] in report["executors"]
    rows = sparse.csr_array(dense_rows()[:600])
    wanted = polysparse.PolynomialLogisticRegression(tol=1e-3).fit(rows, report["labels"])
    assert report["objective"] == pytest.approx(wanted.objective_, rel=1e-6)
    scale = np.abs(wanted.coef_).max()
    np.testing.assert_allclose(report["coefficients"], wanted.coef_[0], rtol=0, atol=1e-9 * scale)


# ----------------------------------------------------------------------------------------- refusals


def test_columns_that_are_missing_or_of_another_type(spark):
    from pyspark.errors import IllegalArgumentException
    from pyspark.sql import functions as F

    rows = frame(spark, "two")
    for params, message in (
        ({"labelCol": "other"}, "Column 'other' does not exist"),
        ({"weightCol": "other"}, "Column 'other' does not exist"),
        ({"featuresCol": "label"}, "Column 'label' must hold vectors"),
        ({"C": -1.0}, "C must be a number above 0, or infinite; got -1.0"),
        ({"maxIter": 0}, r"maxIter must be an int \(at least 1\)"),
        ({"columns": "some"}, "columns must be"),
        ({"columns": [3, 2]}, "columns must increase"),
        ({"columns": [27]}, "27"),
        ({"classWeight": "other"}, "classWeight"),
        ({"classWeight": {0: 1, 1: -1}}, "its classWeight is -1"),
    ):
        with pytest.raises(IllegalArgumentException, match=message):
            make("two", **params).fit(rows)
    with pytest.raises(IllegalArgumentException, match="Column 'label' must hold numbers"):
        make("two").fit(rows.withColumn("label", F.col("label").cast("string")))
    with pytest.raises(IllegalArgumentException, match="Unknown label type: continuous"):
        make("two").fit(rows.withColumn("label", F.col("label") + F.rand(0)))
    with pytest.raises(IllegalArgumentException, match=r"labelCol has 1 class, 1\.0"):
        make("two").fit(rows.withColumn("label", F.lit(1.0)))
    with pytest.raises(IllegalArgumentException, match="no rows to fit"):
        make("two").fit(rows.where("id < 0"))


@pytest.mark.parametrize("target", ["two", "ridge"])
def test_vectors_without_features(spark, target):
    from pyspark.errors import IllegalArgumentException
    from pyspark.ml.linalg import Vectors

    rows = [(Vectors.sparse(0, [], []), float(i % 2), 1.0) for i in range(4)]
    empty = spark.createDataFrame(rows, ["features", "label", "weight"])
    with pytest.raises(IllegalArgumentException, match="'features' has vectors of size 0; at leas"):
        make(target).fit(empty)


def test_a_warning_names_the_line_of_the_user(spark):
    words = "did not converge in maxIter=1 iterations.* Raise maxIter or tol, or scale the features"
    with pytest.warns(ConvergenceWarning, match=words) as caught:
        make("three", tol=0.0, maxIter=1).fit(frame(spark, "three"))
    ours = [each for each in caught if each.category is ConvergenceWarning]
    assert [each.filename for each in ours] == [__file__]


def test_a_fit_that_rounding_ends(spark):
    from pyspark.ml.linalg import Vectors

    far = zip(1e10 + X[:, :3].toarray(), TARGETS["ridge"].tolist(), strict=True)
    rows = [(Vectors.dense(row), label, 1.0) for row, label in far]
    words = (
        "so tol=1e-06 may.* with pyspark.ml.feature.StandardScaler.withMean=True., lower the degree"
    )
    with pytest.warns(ConvergenceWarning, match=words):
        make("ridge", degree=1, tol=1e-6).fit(
            spark.createDataFrame(rows, ["features", "label", "weight"])
        )


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("label", None, "Column 'label' has a row that is null"),
        ("weight", float("nan"), "Column 'weight' has a value that is NaN or infinite"),
        ("features", None, "Column 'features' has a row that is null"),
    ],
)
def test_faults_in_rows_are_errors_of_spark(spark, column, value, message):
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    rows = frame(spark, "two")
    kind = rows.schema[column].dataType
    bad = F.when(F.col("id") == 7, F.lit(value).cast(kind)).otherwise(F.col(column))
    with pytest.raises(PySparkException, match=message) as caught:
        make("two").fit(rows.withColumn(column, bad))
    assert "Traceback" not in str(caught.value)


def test_blocks_are_packed_without_loss():
    import pyarrow as pa

    from polysparse.spark.vectors import as_vectors

    batches = [
        pa.record_batch(
            [as_vectors(X[rows]), pa.array(TARGETS["ridge"][rows]), pa.array(WEIGHTS[rows])],
            names=["x", "y", "weights"],
        )
        for rows in (slice(0, 30), slice(30, 30), slice(30, 90))
    ]
    (row,) = pack_rows(("x", "y", "weights"), 6, iter(batches))
    *arrays, fault = (each[0].as_py() for each in row.columns)
    assert fault is None
    rows = unpack(arrays, 6)
    assert rows.x.data.tobytes() == X.data.tobytes()
    np.testing.assert_array_equal(rows.x.indices, X.indices)
    np.testing.assert_array_equal(rows.x.indptr, X.indptr)
    assert rows.y.tobytes() == TARGETS["ridge"].tobytes()
    assert rows.weights.tobytes() == WEIGHTS.tobytes()
    assert arrays[3] == "|u1"  # six features
    assert join([], 6).x.shape == (0, 6)


# ------------------------------------------------------------------------------ rows of executors


def folders_of_fits(spark):
    """Return what there is of fits where the executor, which is this machine, stores rows."""

    def place(_):
        import os

        yield os.environ["SPARK_LOCAL_DIRS"]

    (where,) = spark.sparkContext.parallelize([0], 1).mapPartitions(place).collect()
    return list(Path(where.split(",")[0]).glob("polysparse-*"))


@pytest.mark.usefixtures("many_partitions")
def test_rows_that_are_not_stored_are_sent_again(spark, monkeypatch):
    """As after the loss of an executor: no worker knows the fit by its new name."""
    seen = []
    store = SparkCluster._store

    def rename(self, function, /, *kept, **shared):
        if len(seen) == 3:
            self.name = "another"
        seen.append(None)
        return total(self, function, *kept, **shared)

    total = SparkCluster.total
    stored = []
    monkeypatch.setattr(SparkCluster, "total", rename)
    monkeypatch.setattr(
        SparkCluster, "_store", lambda self, which: stored.append(which) or store(self, which)
    )
    assert_same(make("two").fit(frame(spark, "two", n_partitions=10)).model, in_python("two"))
    assert [sorted(each) for each in stored] == 2 * [list(range(11))]


def test_rows_that_cannot_be_stored_are_sent_in_every_pass(spark, monkeypatch):
    monkeypatch.setattr(SparkCluster, "_store", lambda self, which: None)
    assert_same(make("two").fit(frame(spark, "two")).model, in_python("two"))


def test_executors_keep_no_rows_after_a_fit(spark, monkeypatch):
    before, found = set(folders_of_fits(spark)), []
    store = SparkCluster._store

    def look(self, which):
        store(self, which)
        found.extend(folders_of_fits(spark))

    monkeypatch.setattr(SparkCluster, "_store", look)
    make("two").fit(frame(spark, "two"))
    assert len(set(found) - before) == 1
    assert set(folders_of_fits(spark)) == before


def test_a_fit_does_not_fail_when_rows_cannot_be_removed(spark, monkeypatch):
    def fail(fit, blocks):
        raise OSError("Read-only file system")

    monkeypatch.setattr("polysparse.spark.cluster.forget", fail)
    assert_same(make("two").fit(frame(spark, "two")).model, in_python("two"))


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    rows = DataBlock(as_canonical_csr(X), TARGETS["ridge"], WEIGHTS)
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    block_files.store("fit", "0-0", rows)
    assert block_files.stored("fit", "0-0", 6) is None
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},elsewhere")
    block_files.store("fit", "0-0", rows)
    block_files.store("fit", "0-0", rows)
    assert [path.name for path in (tmp_path / "polysparse-fit").iterdir()] == ["0-0"]
    found = block_files.stored("fit", "0-0", 6)
    assert found.x.data.tobytes() == X.data.tobytes()
    assert found.weights.tobytes() == WEIGHTS.tobytes()
    data = tmp_path / "polysparse-fit" / "0-0" / "data.npy"
    data.write_bytes(data.read_bytes()[:-8])
    assert block_files.stored("fit", "0-0", 6) is None

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    block_files.store("fit", "0-1", rows)
    assert block_files.stored("fit", "0-1", 6) is None
    assert [path.name for path in (tmp_path / "polysparse-fit").iterdir()] == ["0-0"]
    block_files.remove("fit")
    assert list(tmp_path.iterdir()) == []
