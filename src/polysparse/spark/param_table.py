"""The table of all params of all stages.

To add a param, add an entry to the table and its name to the stages that have it. The Param, its
getter and setter, the keyword of `__init__` and `setParams`, its documentation, its default and the
argument of the same meaning in Python all follow from that (see `params`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from pyspark.ml.param import Param, Params, TypeConverters

Degree = int | tuple[int, int] | list[int]
Columns = str | list[int]
ClassWeight = str | dict[float, float] | None
Groups = str | list[str | None] | list[int] | dict[str, int] | None
Terms = str | list[str | list[str]] | None

# -------------------------------------------------------------------------------------- converters
# A value of the wrong type raises TypeError when it is set, as in pyspark. A value out of range
# raises IllegalArgumentException when the stage is used, since ranges depend on other params.


def to_degree(value: Any) -> int | list[int]:
    """Convert to what JSON can store: an int or a list of two."""
    if isinstance(value, Integral):
        return int(value)
    pair = list(value) if isinstance(value, tuple | list | np.ndarray) else []
    if len(pair) != 2 or not all(isinstance(each, Integral) for each in pair):
        raise TypeError(f"degree must be an int, or a pair (min, max) of ints; got {value!r}.")
    return [int(each) for each in pair]


def to_optional_int(value: Any) -> int | None:
    """Convert to an int, unless it is None."""
    return None if value is None else TypeConverters.toInt(value)


def to_groups(value: Any) -> Groups:
    """Convert to what JSON can store: "metadata", a list, or a dict of sizes, unless it is None."""
    if value is None or isinstance(value, str):
        if value not in (None, METADATA):
            raise TypeError(f"{_GROUPS} got {value!r}.")
        return value
    if isinstance(value, Mapping):
        sizes = {TypeConverters.toString(label): size for label, size in value.items()}
        return {label: TypeConverters.toInt(size) for label, size in sizes.items()}
    labels = np.asarray(value, dtype=object).tolist()
    if labels and all(isinstance(label, Integral) for label in labels):
        return list(map(int, labels))
    if not isinstance(labels, list) or not all(isinstance(each, str | None) for each in labels):
        raise TypeError(f"{_GROUPS} got {value!r}.")
    return [label or None for label in labels]


METADATA = "metadata"
_GROUPS = (
    "groups must be a label for each feature (an empty one, or None, for a feature of its own), a "
    "dict of labels and sizes, sizes, or 'metadata';"
)


def to_terms(value: Any) -> Terms:
    """Convert to what JSON can store: formulas, or lists of labels, unless it is None."""
    if value is None or isinstance(value, str):
        return value
    entries = list(value) if isinstance(value, tuple | list | np.ndarray) else [None]
    terms = [each if isinstance(each, str) else _as_labels(each) for each in entries]
    if None in terms:
        raise TypeError(f"terms must be formulas, or lists of labels; got {value!r}.")
    return terms  # type: ignore[return-value]


def _as_labels(term: Any) -> list[str] | None:
    """Return a list of strings as such, and None for anything else."""
    is_list = isinstance(term, tuple | list | np.ndarray)
    return list(map(str, term)) if is_list and all(isinstance(x, str) for x in term) else None


def to_columns(value: Any) -> str | list[int]:
    """Convert to what JSON can store: the name of a kind, or a list of column numbers."""
    if isinstance(value, str):
        return value
    if hasattr(value, "get_params"):
        raise TypeError(
            f"columns cannot be a transformer on Spark; got {value!r}. Set columns to 'observed', "
            "with minCount and maxColumns, to 'hashed', with nColumns, or to column numbers."
        )
    ranks = np.asarray(value)
    if ranks.ndim != 1 or ranks.dtype.kind not in "iu":
        raise TypeError(
            "columns must be 'all', 'observed', 'hashed' or increasing column numbers; got "
            f"{value!r}."
        )
    return ranks.tolist()  # type: ignore[no-any-return]


def to_class_weight(value: Any) -> ClassWeight:
    """Convert to a string or a dict of numbers, unless it is None. JSON makes keys strings."""
    if not isinstance(value, Mapping):
        return None if value is None else TypeConverters.toString(value)
    try:
        return {float(label): float(weight) for label, weight in value.items()}
    except ValueError as error:
        raise TypeError(f"classWeight must map numbers to numbers: {error}.") from None


# --------------------------------------------------------------------------------------- the table


@dataclass(frozen=True)
class ParamSpec:
    """A param, wherever it occurs.

    Attributes
    ----------
    name : str
        Its name.
    annotation : type
        The type of its values.
    default : object
        Its default. Dataset columns get theirs from pyspark's mixins.
    doc : str
        What it means, in sentences.
    convert : callable, optional
        Converts a value to what is stored, or raises TypeError. The default follows from the type.
    argument : str, optional
        The argument in Python of the same meaning, if that is not `name` in snake case.
    """

    name: str
    annotation: Any
    default: Any
    doc: str
    convert: Callable[[Any], Any] | None = None
    argument: str | None = None

    @property
    def is_dataset_column(self) -> bool:
        """Whether it names a column of a dataset."""
        return self.name.endswith("Col")

    @property
    def is_for_predictions(self) -> bool:
        """Whether a fitted model uses it, so that it can still be set."""
        return self.is_dataset_column and self.argument is None

    @property
    def python_name(self) -> str:
        """The argument in Python of the same meaning."""
        return self.argument or re.sub("(?<=[a-z])[A-Z]", lambda m: f"_{m[0].lower()}", self.name)

    @property
    def title(self) -> str:
        """The name as it is in the names of its getter and its setter."""
        return self.name[0].upper() + self.name[1:]

    def as_param(self) -> Param:
        """Return the Param of a class, which pyspark copies to its instances."""
        convert = self.convert or _CONVERTERS[self.annotation]
        return Param(Params._dummy(), self.name, self.doc, typeConverter=convert)


_CONVERTERS = {
    int: TypeConverters.toInt,
    float: TypeConverters.toFloat,
    bool: TypeConverters.toBoolean,
    str: TypeConverters.toString,
    str | None: TypeConverters.toString,
}

_SPECS = (
    ParamSpec("degree", Degree, 2, "Maximum degree of the terms, or a pair (min, max).", to_degree),
    ParamSpec(
        "interactionOnly",
        bool,
        False,
        "If True, interactions use each feature at most once, and there are no powers.",
    ),
    ParamSpec(
        "groups",
        Groups,
        None,
        "Groups of features, such as the levels of a variable: a term has at most one feature of "
        "each. A label for each feature (an empty one for a feature of its own), a dict with the "
        'sizes of contiguous groups by their labels, sizes alone, or "metadata": levels that '
        "OneHotEncoder made are grouped by variable, which is the column that VectorAssembler took "
        'them from, without endings such as "_vec"; the dataset must still have that column.',
        to_groups,
    ),
    ParamSpec(
        "terms",
        Terms,
        None,
        'Which groups interact, instead of all up to a degree: formulas such as "user:item", '
        '"user*hour" or "(a + b + c)**2", or lists of labels. Main effects are included only if '
        "listed. Features without a group are called by their names in the metadata, or "
        '"x0", "x1", ...',
        to_terms,
    ),
    ParamSpec("includeBias", bool, True, "If True, include the constant term 1."),
    ParamSpec(
        "columnOrder",
        str,
        "sklearn",
        'Order of the output columns: "sklearn", or "spark" for the columns, values and size of '
        "MLlib's PolynomialExpansion, for models that were fitted to it. The latter has no "
        "constant term, and supports neither a pair of degrees, interactionOnly, groups nor terms.",
    ),
    ParamSpec(
        "minCount",
        int,
        1,
        "Of observed terms, keep only those that are stored in at least this many rows (>= 1).",
    ),
    ParamSpec(
        "maxColumns",
        int | None,
        None,
        "Of observed terms, keep at most this many (>= 1): the most frequent ones and, of equally "
        "frequent ones, the first. None keeps all.",
        to_optional_int,
    ),
    ParamSpec(
        "nColumns", int, 2**20, "Number of columns that terms are hashed to, from 1 to 2**31 - 1."
    ),
    ParamSpec("alternateSign", bool, True, "If True, the hash of a term also sets its sign."),
    ParamSpec("seed", int, 0, "Selects the hash function, from 0 to 2**64 - 1."),
    ParamSpec(
        "C",
        float,
        1.0,
        "Inverse of the regularization strength (> 0), as in scikit-learn: MLlib's regParam is "
        "1 / (C * sum of weights).",
    ),
    ParamSpec(
        "alpha",
        float,
        1.0,
        "Strength of the penalty (>= 0), as in scikit-learn.",
    ),
    ParamSpec(
        "columns",
        Columns,
        "all",
        'Which terms have a coefficient: "all", "observed" for those that occur in the data (see '
        'minCount and maxColumns), "hashed" for nColumns columns that terms are hashed to, or '
        "increasing numbers of columns of the expansion without the constant term.",
        to_columns,
    ),
    ParamSpec(
        "power",
        float,
        0.0,
        "The power of the mean that variances are proportional to: 0 for squared errors, 1 for "
        "counts (Poisson), between 1 and 2 for amounts that may be 0, 2 for positive amounts "
        "(Gamma).",
    ),
    ParamSpec(
        "link",
        str,
        "auto",
        'How a score becomes a mean: "log", "identity" if power is 0, or "auto" for the one that '
        "the power allows.",
    ),
    ParamSpec("epsilon", float, 0.0, "Errors up to this size have no loss (>= 0)."),
    ParamSpec(
        "interceptScaling",
        float,
        1.0,
        "The intercept is penalized less if it is larger (> 0); infinity means not at all.",
    ),
    ParamSpec("fitIntercept", bool, True, "If False, the intercept is 0."),
    ParamSpec(
        "classWeight",
        ClassWeight,
        None,
        'None, "balanced" to give all classes the same total weight, or a dict with the weight of '
        "each label, 1 for others. The weight of a row is multiplied by that of its label.",
        to_class_weight,
    ),
    ParamSpec(
        "tol",
        float,
        1e-6,
        "The fit stops when the objective is estimated to be within tol times its value of its "
        "minimum (>= 0).",
    ),
    ParamSpec("maxIter", int, 100, "Maximum number of iterations (>= 1)."),
    ParamSpec("verbose", int, 0, "If not 0, the driver prints a line for each iteration."),
    ParamSpec("inputCol", str | None, None, "Input column, of vectors."),
    ParamSpec(
        "outputCol",
        str | None,
        None,
        "Output column, of vectors. Its metadata name the columns of expansions up to 4096 wide.",
    ),
    ParamSpec("featuresCol", str, "features", "Input column, of vectors."),
    ParamSpec("labelCol", str, "label", "Column of labels, which are numbers.", argument="y"),
    ParamSpec(
        "weightCol",
        str | None,
        None,
        "Column of weights of rows, which are 1 if it is not set.",
        argument="sample_weight",
    ),
    ParamSpec(
        "offsetCol",
        str | None,
        None,
        "Column of offsets, which are added to the scores of rows in fit and transform; with a log "
        "link, logarithms of exposures. Without it there are none.",
    ),
    ParamSpec("predictionCol", str, "prediction", "Output column of predictions, unless empty."),
    ParamSpec(
        "probabilityCol", str, "probability", "Output column of probabilities, unless empty."
    ),
    ParamSpec(
        "rawPredictionCol", str, "rawPrediction", "Output column of class scores, unless empty."
    ),
)
TABLE = {spec.name: spec for spec in _SPECS}
