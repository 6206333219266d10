"""What the stages on Spark reach, against MLlib's PolynomialExpansion, to the same sink.

All sides run in one session of local[2], in turn, on the same cached rows, to Spark's sink that
drops them; the best of several times counts; what a side makes is checked on a sample of the rows;
ratios are printed, with versions, also where they miss their target. The session has the settings
that docs/scaling.md recommends, of which MLlib needs none.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pyspark.ml import PipelineModel
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.feature import PolynomialExpansion
from pyspark.sql import DataFrame, SparkSession
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import measure
from bench_columns import mark
from bench_core import DATA, say
from polysparse.machine import threads_for
from polysparse.spark import (
    HashedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialLogisticRegression,
)

MLLIB, OURS, SAME_ORDER = "MLlib", "PolynomialFeatures", 'PolynomialFeatures, columnOrder="spark"'
MLLIB_MODEL, HASHED = "MLlib and its model", "HashedPolynomialFeatures and MLlib's model"
OUR_MODEL = "PolynomialLogisticRegression's model"
TARGET_VECTORS, TARGET_PREDICTION = 3.0, 6.0
N_FEATURES, N_STORED, N_DISTINCT = 123, 14, 32_561  # of a9a
N_HASHED = 2**18

# Arrow's own checks of every element, Spark's measuring of the batch after every row, and sockets
# of the network cost more than the expansion.
SETTINGS = {
    "spark.driver.extraJavaOptions": "-Darrow.enable_unsafe_memory_access=true "
    "-Darrow.enable_null_check_for_get=false",
    "spark.driver.memory": "4g",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


# ------------------------------------------------------------------------------------------- rows


def start_session(folder: Path) -> SparkSession:
    """Two cores, with settings that do not depend on where they run."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[2]").appName("polysparse benchmark")
    for name, value in (SETTINGS | {"spark.local.dir": str(folder)}).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def tiled_rows(session: SparkSession, data: Path, folder: Path, n_rows: int) -> DataFrame:
    """So many rows of a9a, over and over, in memory; without the file, rows that are like them."""
    path = data / "a9a"
    if not path.exists():
        say(f"there is no {path}, so rows of {N_STORED} of {N_FEATURES} features are made")
        path = folder / "rows.svmlight"
        write_rows(path)
    rows = session.read.format("libsvm").option("numFeatures", N_FEATURES).load(str(path))
    times = session.range(-(-n_rows // N_DISTINCT))
    tiled = rows.crossJoin(times).select("label", "features").limit(n_rows).repartition(4).cache()
    say(f"{tiled.count():,} rows")
    return tiled


def write_rows(path: Path) -> None:
    """Rows of as many features as those of a9a have, each of them 1."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.random((N_DISTINCT, N_FEATURES)).argsort(axis=1)[:, :N_STORED])
    offsets = np.arange(N_DISTINCT + 1) * N_STORED
    shape = N_DISTINCT, N_FEATURES
    X = sparse.csr_matrix((np.ones(columns.size), columns.ravel(), offsets), shape=shape)
    dump_svmlight_file(X, rng.choice([-1, 1], N_DISTINCT), str(path), zero_based=False)


# --------------------------------------------------------------------------------------- measures


def stages(degree: int, sample: DataFrame) -> dict[str, Any]:
    """What makes the column `out` on each side."""
    columns = {"degree": degree, "inputCol": "features", "outputCol": "products"}
    mllib, hashed = PolynomialExpansion(**columns), HashedPolynomialFeatures(**columns)
    hashed.setNColumns(N_HASHED)
    return {
        MLLIB: mllib,
        OURS: PolynomialFeatures(**columns, includeBias=False),
        SAME_ORDER: PolynomialFeatures(**columns, columnOrder="spark"),
        MLLIB_MODEL: with_model(mllib, sample),
        HASHED: with_model(hashed, sample),
        OUR_MODEL: PipelineModel([fused_model(degree, sample)]),
    }


def fused_model(degree: int, sample: DataFrame) -> Any:
    """A model of ours, which predicts without an expansion."""
    return PolynomialLogisticRegression(degree=degree, tol=1.0).fit(sample)


def with_model(stage: Any, sample: DataFrame) -> PipelineModel:
    """A stage, and a model of MLlib that predicts from what it makes."""
    label = (sample["label"] > 0).cast("double").alias("label")
    rows = stage.transform(sample.select(label, "features"))
    logistic = LogisticRegression(featuresCol="products", maxIter=1)
    return PipelineModel([stage, logistic.fit(rows)])


def run(stage: Any, rows: DataFrame) -> None:
    """Make all rows, and drop them."""
    made = stage.transform(rows.select("features"))
    column = "prediction" if isinstance(stage, PipelineModel) else "products"
    made.select(column).write.format("noop").mode("overwrite").save()


def check(sides: dict[str, Any], sample: DataFrame) -> None:
    """The order of MLlib is the same to the last bit; in ours, rows have the same values."""
    mllib, ours, same = (
        [row.products for row in sides[side].transform(sample).select("products").collect()]
        for side in (MLLIB, OURS, SAME_ORDER)
    )
    for theirs, each, like_theirs in zip(mllib, ours, same, strict=True):
        if theirs != like_theirs or not np.array_equal(
            np.sort(theirs.values), np.sort(each.values)
        ):
            raise AssertionError(f"{each} is not {theirs}")


def time_degree(degree: int, rows: DataFrame, repeats: int) -> dict[str, float]:
    """Best times of all sides."""
    sample = rows.limit(500).coalesce(1).cache()
    sides = stages(degree, sample)
    check(sides, sample)
    calls: dict[str, Callable[[], Any]] = {
        side: partial(run, stage, rows) for side, stage in sides.items()
    }
    for call in calls.values():  # Java compiles what runs for long
        call()
    return measure.best_times(calls, repeats=repeats)


# ----------------------------------------------------------------------------------------- report

COMPARED = [
    (OURS, MLLIB, TARGET_VECTORS),
    (SAME_ORDER, MLLIB, TARGET_VECTORS),
    (HASHED, MLLIB_MODEL, TARGET_PREDICTION),
    (OUR_MODEL, MLLIB_MODEL, TARGET_PREDICTION),
]


def main() -> None:
    """Measure everything, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder that has the file a9a")
    parser.add_argument("--rows", type=int, default=10**6, help="rows to expand")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of which the best counts")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    options = parser.parse_args()
    table = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        session = start_session(folder)
        stack.callback(session.stop)
        rows = tiled_rows(session, options.data, folder, options.rows)
        for degree in (2, 3):
            say(f"degree {degree}")
            times = time_degree(degree, rows, options.repeats)
            for ours, theirs, target in COMPARED:
                ratio = times[theirs] / times[ours]
                seconds = [f"{times[side]:.2f} s" for side in (theirs, ours)]
                reached = mark(f"{ratio:.2f}x", ratio >= target)
                table.append(
                    [f"{ours}, degree {degree}", theirs, *seconds, f"{target:g}x", reached]
                )
        java = session.sparkContext._jvm.System.getProperty("java.version")
    print(measure.describe_machine(threads_for(None, 10**9)))
    print(f"pyspark {version('pyspark')}, pyarrow {version('pyarrow')}, Java {java}, local[2]")
    header = ["to a sink that drops the rows", "against", "theirs", "ours", "target", "reached"]
    print(f"\n{measure.format_table(header, table, options.markdown)}")


if __name__ == "__main__":
    main()
