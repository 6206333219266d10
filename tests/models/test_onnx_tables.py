"""Models of tables as ONNX graphs, which take the columns as they are."""

import numpy as np
import pandas as pd
import pytest

from polysparse import PolynomialLogisticRegression, PolynomialRidge, TableEncoder

pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

RNG = np.random.default_rng(0)
N = 200
TABLE = pd.DataFrame(
    {
        "city": RNG.choice(["Oslo", "Rome", "São Paulo", "x=y, z\n", None], N),
        "label": pd.Categorical(RNG.integers(8, 12, N)),
        "hours": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
        "age": RNG.normal(size=N),
    }
)
Y = RNG.normal(size=N)
ENCODERS = {
    "each level": TableEncoder(missing="indicator"),
    "rare levels": TableEncoder(missing="indicator", min_frequency=45),
}


def run(path, table, dtype):
    """Outputs of the graph in a file."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = {"label": "label_input"}
    data = {}
    for name, column in table.items():
        if name in ("city", "label"):
            text = [[""] if pd.isna(value) else [str(value)] for value in column]
            data[names.get(name, name)] = np.array(text, dtype=object)
        else:
            data[name] = column.to_numpy(dtype)[:, None]
    return session.run(None, data)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_regression_takes_the_columns_of_the_table(encoder, dtype, tmp_path):
    model = PolynomialRidge(categorical_features=ENCODERS[encoder]).fit(TABLE, Y)
    model.to_onnx(tmp_path / "model.onnx", dtype=dtype)
    (found,) = run(tmp_path / "model.onnx", TABLE, dtype)
    np.testing.assert_allclose(found[:, 0], model.predict(TABLE), rtol=1e-4, atol=1e-5)


def test_a_classifier_and_unknown_levels(tmp_path):
    table = TABLE.drop(columns="hours")
    model = PolynomialLogisticRegression().fit(table, np.where(Y > 0, "yes", "no"))
    model.to_onnx(tmp_path / "model.onnx", dtype=np.float64)
    fresh = table.assign(city=["Bern", "", *table["city"][2:]])
    labels, probabilities = run(tmp_path / "model.onnx", fresh, np.float64)
    wanted = fresh.assign(city=["Bern", None, *table["city"][2:]])
    np.testing.assert_allclose(probabilities, model.predict_proba(wanted), atol=1e-12)
    assert list(labels) == list(model.predict(wanted))
