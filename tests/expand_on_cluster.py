"""Expand vectors on a cluster one of whose executors is killed; write the result to a folder."""

import json
import sys
from pathlib import Path

import numpy as np

N_ROWS, N_FEATURES, N_TASKS = 6_000, 12, 12


def dense_rows():
    """The same numbers as `vectors` has, made here."""
    rows, features = np.arange(N_ROWS)[:, None], np.arange(N_FEATURES)
    return np.maximum((rows * 7 + features * features * 13) % 17 - 9, 0) / 3


def vectors(spark):
    """Numbered vectors, made by the executors, and shuffled."""
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions as F

    value = "greatest((id * 7 + j * j * 13) % 17 - 9, 0) / 3"
    array = F.expr(f"transform(sequence(0, {N_FEATURES - 1}), j -> double({value}))")
    rows = spark.range(0, N_ROWS, 1, 4).repartition(N_TASKS, "id")
    return rows.select("id", array_to_vector(array).alias("x"))


def main(folder):
    """Run everything, and print what was killed."""
    from polysparse.spark import ObservedPolynomialFeatures
    from spark_cluster import KillOnce, executors_of, local_cluster

    with local_cluster(folder) as spark:
        rows = vectors(spark)
        model = ObservedPolynomialFeatures(degree=3, inputCol="x", outputCol="out").fit(rows)
        before = executors_of(spark)
        kill = KillOnce(spark, after_tasks=5)  # more than the stage before has
        out = model.transform(rows).select("id", "out")
        out.write.parquet(str(Path(folder) / "out"))
        print(json.dumps({"killed": kill.killed, "executors": before}))


if __name__ == "__main__":
    main(sys.argv[1])
