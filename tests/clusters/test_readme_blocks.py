"""What the README shows beyond one machine runs as it is written, in under ten lines each."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import polysparse
from csr_zoo import random_dense

README = (Path(__file__).parents[2] / "README.md").read_text()
SECTION = re.search(r"^## Beyond one machine\n(.*?)(?=^## )", README, re.M | re.S)[1]
BLOCKS = re.findall(r"^```python\n(.*?)^```", SECTION, re.M | re.S)

X = (random_dense(120, 8, 0.4) != 0).astype(float)
Y = (X[:, 0] * X[:, 1] != X[:, 2]).astype(float)


def run(which, **given):
    (code,) = (block for block in BLOCKS if f"polysparse.{which}" in block)
    assert len(code.splitlines()) < 10
    names = dict(given)
    exec(code, names)
    return names


@pytest.fixture(scope="module")
def whole():
    """The model of the whole matrix."""
    return polysparse.PolynomialLogisticRegression().fit(X, Y)


def test_on_dask(tmp_path, monkeypatch, whole):
    monkeypatch.chdir(tmp_path)
    dump_svmlight_file(X, Y, "clicks.svmlight", zero_based=False)
    names = run("dask")
    assert (names["XP"].compute() != polysparse.expand(names["X"].compute())).nnz == 0
    np.testing.assert_allclose(names["model"].coef_, whole.coef_, atol=1e-6)


def test_on_spark(spark, whole):
    from pyspark.ml.linalg import Vectors

    rows = [(Vectors.dense(x), float(y)) for x, y in zip(X, Y, strict=True)]
    names = run("spark", frame=spark.createDataFrame(rows, ["features", "label"]))
    made = [row.products.toArray() for row in names["products"].collect()]
    np.testing.assert_array_equal(made, polysparse.expand(X))
    np.testing.assert_allclose(names["model"].model.coef_, whole.coef_, atol=1e-6)
