"""Models as ONNX graphs, run by onnxruntime."""

import re
import sys

import numpy as np
import pytest

from checks import names_in
from inside import set_largest_graph
from polysparse import PolynomialLogisticRegression, PolynomialRidge
from polysparse.extras import how_to_install
from small_models import NAMED, TARGETS, X, fitted

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

DENSE = X.toarray()
CLOSE = {np.float32: 1e-5, np.float64: 1e-13}


def run(path, data, dtype=np.float32):
    """Outputs of the graph in a file, by name."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": data.astype(dtype)}), strict=True))


def assert_same(model, path, data, dtype):
    """The graph predicts what the model predicts."""
    model.to_onnx(path, dtype=dtype)
    found = run(path, data, dtype)
    if isinstance(model, PolynomialRidge):
        assert list(found) == ["variable"]
        wanted = model.predict(data).reshape(len(data), -1)
        np.testing.assert_allclose(found["variable"], wanted, atol=CLOSE[dtype] * 10)
        assert found["variable"].dtype == dtype
        return
    assert list(found) == ["label", "probabilities"]
    wanted = model.predict_proba(data)
    np.testing.assert_allclose(found["probabilities"], wanted, atol=CLOSE[dtype])
    assert found["probabilities"].dtype == dtype
    is_clear = np.ptp(np.sort(wanted)[:, -2:], axis=1) > CLOSE[dtype]
    assert found["label"][is_clear].tolist() == model.predict(data)[is_clear].tolist()


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", NAMED)
def test_the_graph_predicts_what_the_model_predicts(columns, target, dtype, tmp_path):
    assert_same(fitted(target, columns), tmp_path / "model.onnx", DENSE, dtype)
    assert names_in(tmp_path) == ["model.onnx"]


@pytest.mark.parametrize("degree", [1, 2, 3, 4, (2, 2), (3, 4)])
@pytest.mark.parametrize("interaction_only", [False, True])
def test_every_degree(degree, interaction_only, tmp_path):
    model = fitted("ridge", degree=degree, interaction_only=interaction_only)
    assert_same(model, tmp_path / "model.onnx", DENSE, np.float64)


def test_no_rows_and_negative_values(tmp_path):
    model = fitted("three")
    assert_same(model, tmp_path / "model.onnx", -3 * DENSE, np.float64)
    assert run(tmp_path / "model.onnx", DENSE[:0], np.float64)["label"].shape == (0,)


def test_terms_without_weight_are_left_out(tmp_path):
    model = fitted("three")
    model.coef_[:, 3:] = 0
    assert_same(model, tmp_path / "model.onnx", DENSE, np.float64)
    constants = onnx.load(tmp_path / "model.onnx").graph.initializer
    assert (3, 3) in [tuple(each.dims) for each in constants]


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_without_any_weight(target, tmp_path):
    model = fitted(target)
    model.coef_[:] = 0
    assert_same(model, tmp_path / "model.onnx", DENSE, np.float64)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([False, True]),
        np.array([1.0, 2.0]),
        np.array([3, 200], np.uint8),
        np.array(["no", "yes"]),
        np.array(["ä", "ö"], dtype=object),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_classes_of_any_plain_dtype(labels, tmp_path):
    model = PolynomialLogisticRegression().fit(X, labels[(TARGETS["ridge"] > 0).astype(int)])
    assert_same(model, tmp_path / "model.onnx", DENSE, np.float64)


def test_huge_scores_do_not_overflow(tmp_path):
    model = fitted("binary")
    assert_same(model, tmp_path / "model.onnx", 1e6 * DENSE, np.float64)


def test_at_degree_2_a_regression_is_six_nodes(tmp_path):
    fitted("ridge").to_onnx(tmp_path / "model.onnx")
    nodes = [node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node]
    assert nodes == ["Pad", "Gather", "Gather", "Mul", "MatMul", "Add"]


# --------------------------------------------------------------------------------------- refusals


def test_hashed_columns_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"Hashed columns .* Fit with columns='observed'"):
        fitted("ridge", "buckets").to_onnx(tmp_path / "model.onnx")
    assert names_in(tmp_path) == []


def test_another_dtype_is_refused(tmp_path):
    with pytest.raises(ValueError, match="dtype must be float32 or float64; got int64"):
        fitted("ridge").to_onnx(tmp_path / "model.onnx", dtype=np.int64)


def test_a_graph_that_no_file_could_hold_is_refused(tmp_path, monkeypatch):
    set_largest_graph(monkeypatch, 200)
    with pytest.raises(ValueError, match=r"20 terms would take 240 bytes; .* may have 200 bytes"):
        fitted("ridge").to_onnx(tmp_path / "model.onnx")
    assert names_in(tmp_path) == []


def test_without_onnx_the_message_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=re.escape(how_to_install("onnx"))):
        fitted("ridge").to_onnx(tmp_path / "model.onnx")
