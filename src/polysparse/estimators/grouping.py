"""groups_from: the variable that each output of a fitted transformer comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, SplineTransformer
from sklearn.utils.validation import check_is_fitted

Sources = list[int]  # for each output of a transformer, the input feature that it comes from


def groups_from(transformer: Any) -> list[str]:
    """Return the variable that each output feature of a fitted transformer comes from.

    The result is meant as `groups` of transformers and models: outputs of the same variable, such
    as its levels or its splines, are then never multiplied with each other.

    Parameters
    ----------
    transformer : estimator
        A fitted OneHotEncoder, KBinsDiscretizer, SplineTransformer, ColumnTransformer, Pipeline,
        FeatureUnion or feature selector of scikit-learn, nested in any way; a transformer with one
        output for each feature; or any other transformer whose `get_feature_names_out` begins or
        ends with the names of its input features, as in "age_2" or "missingindicator_age".

    Returns
    -------
    list of str
        The name of an input feature for each output feature; "x0", "x1", ... if the transformer was
        fitted to data without names.

    See Also
    --------
    InteractionTransformer : Encodes variables, groups them and multiplies them in one step.

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
            "the sources of its features are not known: give groups as a label for each feature."
        )
    return [f"x{j}" for j in range(n_features)]


def _sources(transformer: Any, n_features: int) -> Sources:
    """Return the input feature that each output comes from, for n input features."""
    if transformer is None or isinstance(transformer, str):
        return [] if transformer == "drop" else list(range(n_features))
    for kind, find in _FINDERS:
        if isinstance(transformer, kind):
            return find(transformer, n_features)
    if not hasattr(transformer, "get_feature_names_out"):
        raise TypeError(
            f"{type(transformer).__name__} does not name its output features, so their sources are "
            "not known: give groups as a label for each feature."
        )
    if n_features == 1:
        return [0] * len(transformer.get_feature_names_out())
    return _by_names(transformer, n_features)


def _of_one_hot(encoder: OneHotEncoder, n_features: int) -> Sources:
    """Return sources where each feature has an output for each category that is not left out."""
    sizes = np.array([len(categories) for categories in encoder.categories_])
    if encoder.drop_idx_ is not None:
        sizes -= [index is not None for index in encoder.drop_idx_]
    infrequent = getattr(encoder, "infrequent_categories_", None) or [None] * n_features
    sizes -= [0 if rare is None else len(rare) - 1 for rare in infrequent]
    return _repeated(sizes)


def _of_bins(binner: KBinsDiscretizer, n_features: int) -> Sources:
    """Return sources where each feature has an output for each bin."""
    return _repeated([1] * n_features if binner.encode == "ordinal" else binner.n_bins_)


def _of_splines(splines: SplineTransformer, n_features: int) -> Sources:
    """Return sources where every feature has as many outputs."""
    return _repeated([splines.n_features_out_ // n_features] * n_features)


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
    n_outputs = max((outputs.stop for outputs in columns.output_indices_.values()), default=0)
    found = np.full(n_outputs, -1)
    for name, transformer, chosen in columns.transformers_:
        outputs = columns.output_indices_.get(name, slice(0, 0))
        if outputs.stop > outputs.start:
            features = _as_numbers(chosen, names)
            found[outputs] = [features[j] for j in _sources(transformer, len(features))]
    return [int(j) for j in found]


def _as_numbers(chosen: Any, names: Sequence[str]) -> list[int]:
    """Return the features that a ColumnTransformer was told to use, as numbers."""
    every = np.arange(len(names))
    if isinstance(chosen, str):
        return [names.index(chosen)]
    if isinstance(chosen, slice) and isinstance(chosen.start or chosen.stop, str):
        first = 0 if chosen.start is None else names.index(chosen.start)
        last = len(names) - 1 if chosen.stop is None else names.index(chosen.stop)
        return list(range(first, last + 1))
    if isinstance(chosen, list | tuple | np.ndarray) and any(isinstance(c, str) for c in chosen):
        return [names.index(str(c)) for c in chosen]
    return [int(j) for j in np.atleast_1d(every[chosen])]


def _by_names(transformer: Any, n_features: int) -> Sources:
    """Return the sources that the names of outputs tell: the longest input name that fits."""
    names = _input_names(transformer)
    by_length = sorted(range(n_features), key=lambda j: -len(names[j]))
    sources = []
    for output in map(str, transformer.get_feature_names_out()):
        for j in by_length:
            name = names[j]
            if output == name or output.startswith(f"{name}_") or output.endswith(f"_{name}"):
                sources.append(j)
                break
        else:
            raise ValueError(
                f"{type(transformer).__name__} has the output {output!r}, which is not named after "
                "one of its features: give groups as a label for each feature."
            )
    return sources


_FINDERS: tuple[tuple[type, Callable[[Any, int], Sources]], ...] = (
    (OneHotEncoder, _of_one_hot),
    (KBinsDiscretizer, _of_bins),
    (SplineTransformer, _of_splines),
    (Pipeline, _of_pipeline),
    (FeatureUnion, _of_union),
    (ColumnTransformer, _of_columns),
    (SelectorMixin, lambda selector, _: [int(j) for j in selector.get_support(indices=True)]),
    (OneToOneFeatureMixin, lambda _, n_features: list(range(n_features))),
)
