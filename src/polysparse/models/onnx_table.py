"""The encoding of a table as nodes of an ONNX graph: an input for each column, as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polysparse.tables.columns import whole_number
from polysparse.tables.encoding import TableEncoding
from polysparse.tables.variables import CategoricalVariable

ML_DOMAIN, ML_OPSET = "ai.onnx.ml", 2  # which has LabelEncoder for strings
NODES = "polysparse/"  # what names of nodes and constants begin with
OUTPUTS = "label", "probabilities", "scores", "variable"  # names that inputs may not have


def add_table(graph: Any, encoding: TableEncoding, dtype: np.dtype[Any]) -> tuple[str, Any]:
    """Add nodes that encode a table; return the name of the encoded rows, and the inputs.

    Each column is an input of shape (N, 1): strings for a categorical variable, numbers for a
    numeric one. An empty string and NaN are missing. Unknown levels are zeros.
    """
    inputs: dict[str, Any] = {}
    parts = []
    names = input_names([variable.name for variable in encoding.variables])
    for name, variable in zip(names, encoding.variables, strict=True):
        if isinstance(variable, CategoricalVariable):
            inputs[name] = np.dtype(object), [None, 1]
            parts.append(_add_levels(graph, name, variable, dtype))
        else:
            inputs[name] = dtype, [None, 1]
            parts += _add_number(graph, name, variable.has_indicator, dtype)
    return graph.add("Concat", *parts, axis=1), inputs


def input_names(columns: Sequence[str]) -> list[str]:
    """Return a name of the input for each column: its own, if an input can have it.

    It cannot if an output or a node of the graph has that name, or if it is empty.
    """
    names, taken = [], {*columns, *OUTPUTS, ""}
    for name in columns:
        if name in ("", *OUTPUTS) or name.startswith(NODES):
            while name in taken or name.startswith(NODES):
                name = f"{name.removeprefix(NODES)}_input"
            taken.add(name)
        names.append(name)
    return names


def _add_levels(graph: Any, name: str, variable: CategoricalVariable, dtype: np.dtype[Any]) -> str:
    """Add the indicators of a categorical variable."""
    features = variable.features_by_level()
    for level in list(features):
        if whole_number(f"{level}.0") == level:
            features.setdefault(f"{level}.0", features[level])
    if variable.missing is not None:
        features.setdefault("", variable.missing_feature)
    numbers = graph.add(
        "LabelEncoder",
        name,
        domain=ML_DOMAIN,
        keys_strings=list(features) or [""],
        values_int64s=list(features.values()) or [-1],
        default_int64=-1,
    )
    is_level = graph.add("Equal", numbers, np.arange(variable.n_features))
    kind = graph.onnx.helper.np_dtype_to_tensor_dtype(dtype)
    indicators: str = graph.add("Cast", is_level, to=kind)
    return indicators


def _add_number(graph: Any, name: str, has_indicator: bool, dtype: np.dtype[Any]) -> list[str]:
    """Add a number, and where it is missing if that has a feature."""
    if not has_indicator:
        return [name]
    missing = graph.add("IsNaN", name)
    zeros, ones = np.zeros((), dtype), np.ones((), dtype)
    return [graph.add("Where", missing, zeros, name), graph.add("Where", missing, ones, zeros)]
