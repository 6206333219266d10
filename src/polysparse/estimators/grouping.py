"""groups_from: the variable that each output of a fitted transformer comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    SplineTransformer,
    TargetEncoder,
)
from sklearn.utils.validation import check_is_fitted

from polysparse.estimators.table_encoder import TableEncoder

_WAY_OUT = "pass groups as a label for each feature."

Sources = list[int]  # for each output of a transformer, the input feature that it comes from


def groups_from(transformer: Any) -> list[str]:
    """Return the variable that each output feature of a fitted transformer comes from.

    Pass the result as `groups` to transformers and models: outputs of the same variable, such as
    its levels or its splines, then do not interact.

    Parameters
    ----------
    transformer : estimator
        A fitted TableEncoder, or OneHotEncoder, KBinsDiscretizer, SplineTransformer, TargetEncoder,
        ColumnTransformer, Pipeline, FeatureUnion or feature selector of scikit-learn, nested in any
        way; a transformer with one output for each feature; or any other transformer whose
        `get_feature_names_out` begins or ends with the names of its input features, as in "age_2"
        or "missingindicator_age". ValueError is raised if a name matches several features, or if
        outputs are interactions of several features.

    Returns
    -------
    list of str
        The name of an input feature for each output feature; "x0", "x1", ... if the transformer was
        fitted to data without names.

    See Also
    --------
    InteractionTransformer : Encode variables and generate their interactions.

    Examples
    --------
    >>> from polysparse import groups_from
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> encoder = OneHotEncoder().fit([["red", "S"], ["blue", "M"], ["blue", "L"]])
    >>> groups_from(encoder)
    ['x0', 'x0', 'x1', 'x1', 'x1']
    """
    check_is_fitted(transformer)
    names = _input_names(transformer)
    return [names[j] for j in _sources(transformer, len(names))]


def _input_names(transformer: Any) -> list[str]:
    """Return the names of the features that a transformer was fitted to."""
    names = getattr(transformer, "feature_names_in_", None)
    if names is not None:
        return [str(name) for name in names]
    n_features = getattr(transformer, "n_features_in_", None)
    if n_features is None:
        raise TypeError(
            f"{type(transformer).__name__} has neither feature_names_in_ nor n_features_in_, so "
            f"the sources of its features are not known: {_WAY_OUT}"
        )
    return [f"x{j}" for j in range(n_features)]


def _sources(transformer: Any, n_features: int, n_outputs: int | None = None) -> Sources:
    """Return the input feature that each output comes from, for n input features.

    The number of outputs is checked, if it is given or the transformer names its outputs.
    """
    if transformer is None or isinstance(transformer, str):
        return [] if transformer == "drop" else list(range(n_features))
    if n_outputs is None:
        n_outputs = _count_outputs(transformer)
    find = next((find for kind, find in _FINDERS if isinstance(transformer, kind)), None)
    if find is not None:
        sources = find(transformer, n_features)
        if n_outputs is None or len(sources) == n_outputs:
            return sources
    if n_features == 1 and n_outputs is not None:
        return [0] * n_outputs
    sources = _by_names(transformer)
    if len(sources) != n_outputs:
        raise ValueError(
            f"{type(transformer).__name__} has {n_outputs} outputs but names {len(sources)}, so "
            f"the sources of its outputs are not known: {_WAY_OUT}"
        )
    return sources


def _count_outputs(transformer: Any) -> int | None:
    """Return the number of output features, or None if it is not known."""
    if isinstance(transformer, ColumnTransformer):
        return max((outputs.stop for outputs in _slices(transformer).values()), default=0)
    try:
        return len(transformer.get_feature_names_out())
    except (AttributeError, ValueError):  # no names, or not all of its parts have names
        return None


def _of_one_hot(encoder: OneHotEncoder, n_features: int) -> Sources:
    """Return sources where each feature has an output for each category that is not left out."""
    sizes = np.array([len(categories) for categories in encoder.categories_])
    if encoder.drop_idx_ is not None:
        sizes -= [index is not None for index in encoder.drop_idx_]
    infrequent = getattr(encoder, "infrequent_categories_", None) or [None] * n_features
    sizes -= [0 if rare is None else len(rare) - 1 for rare in infrequent]
    return _repeated(sizes)


def _of_table(encoder: TableEncoder, n_features: int) -> Sources:
    """Return sources where each column has a feature for each level, or is numeric."""
    return _repeated([variable.n_features for variable in encoder._encoding.variables])


def _of_bins(binner: KBinsDiscretizer, n_features: int) -> Sources:
    """Return sources where each feature has an output for each bin."""
    return _repeated([1] * n_features if binner.encode == "ordinal" else binner.n_bins_)


def _evenly(transformer: Any, n_features: int) -> Sources:
    """Return sources where each feature has the same number of outputs."""
    n_outputs = len(transformer.get_feature_names_out())
    return _repeated([n_outputs // n_features] * n_features)


def _repeated(sizes: Any) -> Sources:
    return [int(j) for j in np.repeat(np.arange(len(sizes)), sizes)]


def _of_pipeline(pipeline: Pipeline, n_features: int) -> Sources:
    """Return the sources of the last step, traced back through the steps before."""
    sources = list(range(n_features))
    for _, step in pipeline.steps:
        sources = [sources[j] for j in _sources(step, len(sources))]
    return sources


def _of_union(union: FeatureUnion, n_features: int) -> Sources:
    """Return the sources of all transformers, one after the other."""
    return [j for _, each in union.transformer_list for j in _sources(each, n_features)]


def _of_columns(columns: ColumnTransformer, n_features: int) -> Sources:
    """Return the sources of all transformers, each of which has some of the features."""
    names = _input_names(columns)
    slices = _slices(columns)
    found = np.full(_count_outputs(columns) or 0, -1)
    for name, transformer, chosen in columns.transformers_:
        outputs = slices.get(name, slice(0, 0))
        n_outputs = outputs.stop - outputs.start
        if n_outputs > 0:
            features = _as_numbers(chosen, names)
            sources = _sources(transformer, len(features), n_outputs)
            found[outputs] = [features[j] for j in sources]
    return [int(j) for j in found]


def _slices(columns: ColumnTransformer) -> dict[str, slice]:
    """Return the outputs of each transformer; a ColumnTransformer without outputs has none."""
    slices: dict[str, slice] = getattr(columns, "output_indices_", {})
    return slices


def _as_numbers(chosen: Any, names: Sequence[str]) -> list[int]:
    """Return the features selected for a transformer, as numbers."""
    every = np.arange(len(names))
    if isinstance(chosen, slice):
        if isinstance(chosen.start or chosen.stop, str):
            first = 0 if chosen.start is None else names.index(chosen.start)
            last = len(names) - 1 if chosen.stop is None else names.index(chosen.stop)
            chosen = slice(first, last + 1)
        return [int(j) for j in every[chosen]]
    listed = [chosen] if np.isscalar(chosen) else list(chosen)
    if any(isinstance(each, str) for each in listed):
        return [names.index(str(each)) for each in listed]
    return [int(j) for j in every[np.array(listed)]]


def _by_names(transformer: Any) -> Sources:
    """Infer sources from output names: equal to input names, or each fitting a single one."""
    kind = type(transformer).__name__
    if not hasattr(transformer, "get_feature_names_out"):
        raise TypeError(
            f"{kind} does not name its output features, so their sources are not known: {_WAY_OUT}"
        )
    if hasattr(transformer, "interaction_only"):  # PolynomialFeatures, InteractionTransformer, ...
        raise ValueError(f"{kind} has outputs that come from several features: {_WAY_OUT}")
    names = _input_names(transformer)
    numbers = {name: j for j, name in enumerate(names)}
    outputs = [str(output) for output in transformer.get_feature_names_out()]
    plain = [output.removeprefix("missingindicator_") for output in outputs]
    if all(name in numbers for name in plain):
        return [numbers[name] for name in plain]
    return [numbers[_named_after(output, names, kind)] for output in outputs]


def _named_after(output: str, names: Sequence[str], kind: str) -> str:
    """Return the only input name that an output begins or ends with."""
    fitting = [
        name
        for name in names
        if output == name or output.startswith(f"{name}_") or output.endswith(f"_{name}")
    ]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ValueError(
            f"{kind} has the output {output!r}, which may come from {fitting[0]!r} or "
            f"{fitting[1]!r}: rename these features, or {_WAY_OUT}"
        )
    raise ValueError(
        f"{kind} has the output {output!r}, which is not named after one of its features: "
        f"{_WAY_OUT}"
    )


_FINDERS: tuple[tuple[type, Callable[[Any, int], Sources]], ...] = (
    (OneHotEncoder, _of_one_hot),
    (TableEncoder, _of_table),
    (KBinsDiscretizer, _of_bins),
    (SplineTransformer, _evenly),
    (TargetEncoder, _evenly),
    (Pipeline, _of_pipeline),
    (FeatureUnion, _of_union),
    (ColumnTransformer, _of_columns),
    (SelectorMixin, lambda selector, _: [int(j) for j in selector.get_support(indices=True)]),
    (OneToOneFeatureMixin, lambda _, n_features: list(range(n_features))),
)
