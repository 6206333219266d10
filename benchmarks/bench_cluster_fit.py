"""What fits on Dask and Spark reach, against MLlib's LogisticRegression on its expansion.

All sides fit the same rows to the same objective, C times the log losses plus half the squared
coefficients, in turn; the best of several times counts; how far each fit is from the best objective
known is printed, and ours must be within GAP of it. MLlib has the largest `tol` that reaches this,
unless another is given.
Spark is local[2], its rows are cached, and MLlib's times include the expansion, which is cached for
its passes. Dask has two workers, processes of one thread, which hold the rows.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from distributed import Client, LocalCluster
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.feature import PolynomialExpansion
from pyspark.sql import DataFrame
from scipy import sparse

import measure
from bench_columns import mark
from bench_core import DATA, say
from bench_dask import in_blocks
from bench_spark import N_FEATURES, start_session, tiled_rows
from polysparse import PolynomialLogisticRegression
from polysparse import spark as on_spark
from polysparse.machine import threads_for

MLLIB, SPARK, DASK = "MLlib", "polysparse on Spark, local[2]", "polysparse on Dask, 2 processes"
TARGET = 3.0
C = 0.1
GAP = 1e-6
TOLS = 10.0 ** np.arange(-6, -13, -1)  # that MLlib is tried with
N_BLOCKS = 4


def fit_mllib(rows: DataFrame, n_rows: int, tol: float) -> float:
    """Fit MLlib's model to its expansion; return its objective."""
    expanded = PolynomialExpansion(degree=2, inputCol="features", outputCol="products")
    products = expanded.transform(rows).select("label", "products").cache()
    model = LogisticRegression(
        featuresCol="products",
        regParam=1 / (C * n_rows),
        standardization=False,
        tol=float(tol),
        maxIter=10_000,
    ).fit(products)
    products.unpersist()
    # MLlib's objective is the mean of the losses, with the penalty.
    return float(model.summary.objectiveHistory[-1] * C * n_rows)


def fit_spark(rows: DataFrame) -> float:
    """Fit our model on Spark; return its objective."""
    model = on_spark.PolynomialLogisticRegression(C=C).fit(rows)
    return float(model.model.objective_)


def fit_dask(X: Any, y: Any) -> float:
    """Fit our model on Dask; return its objective."""
    return float(PolynomialLogisticRegression(C).fit(X, y).objective_)


def as_matrix(rows: DataFrame) -> tuple[Any, Any]:
    """Return rows of a dataset in this process."""
    pairs = rows.select("features", "label").collect()
    indptr = np.cumsum([0, *(len(row.features.indices) for row in pairs)])
    arrays = (
        np.concatenate([row.features.values for row in pairs]),
        np.concatenate([row.features.indices for row in pairs]),
        indptr,
    )
    X = sparse.csr_array(arrays, shape=(len(pairs), N_FEATURES))
    return X, np.array([row.label for row in pairs])


def largest_tol(rows: DataFrame, n_rows: int, best: float) -> float:
    """Return the largest tol with which MLlib's model comes as close to the optimum as ours."""
    for tol in TOLS:
        value = fit_mllib(rows, n_rows, tol)
        say(f"MLlib with tol={tol:.0e}: a gap of {value / best - 1:.1e}")
        if value <= best * (1 + GAP):
            return float(tol)
    say("MLlib does not come as close; its smallest tol is taken")
    return float(TOLS[-1])


def main() -> None:
    """Measure everything, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder that has the file a9a")
    parser.add_argument("--rows", type=int, default=10**6, help="rows to fit to")
    parser.add_argument("--repeats", type=int, default=2, help="rounds of which the best counts")
    parser.add_argument("--tol", type=float, help="that MLlib has; sought by default")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        session = start_session(folder)
        stack.callback(session.stop)
        tiled = tiled_rows(session, options.data, folder, options.rows)
        is_second = (tiled["label"] > 0).cast("double").alias("label")
        rows = tiled.select(is_second, "features").cache()
        n_rows = rows.count()
        X, y = as_matrix(rows)
        best = float(PolynomialLogisticRegression(C, tol=1e-10).fit(X, y).objective_)
        tol = options.tol or largest_tol(rows, n_rows, best)
        cluster = stack.enter_context(
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
        )
        stack.enter_context(Client(cluster))
        held = in_blocks(X, N_BLOCKS).persist()

        gaps: dict[str, float] = {}

        def check(side: str, value: float) -> None:
            gaps[side] = value / best - 1
            if gaps[side] > GAP and side != MLLIB:
                raise AssertionError(f"{side} has a gap of {gaps[side]:.1e}")

        sides: dict[str, Callable[[], Any]] = {
            MLLIB: partial(fit_mllib, rows, n_rows, tol),
            SPARK: partial(fit_spark, rows),
            DASK: partial(fit_dask, held, y),
        }
        times = measure.best_times(sides, repeats=options.repeats, check=check)
        java = session.sparkContext._jvm.System.getProperty("java.version")
    table = []
    for side in (SPARK, DASK):
        ratio = times[MLLIB] / times[side]
        seconds = [f"{times[each]:.1f} s, {gaps[each]:.0e}" for each in (MLLIB, side)]
        reached = mark(f"{ratio:.2f}x", ratio >= TARGET)
        table.append([side, *seconds, f"{TARGET:g}x", reached])
    print(measure.describe_machine(threads_for(None, 10**9)))
    names = ("pyspark", "pyarrow", "dask", "distributed")
    print(", ".join(f"{name} {version(name)}" for name in names) + f", Java {java}")
    print(f"{n_rows:,} rows, degree 2, C={C:g}, to a gap of {GAP:g}; MLlib has tol={tol:.0e}")
    header = ["logistic fit", "MLlib, gap", "ours, gap", "target", "reached"]
    print(f"\n{measure.format_table(header, table, options.markdown)}")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    main()
