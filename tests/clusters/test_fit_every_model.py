"""Every model on Dask and on Spark is the one that is fitted to the whole matrix."""

import numpy as np
import pytest

import polysparse
from csr_zoo import random_csr
from model_data import classes_for, numbers_for

X = random_csr(90, 6, 0.5)
SCORES = numbers_for(X) / 4
WEIGHTS = 1 + np.arange(90) % 3.0
OFFSET = np.sin(np.arange(90.0))
AMOUNTS = np.exp(SCORES + OFFSET)
MODELS = {
    "PolynomialPoissonRegressor": ({"alpha": 0.01}, np.round(AMOUNTS)),
    "PolynomialGammaRegressor": ({"alpha": 0.01}, AMOUNTS),
    "PolynomialTweedieRegressor": ({"power": 1.5, "alpha": 0.01}, np.floor(AMOUNTS)),
    "PolynomialLinearSVC": ({"C": 0.5}, classes_for(X, 3).astype(float)),
    "PolynomialLinearSVR": ({"C": 0.5, "epsilon": 0.1}, SCORES),
}
every_model = pytest.mark.parametrize("name", MODELS)


def takes_offsets(name):
    return name.endswith("Regressor")


def here(name):
    parameters, y = MODELS[name]
    model = getattr(polysparse, name)(tol=1e-8, **parameters)
    return model.fit(X, y, WEIGHTS, *((OFFSET,) if takes_offsets(name) else ()))


def assert_same(found, wanted):
    assert found.objective_ == pytest.approx(wanted.objective_, rel=1e-9)
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-4)
    np.testing.assert_allclose(found.intercept_, wanted.intercept_, atol=1e-4)


@every_model
def test_on_dask(name):
    da = pytest.importorskip("dask.array")
    parameters, y = MODELS[name]
    blocks = da.from_array(X.toarray(), chunks=(25, 6))
    model = getattr(polysparse, name)(tol=1e-8, **parameters)
    offset = (da.from_array(OFFSET, chunks=40),) if takes_offsets(name) else ()
    model.fit(blocks, da.from_array(y, chunks=30), WEIGHTS, *offset)
    assert_same(model, here(name))
    found = model.predict(blocks, *offset)
    assert isinstance(found, da.Array)
    expected = model.predict(X, *((OFFSET,) if offset else ()))
    assert found.compute().tobytes() == expected.tobytes()


def test_offsets_on_dask():
    da = pytest.importorskip("dask.array")
    model, blocks = here("PolynomialPoissonRegressor"), da.from_array(X.toarray(), chunks=(25, 6))
    np.testing.assert_allclose(model.predict(blocks, 2.0).compute(), model.predict(X, 2.0))
    is_any = da.from_array(np.ones(90, bool), chunks=25)
    unknown = model.predict(blocks[is_any], da.from_array(OFFSET, chunks=25)[is_any])
    assert unknown.compute().tobytes() == model.predict(X, OFFSET).tobytes()
    with pytest.raises(ValueError, match="offset has 3 rows, and X has 90"):
        model.fit(blocks, MODELS["PolynomialPoissonRegressor"][1], offset=OFFSET[:3])
    with pytest.raises(ValueError, match="y has the value -1; a model with power=1"):
        model.fit(blocks, -np.ones(90))


def rows_of(spark, y):
    from spark_frames import frame_of, vectors_of

    names = ["id", "label", "weight", "exposure"]
    numbers = [(i, float(y[i]), float(WEIGHTS[i]), float(OFFSET[i])) for i in range(90)]
    labels = spark.createDataFrame(numbers, names)
    rows = frame_of(spark, vectors_of(X)).join(labels, "id").withColumnRenamed("x", "features")
    return rows.repartition(3).cache()


@every_model
def test_on_spark(name, spark, tmp_path):
    on_spark = pytest.importorskip("polysparse.spark")
    parameters, y = MODELS[name]
    params = {"offsetCol": "exposure"} if takes_offsets(name) else {}
    stage = getattr(on_spark, name)(tol=1e-8, weightCol="weight", **params, **parameters)
    rows = rows_of(spark, y)
    fitted = stage.fit(rows)
    assert_same(fitted.model, here(name))
    fitted.write().save(str(tmp_path / "model"))
    for model in (fitted, type(fitted).load(str(tmp_path / "model"))):
        out = model.transform(rows).orderBy("id").collect()
        expected = fitted.model.predict(X, *((OFFSET,) if params else ()))
        np.testing.assert_allclose([row.prediction for row in out], expected, rtol=1e-12)


def test_what_spark_refuses(spark):
    on_spark = pytest.importorskip("polysparse.spark")
    from pyspark.errors import IllegalArgumentException

    rows = rows_of(spark, -AMOUNTS)
    with pytest.raises(IllegalArgumentException, match="a model with power=1 needs numbers"):
        on_spark.PolynomialPoissonRegressor().fit(rows)
    with pytest.raises(IllegalArgumentException, match="Column 'years' does not exist"):
        on_spark.PolynomialPoissonRegressor(offsetCol="years").fit(rows)
