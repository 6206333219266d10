"""TableEncoder: a table of categories and numbers as a sparse matrix, with its groups and names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from polysparse.dispatch import require_in_memory
from polysparse.files.archive import ArchiveFormat, damage_to
from polysparse.files.atomic import replacing
from polysparse.matrix.canonical import as_canonical_csr
from polysparse.tables.encoding import TableEncoding
from polysparse.tables.learning import Column, EncodingOptions, TableCounts
from polysparse.tables.reading import Table, open_table
from polysparse.tables.variables import CategoricalVariable

FORMAT = ArchiveFormat(
    "table-encoder",
    version=1,
    arrays=(),
    way_out="encode fewer levels, with min_frequency or max_categories",
)


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode a table of categories and numbers as a sparse matrix.

    Categorical columns are one-hot encoded, numeric columns stay as they are. The columns are those
    of OneHotEncoder, for tables of pandas, polars and pyarrow. It is several times faster than
    OneHotEncoder: it uses the codes of categories and Arrow dictionaries, and encodes strings with
    pyarrow if that is installed. Pass `groups_`, the variable of each feature, as `groups`, so that
    two levels of the same variable do not interact.

    Levels are compared as text: 1, 1.0, "1" and "1.0" are the same level, "1". Models encode tables
    in this way by default; to change the settings, pass a TableEncoder as `categorical_features`.

    Parameters
    ----------
    categorical_features : "from_dtype", array-like of bool, int or str, or None, \
default="from_dtype"
        Which columns are categorical. "from_dtype": columns of categories, strings and booleans.
        A mask, column numbers or column names: these, and all others are numeric. None: none.
    handle_unknown : {"ignore", "error"}, default="ignore"
        What `transform` does with levels that did not occur in `fit`: store nothing, or raise
        ValueError.
    min_frequency : int or float, optional
        Levels in fewer rows, or in less than this share of rows, become one: "(other)".
    max_categories : int, optional
        Maximum number of features per variable. The rarest levels become one: "(other)".
    missing : {"error", "indicator"}, default="error"
        What to do with missing numbers: raise ValueError, or count them as 0 and add a feature that
        marks them. Missing categories are a separate level: "(missing)".

    Attributes
    ----------
    categories_ : list of (ndarray of str objects, or None)
        The levels of each column that have a feature of their own; None for numeric columns.
    groups_ : list of str
        The variable that each feature comes from, for `groups` of transformers and models.
    n_features_in_ : int
        Number of columns seen during `fit`.
    feature_names_in_ : ndarray of str objects
        Names of columns seen during `fit`. Defined only if X has names.

    See Also
    --------
    InteractionTransformer : Encode variables by any transformers, and generate their interactions.
    groups_from : The same groups for encoders of scikit-learn.

    Notes
    -----
    `transform` finds columns by name, in any order, and ignores other columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from polysparse import TableEncoder
    >>> table = pd.DataFrame({"color": ["red", "blue", "red"], "size": [1.5, 0.0, 2.0]})
    >>> encoder = TableEncoder()
    >>> encoder.fit_transform(table).toarray()
    array([[0. , 1. , 1.5],
           [1. , 0. , 0. ],
           [0. , 1. , 2. ]])
    >>> encoder.get_feature_names_out()
    array(['color=blue', 'color=red', 'size'], dtype=object)
    >>> encoder.groups_
    ['color', 'color', 'size']
    """

    feature_names_in_: NDArray[np.object_]
    _encoding: TableEncoding
    _counts: TableCounts | None  # for partial_fit; None if it was loaded from a file

    def __init__(
        self,
        categorical_features: Any = "from_dtype",
        *,
        handle_unknown: str = "ignore",
        min_frequency: Any = None,
        max_categories: int | None = None,
        missing: str = "error",
    ) -> None:
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.min_frequency = min_frequency
        self.max_categories = max_categories
        self.missing = missing

    # --------------------------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn which columns are categorical, and their levels.

        Parameters
        ----------
        X : {DataFrame, Arrow table, array-like} of shape (n_samples, n_columns)
            The table.
        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : object
            Fitted encoder.
        """
        self._learn(open_table(X), min_rows=1)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn from more rows. The result is that of a single `fit` on all rows so far.

        The first table determines which columns are categorical; for a column without values, the
        first table with values. New levels are inserted in order, so the numbers of features may
        change.

        Parameters
        ----------
        X : {DataFrame, Arrow table, array-like} of shape (n_samples, n_columns)
            More rows, with the same columns, in any order if they have names. It may have no rows.
        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : object
            Fitted encoder.

        Examples
        --------
        >>> import pandas as pd
        >>> from polysparse import TableEncoder
        >>> encoder = TableEncoder()
        >>> for color in ("red", "blue"):
        ...     encoder = encoder.partial_fit(pd.DataFrame({"color": [color]}))
        >>> encoder.get_feature_names_out()
        array(['color=blue', 'color=red'], dtype=object)
        """
        table = open_table(X)
        if not self.__sklearn_is_fitted__():
            self._learn(table, min_rows=0)
            return self
        if self._counts is None:
            raise ValueError(
                "This encoder was loaded from a file, which has no counts of levels, so it cannot "
                "learn more: call fit."
            )
        options = self._options()
        self._counts.add(table, self._encoding.find_columns(table), options)
        self._set_encoding(TableEncoding.of(self._counts, options), self._counts)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn from a table and encode it; each column is read only once.

        Parameters
        ----------
        X : {DataFrame, Arrow table, array-like} of shape (n_samples, n_columns)
            The table.
        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        X_encoded : csr_array of shape (n_samples, n_features)
            The features.
        """
        table = open_table(X)
        columns = self._learn(table, min_rows=1)
        return self._encoding.transform(table, columns)

    def _learn(self, table: Table, min_rows: int) -> list[Column]:
        """Learn from the first table, and return its columns."""
        for name in ("_encoding", "_counts", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        options = self._options()
        if table.n_rows < min_rows:
            raise ValueError(
                f"Found {table.n_rows} rows in X; at least {min_rows} is needed to learn levels."
            )
        if table.n_columns == 0:
            raise ValueError(
                f"Found 0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 is required."
            )
        how = self.categorical_features
        encoding, counts, columns = TableEncoding.learn(table, how, options)
        self._set_encoding(encoding, counts)
        return columns

    def _options(self) -> EncodingOptions:
        options = EncodingOptions(
            self.handle_unknown, self.min_frequency, self.max_categories, self.missing
        )
        options.require_valid()
        return options

    def _set_encoding(self, encoding: TableEncoding, counts: TableCounts | None) -> None:
        """Set the fitted attributes."""
        self._encoding, self._counts = encoding, counts
        self.n_features_in_ = len(encoding.variables)
        if encoding.are_named:
            names = [variable.name for variable in encoding.variables]
            self.feature_names_in_ = np.array(names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_encoding")

    # --------------------------------------------------------------------------------- encoding

    def transform(self, X: Any) -> Any:
        """Encode a table.

        Parameters
        ----------
        X : {DataFrame, Arrow table, array-like} of shape (n_samples, n_columns)
            The table. Its columns are found by name, if they have names.

        Returns
        -------
        X_encoded : csr_array of shape (n_samples, n_features)
            The features.
        """
        check_is_fitted(self)
        return self._encoding.transform(open_table(X))

    def inverse_transform(self, X: Any) -> NDArray[np.object_]:
        """Return the values of variables in encoded rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Encoded rows.

        Returns
        -------
        ndarray of objects of shape (n_samples, `n_features_in_`)
            Levels as text, and numbers. None stands for missing values and unknown levels,
            "(other)" for rare levels.

        Examples
        --------
        >>> import pandas as pd
        >>> from polysparse import TableEncoder
        >>> table = pd.DataFrame({"color": ["red", "blue", "red"], "size": [1.5, 0.0, 2.0]})
        >>> encoder = TableEncoder().fit(table)
        >>> encoder.inverse_transform([[1.0, 0.0, 3.5]])
        array([['blue', 3.5]], dtype=object)
        """
        check_is_fitted(self)
        require_in_memory(X)
        x = as_canonical_csr(X if sparse.issparse(X) else sparse.csr_array(np.asarray(X)))
        if x.shape[1] != self._encoding.n_features:
            raise ValueError(
                f"X has {x.shape[1]} features, but the encoder has {self._encoding.n_features}."
            )
        return self._encoding.decode(x.indptr, x.indices, x.data)  # type: ignore[no-any-return]

    # ------------------------------------------------------------------------------- describing

    @property
    def categories_(self) -> list[NDArray[np.object_] | None]:
        """The levels of each column that have a feature of their own; None for numeric columns."""
        check_is_fitted(self)
        return [
            np.array(each.levels, dtype=object) if isinstance(each, CategoricalVariable) else None
            for each in self._encoding.variables
        ]

    @property
    def groups_(self) -> list[str]:
        """The variable that each feature comes from."""
        check_is_fitted(self)
        return self._encoding.groups

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Get output feature names for transformation.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns; they must match `feature_names_in_`, if that is defined.

        Returns
        -------
        feature_names_out : ndarray of str objects
            Names such as "color=red" for levels, and the names of numeric columns.
        """
        check_is_fitted(self)
        encoding = self._encoding
        if input_features is not None:
            names = [str(name) for name in np.asarray(input_features, dtype=object)]
            own = [variable.name for variable in encoding.variables]
            if len(names) != len(own) or (encoding.are_named and names != own):
                raise ValueError(
                    f"input_features is {names}, but the columns of fit were {own}: leave it out."
                )
            encoding = encoding.renamed(names)
        return np.array(encoding.feature_names, dtype=object)

    # ------------------------------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what `transform` needs to a file, without pickle.

        Parameters
        ----------
        path : path-like
            File to write or to replace, an .npz. It is written atomically.

        See Also
        --------
        load : Read the file.
        """
        check_is_fitted(self)
        description = {"encoding": self._encoding.as_dict(), "parameters": self._plain_parameters()}
        with replacing(Path(path)) as file:
            FORMAT.write(file, description, {})

    def _plain_parameters(self) -> dict[str, Any]:
        """Return the parameters in a form that JSON can hold."""
        parameters = self.get_params(deep=False)
        return {
            name: value if value is None or isinstance(value, str) else np.asarray(value).tolist()
            for name, value in parameters.items()
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TableEncoder:
        """Read a file that `save` has written. Nothing is unpickled.

        Parameters
        ----------
        path : path-like
            File to read. ValueError is raised if it is damaged or not a table encoder.

        Returns
        -------
        TableEncoder
            The fitted encoder. It encodes as before; counts of levels are not saved, so that
            `partial_fit` raises ValueError.
        """
        description, _ = FORMAT.read(path)
        with damage_to(path):
            encoding = TableEncoding.from_dict(description["encoding"])
            encoder = cls(**description["parameters"])
            encoder._options()
            _require_plain(encoder.categorical_features)
        encoder._set_encoding(encoding, None)
        return encoder

    @classmethod
    def _of(cls, encoding: TableEncoding) -> TableEncoder:
        """Return a fitted encoder with an encoding, whose parameters are not known."""
        handle_unknown = "error" if encoding.is_strict else "ignore"
        encoder = cls(encoding.categorical, handle_unknown=handle_unknown)
        encoder._set_encoding(encoding, None)
        return encoder

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = self.missing == "indicator"  # of numbers; levels may be missing
        return tags


def _require_plain(categorical_features: Any) -> None:
    """Raise ValueError if what a file has as `categorical_features` is not valid."""
    if categorical_features is None or categorical_features == "from_dtype":
        return
    is_list = isinstance(categorical_features, list)
    if not is_list or not all(type(each) in (bool, int, str) for each in categorical_features):
        raise ValueError(f"its categorical_features are {categorical_features!r}")
