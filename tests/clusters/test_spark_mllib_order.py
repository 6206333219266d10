"""columnOrder="spark" gives what MLlib's PolynomialExpansion gives: columns, bits and size."""

import numpy as np
import pytest
from scipy import sparse

import csr_zoo
from polysparse import expand
from spark_frames import frame_of, vectors_of

pytest.importorskip("pyspark")

from polysparse.matrix.canonical import as_canonical
from polysparse.spark import PolynomialFeatures
from polysparse.spark.mllib_order import in_mllib_order, mllib_products


def products_by_mllib(n_features, degree):
    """The exponents of all products, as MLlib recurses: over those of the last feature first."""
    if n_features == 0 or degree == 0:
        return [(0,) * n_features]
    return [
        (*others, exponent)
        for exponent in range(degree + 1)
        for others in products_by_mllib(n_features - 1, degree - exponent)
    ]


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("n_features", [1, 2, 3, 5])
def test_products_are_in_the_order_of_mllibs_recursion(n_features, degree):
    _, factors = mllib_products(n_features, degree)
    found = [tuple(np.bincount(row, minlength=n_features + 1)[:-1]) for row in factors]
    assert found == products_by_mllib(n_features, degree)[1:]  # but for the bias


@pytest.mark.parametrize(("n_features", "degree"), [(65_534, 2), (2_342, 3), (188, 5)])
def test_the_last_columns_of_the_widest_vectors_are_exact(n_features, degree):
    dense = np.zeros((1, n_features))
    dense[0, [0, n_features - 1]] = 2, 3
    X = sparse.csr_array(dense)
    block = expand(X, degree, include_bias=False)
    found = in_mllib_order(as_canonical(X), block, degree)
    assert block.shape[1] < 2**31
    assert found.indices[-1] == block.shape[1] - 1
    assert found.data[-1] == 3**degree
    assert found.indices[0] == 0
    assert np.all(np.diff(found.indices) > 0)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_vectors_are_those_of_mllib(spark, degree):
    from pyspark.ml.feature import PolynomialExpansion

    dense = csr_zoo.random_dense(20, 6, 0.5, seed=degree) / 3
    dense[3, :3] = 1e-200, 2e-200, 1e200  # some of their products underflow
    frame = frame_of(spark, vectors_of(dense, dense_rows=range(0, 20, 4)))
    columns = {"degree": degree, "inputCol": "x"}
    theirs = PolynomialExpansion(**columns, outputCol="theirs").transform(frame)
    both = PolynomialFeatures(**columns, columnOrder="spark", outputCol="ours").transform(theirs)
    for row in both.collect():
        assert row.ours.size == row.theirs.size
        assert row.ours.toArray().tobytes() == row.theirs.toArray().tobytes()
        if row.id % 4:  # a dense vector gives a dense one there
            assert row.ours.indices.tolist() == row.theirs.indices.tolist()


def test_columns_are_named_in_that_order(spark):
    frame = frame_of(spark, vectors_of([[1.0, 2.0]]))
    out = PolynomialFeatures(columnOrder="spark", inputCol="x", outputCol="out").transform(frame)
    names = [each["name"] for each in out.schema["out"].metadata["ml_attr"]["attrs"]["numeric"]]
    assert names == ["x0", "x0^2", "x1", "x0 x1", "x1^2"]
