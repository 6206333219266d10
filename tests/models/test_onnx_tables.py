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


def test_names_of_inputs(tmp_path):
    rng = np.random.default_rng(0)
    names = ["label_input", "label", "", "_input", "polysparse/constant_0", "scores"]
    table = pd.DataFrame({name: rng.choice(["a", "b"], N) for name in names})
    model = PolynomialRidge().fit(table, Y)
    model.to_onnx(tmp_path / "model.onnx", dtype=np.float64)
    session = onnxruntime.InferenceSession(
        tmp_path / "model.onnx", providers=["CPUExecutionProvider"]
    )
    inputs = [each.name for each in session.get_inputs()]
    assert [inputs[j] for j in (0, 1, 3)] == ["label_input", "label_input_input", "_input"]
    columns = table.to_numpy(dtype=object).T[:, :, None]
    (found,) = session.run(None, dict(zip(inputs, columns, strict=True)))
    np.testing.assert_allclose(found[:, 0], model.predict(table))


def test_numbers_as_texts(tmp_path):
    table = pd.DataFrame({"code": np.arange(N) % 3, "flag": np.arange(N) % 2 == 0})
    model = PolynomialRidge(categorical_features=[0, 1]).fit(table, Y)
    model.to_onnx(tmp_path / "model.onnx", dtype=np.float64)
    texts = pd.DataFrame({"city": table["code"] + 0.0, "label": table["flag"].astype(int)})
    session = onnxruntime.InferenceSession(
        tmp_path / "model.onnx", providers=["CPUExecutionProvider"]
    )
    columns = texts.astype(str).to_numpy(dtype=object).T[:, :, None]
    (found,) = session.run(None, {"code": columns[0], "flag": columns[1]})
    np.testing.assert_allclose(found[:, 0], model.predict(table))
