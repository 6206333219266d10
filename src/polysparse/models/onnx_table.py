"""The encoding of a table as nodes of an ONNX graph: an input for each column, as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysparse.tables.encoding import TableEncoding
from polysparse.tables.variables import CategoricalVariable

ML_DOMAIN, ML_OPSET = "ai.onnx.ml", 2  # which has LabelEncoder for strings
OUTPUTS = "label", "probabilities", "scores", "variable"  # names that inputs may not have


def add_table(graph: Any, encoding: TableEncoding, dtype: np.dtype[Any]) -> tuple[str, Any]:
    """Add nodes that encode a table; return the name of the encoded rows, and the inputs.

    Each column is an input of shape (N, 1): strings for a categorical variable, numbers for a
    numeric one. An empty string and NaN are missing. Unknown levels are zeros.
    """
    inputs: dict[str, Any] = {}
    parts = []
    for variable in encoding.variables:
        name = f"{variable.name}_input" if variable.name in OUTPUTS else variable.name
        if isinstance(variable, CategoricalVariable):
            inputs[name] = np.dtype(object), [None, 1]
            parts.append(_add_levels(graph, name, variable, dtype))
        else:
            inputs[name] = dtype, [None, 1]
            parts += _add_number(graph, name, variable.has_indicator, dtype)
    return graph.add("Concat", *parts, axis=1), inputs


def _add_levels(graph: Any, name: str, variable: CategoricalVariable, dtype: np.dtype[Any]) -> str:
    """Add the indicators of a categorical variable."""
    features = variable.features_by_level()
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
