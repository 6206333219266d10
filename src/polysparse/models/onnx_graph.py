"""A fitted model as an ONNX graph: gather features, multiply them, sum with weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ChosenColumns
from polysparse.extras import how_to_install
from polysparse.files.atomic import replacing
from polysparse.machine import format_bytes
from polysparse.matrix.output import index_dtype_for
from polysparse.models.onnx_table import ML_DOMAIN, ML_OPSET, NODES, add_table
from polysparse.models.terms import Terms
from polysparse.tables.encoding import TableEncoding

MAX_BYTES = 2**31 - 1  # of a protocol buffer
Link = Literal["identity", "log", "logit", "sign"]  # how scores become predictions
OPSET, IR_VERSION = 13, 8  # old enough for runtimes since 2021


def write_onnx(
    terms: Terms,
    classes: NDArray[Any] | None,
    link: Link,
    table: TableEncoding | None,
    path: Path,
    dtype: np.dtype[Any],
) -> None:
    """Write the graph of a model to a file, atomically.

    `classes` is None for a regression, and `table` is None if the model was not fitted to a table.
    """
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64; got {dtype}.")
    if terms.columns.kind == "hashed":
        raise ValueError(
            "Hashed columns cannot be exported to ONNX: a graph must list its terms, and any term "
            "may be hashed to a column. Fit with columns='observed'."
        )
    onnx = _require_onnx()
    used = np.flatnonzero(np.any(terms.weights != 0, axis=0))
    _require_size(terms, len(used), dtype)
    model = _model(onnx, terms, used, classes, link, table, dtype)
    with replacing(path) as file:
        file.write(model.SerializeToString())


def _require_onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        if error.name != "onnx":
            raise
        raise ImportError(
            f"ONNX graphs are written by onnx, which is not installed: {how_to_install('onnx')}"
        ) from error
    return onnx


def _require_size(terms: Terms, n_terms: int, dtype: np.dtype[Any]) -> None:
    """Raise ValueError if a protocol buffer cannot hold the weights and factors of all terms."""
    n_bytes = n_terms * (len(terms.weights) * dtype.itemsize + terms.columns.basis.highest * 4)
    if n_bytes > MAX_BYTES:
        raise ValueError(
            f"The graph of {n_terms:,} terms would take {format_bytes(n_bytes)}; a protocol buffer "
            f"may have {format_bytes(MAX_BYTES)}. Fit with fewer columns: those of "
            "ObservedPolynomialFeatures with max_columns or min_count."
        )


def _model(
    onnx: Any,
    terms: Terms,
    used: NDArray[np.int64],
    classes: NDArray[Any] | None,
    link: Link,
    table: TableEncoding | None,
    dtype: np.dtype[Any],
) -> Any:
    """Return the graph of the terms in the columns that are used."""
    graph, basis = _Graph(onnx), terms.columns.basis
    rows, inputs = "X", {"X": (dtype, [None, basis.n_features])}
    if table is not None:
        rows, inputs = add_table(graph, table, dtype)
    ranks = terms.columns.ranks[used] if isinstance(terms.columns, ChosenColumns) else used
    # A feature after the last is 1, for terms of a lower degree.
    padded = graph.add("Pad", rows, np.array([0, 0, 0, 1]), np.ones((), dtype))
    product = ""
    for position, features in enumerate(basis.unrank(ranks).T):
        indices = np.where(features < 0, basis.n_features, features)
        indices = indices.astype(index_dtype_for(basis.n_features))
        gathered = graph.add("Gather", padded, indices, axis=1)
        product = graph.add("Mul", product, gathered) if position else gathered
    scores = graph.add("MatMul", product, terms.weights[:, used].T.astype(dtype, order="C"))
    intercept = terms.intercept.astype(dtype)
    if classes is None:
        name = "variable" if link == "identity" else ""
        scores = graph.add("Add", scores, intercept, output=name)
        if link == "log":
            graph.add("Exp", scores, output="variable")
        return graph.finish(inputs, {"variable": (dtype, [None, len(intercept)])})
    has_probabilities = link == "logit"
    scores = graph.add("Add", scores, intercept, output="" if has_probabilities else "scores")
    n_outputs = len(classes) if has_probabilities else len(intercept)
    if has_probabilities:
        _add_probabilities(graph, scores, n_outputs)
    _add_labels(graph, scores, classes, dtype)
    name = "probabilities" if has_probabilities else "scores"
    outputs = {"label": (classes.dtype, [None]), name: (dtype, [None, n_outputs])}
    return graph.finish(inputs, outputs)


def _add_probabilities(graph: _Graph, scores: str, n_classes: int) -> None:
    """Add the probabilities of classes."""
    if n_classes == 2:
        second = graph.add("Sigmoid", scores)
        first = graph.add("Sigmoid", graph.add("Neg", scores))
        graph.add("Concat", first, second, output="probabilities", axis=1)
    else:
        graph.add("Softmax", scores, output="probabilities", axis=1)


def _add_labels(graph: _Graph, scores: str, classes: NDArray[Any], dtype: np.dtype[Any]) -> None:
    """Add the labels of classes, by the highest score."""
    if len(classes) == 2:
        is_second = graph.add("Greater", scores, np.zeros((), dtype))
        number = graph.add(
            "Squeeze", graph.add("Cast", is_second, to=graph.onnx.TensorProto.INT64), np.array([1])
        )
    else:
        number = graph.add("ArgMax", scores, axis=1, keepdims=0)
    texts = classes.dtype.kind in "OU"
    labels = classes.astype(object) if texts else classes
    graph.add("Gather", labels, number, output="label", axis=0)


class _Graph:
    """Collects nodes and constants. Inputs of a node are names, or arrays that become constants."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, kind: str, *inputs: Any, output: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        names = [each if isinstance(each, str) else self._constant(each) for each in inputs]
        output = output or f"{NODES}{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, names, [output], **attributes))
        return output

    def _constant(self, array: NDArray[Any]) -> str:
        name = f"{NODES}constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def finish(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> Any:
        """Return the checked model, with names, dtypes and shapes of its inputs and outputs."""
        helper = self.onnx.helper
        graph = helper.make_graph(
            self.nodes,
            "polysparse",
            [self._value(name, *each) for name, each in inputs.items()],
            [self._value(name, *each) for name, each in outputs.items()],
            self.constants,
        )
        versions = {"": OPSET, ML_DOMAIN: ML_OPSET}
        used = {node.domain for node in self.nodes}
        opsets = [helper.make_opsetid(each, versions[each]) for each in sorted(used)]
        model = helper.make_model(
            graph, producer_name="polysparse", opset_imports=opsets, ir_version=IR_VERSION
        )
        self.onnx.checker.check_model(model)
        return model

    def _value(self, name: str, dtype: np.dtype[Any], shape: list[int | None]) -> Any:
        is_text = dtype.kind in "OU"
        kind = self.onnx.TensorProto.STRING
        if not is_text:
            kind = self.onnx.helper.np_dtype_to_tensor_dtype(dtype)
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)
