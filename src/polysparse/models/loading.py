"""Read fitted models from files."""

from __future__ import annotations

import os
from typing import Any

from polysparse.files import online_file
from polysparse.files.archive import damage_to, format_name_in
from polysparse.files.model_file import ModelFile
from polysparse.files.online_file import OnlineFile
from polysparse.models.elastic_net import PolynomialElasticNet, PolynomialLasso
from polysparse.models.generalized import (
    PolynomialGammaRegressor,
    PolynomialPoissonRegressor,
    PolynomialTweedieRegressor,
)
from polysparse.models.logistic import PolynomialLogisticRegression
from polysparse.models.online.classifier import PolynomialFTRLClassifier
from polysparse.models.online.regressor import PolynomialFTRLRegressor
from polysparse.models.online.saving import as_online_model
from polysparse.models.ridge import PolynomialRidge
from polysparse.models.saving import as_model
from polysparse.models.support_vectors import PolynomialLinearSVC, PolynomialLinearSVR

# By the names that files and the command line have for them.
MODELS: dict[str, Any] = {
    model._kind: model
    for model in (
        PolynomialLogisticRegression,
        PolynomialRidge,
        PolynomialLasso,
        PolynomialElasticNet,
        PolynomialPoissonRegressor,
        PolynomialGammaRegressor,
        PolynomialTweedieRegressor,
        PolynomialLinearSVC,
        PolynomialLinearSVR,
    )
}

# Those that learn as rows come, whose files have the whole state.
ONLINE_MODELS: dict[str, Any] = {
    model._kind: model for model in (PolynomialFTRLClassifier, PolynomialFTRLRegressor)
}


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a fitted model that its method `save`, or ``polysparse fit``, has written.

    Files are never unpickled, so reading a file cannot run its code.

    Parameters
    ----------
    path : path-like
        File to read. ValueError is raised if it is damaged, or not a model.

    Returns
    -------
    object
        The fitted model, of the class that was saved. `n_jobs` is not saved, and has its default.

    Examples
    --------
    >>> from polysparse import PolynomialRidge, load_model
    >>> model = PolynomialRidge().fit([[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0])
    >>> model.save("model.npz")  # doctest: +SKIP
    >>> model = load_model("model.npz")  # doctest: +SKIP
    """
    return read_model(path)[1]


def read_model(
    path: str | os.PathLike[str], max_memory: int | None = None
) -> tuple[ModelFile | OnlineFile, Any]:
    """Read a file; return what it holds, and the model."""
    if format_name_in(path) != online_file.FORMAT.name:
        file = ModelFile.read(path, max_memory)
        return file, model_in(file, path)
    online = OnlineFile.read(path, max_memory)
    with damage_to(path):
        return online, as_online_model(online, ONLINE_MODELS[online.kind])


def model_in(file: ModelFile, path: str | os.PathLike[str]) -> Any:
    """Return the fitted model of a file that was read from a path."""
    with damage_to(path):
        if file.kind not in MODELS:
            raise ValueError(f"its kind must be {', '.join(MODELS)}; it is {file.kind!r}")
        return as_model(file, MODELS[file.kind])
