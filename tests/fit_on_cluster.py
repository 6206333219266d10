"""Fit a model on a cluster one of whose executors is killed; print what was fitted."""

import json
import os
import signal
import sys
from unittest.mock import patch

from expand_on_cluster import vectors

PARAMETERS = {"tol": 1e-3, "degree": 2}


def labelled(spark):
    """The vectors, with a label that depends on products of theirs."""
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql import functions as F

    x = vector_to_array("x")
    product = x[0] * x[1] - x[2] + x[3] * x[4]
    rows = vectors(spark).where("id < 600").repartition(3, "id").sortWithinPartitions("id")
    return rows.withColumn("label", F.when(product > 0.5, 1.0).otherwise(0.0))


def main(folder):
    """Run everything."""
    from inside import at_iteration
    from polysparse.spark import PolynomialLogisticRegression
    from spark_cluster import executors_of, local_cluster

    with local_cluster(folder) as spark:
        rows = labelled(spark)
        killed, before = [], executors_of(spark)

        def kill():
            killed.append(executors_of(spark)[0])
            os.kill(killed[0], signal.SIGKILL)

        class Patch:
            setattr = staticmethod(lambda path, value: patch(path, value).start())

        at_iteration(Patch, 2, kill)
        fitted = PolynomialLogisticRegression(featuresCol="x", **PARAMETERS).fit(rows).model
        data = sorted((row.id, row.label) for row in rows.select("id", "label").collect())
        print(
            json.dumps(
                {
                    "killed": killed,
                    "executors": before,
                    "coefficients": fitted.coef_.ravel().tolist(),
                    "objective": fitted.objective_,
                    "labels": [label for _, label in data],
                }
            )
        )


if __name__ == "__main__":
    main(sys.argv[1])
