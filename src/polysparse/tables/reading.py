"""Tables in memory: of pandas, polars or Arrow, or a NumPy array whose columns are variables."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse.dispatch import require_in_memory
from polysparse.extras import how_to_install
from polysparse.matrix.canonical import is_sparse_frame
from polysparse.tables.columns import (
    CodedColumn,
    NumberColumn,
    Where,
    as_coded,
    as_numbers,
    as_values,
    code_each,
    code_objects,
    is_number,
    objects_as_numbers,
)

# Kinds of columns that "from_dtype" takes for categorical, and those that can be numbers. Columns
# of Python objects are either, as their values are, and so are columns without any value.
CATEGORICAL_KINDS = "category", "text", "boolean", "object"
NUMERIC_KINDS = "number", "boolean", "object"


class Table:
    """A table of variables. Each subclass reads the tables of one library.

    Attributes
    ----------
    names : list of str, or None
        Names of the columns; None if they have none.
    n_rows, n_columns : int
        Size of the table.
    first_row, row_note : int, str
        Number of the first row in messages, and how they explain it.
    """

    first_row, row_note = 0, ""

    def __init__(self, names: list[str] | None, n_rows: int, n_columns: int) -> None:
        self.names = names
        self.n_rows = n_rows
        self.n_columns = n_columns

    def kind(self, j: int) -> str:
        """Return "category", "text", "boolean", "object" or "number"; else the dtype's name."""
        raise NotImplementedError

    def coded(self, j: int) -> CodedColumn:
        """Read a column as levels."""
        raise NotImplementedError

    def numbers(self, j: int) -> NumberColumn:
        """Read a column as numbers."""
        raise NotImplementedError

    def where(self, j: int) -> Where:
        """Return how messages name a column and its rows."""
        column = f"column {j if self.names is None else repr(self.names[j])}"
        return Where(column, self.first_row, self.row_note)


def is_lazy(X: Any) -> bool:
    """Return whether X is a LazyFrame of polars."""
    return type(X).__module__.partition(".")[0] == "polars" and hasattr(X, "collect")


def is_table(X: Any) -> bool:
    """Return whether X is a table of pandas, polars, pyarrow, or another library with Arrow.

    A DataFrame whose columns are all sparse is a matrix.
    """
    if is_lazy(X):
        return True  # which open_table refuses
    if hasattr(X, "iloc"):
        return getattr(X, "ndim", 0) == 2 and not is_sparse_frame(X)
    has_columns = hasattr(X, "column_names") or hasattr(X, "columns")
    return has_columns and hasattr(X, "__arrow_c_stream__")


def open_table(X: Any) -> Table:
    """Return a table of any supported library, or a 2-D array, for reading.

    ValueError is raised if two columns have the same name.
    """
    if isinstance(X, Table):
        return X
    if type(X).__module__.partition(".")[0] == "dask":
        how = "map_partitions" if hasattr(X, "partitions") and is_table(X) else "map_blocks"
        raise TypeError(
            f"X is a dask {type(X).__name__}, but a TableEncoder needs a table in memory: call "
            "X.compute() if it fits. Otherwise learn from parts of X with partial_fit, and encode "
            f"X with X.{how}(encoder.transform)."
        )
    _require_table_in_memory(X)
    if is_table(X) or is_sparse_frame(X):
        return PandasTable(X) if hasattr(X, "iloc") else ArrowTable(X)
    if sparse.issparse(X):
        raise TypeError(
            "X is a sparse matrix, whose features have no levels: pass a table, or an array."
        )
    array = np.asarray(X)
    if np.ma.isMaskedArray(X):
        array = array.astype(object)
        array[np.ma.getmaskarray(X)] = None
    elif not hasattr(X, "dtype") and array.dtype.kind == "U":
        array = np.asarray(X, dtype=object)  # so that the numbers of a list stay numbers
    if array.ndim != 2:
        raise ValueError(
            f"X must be a table or a 2-D array; got {type(X).__name__} of shape {array.shape}. "
            "Reshape your data, with X.reshape(-1, 1) if it is a single column."
        )
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has dtype {array.dtype}.")
    return ArrayTable(array)


def _require_table_in_memory(X: Any) -> None:
    """Raise TypeError if X is not in this process, or is yet to be computed."""
    require_in_memory(X)
    if is_lazy(X):
        raise TypeError("X is a polars LazyFrame; call X.collect() first.")


def _as_names(names: Sequence[Any]) -> list[str] | None:
    """Return the names of columns, or None if they are not strings, as scikit-learn does."""
    if not all(isinstance(name, str) for name in names):
        if any(isinstance(name, str) for name in names):
            raise TypeError(
                "The columns of X must all have strings as names, or none of them; got "
                f"{list(names)[:5]}. Convert them with X.columns = X.columns.astype(str)."
            )
        return None
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"X has two columns named {name!r}: rename or drop one of them.")
        seen.add(name)
    return list(map(str, names))


class PandasTable(Table):
    """A DataFrame of pandas. Text is encoded by pyarrow where that is installed."""

    def __init__(self, frame: Any) -> None:
        super().__init__(_as_names(list(frame.columns)), *frame.shape)
        self.frame = frame
        self.dtypes = frame.dtypes.tolist()  # pandas would collect all of them for each column
        self._kinds: dict[int, str] = {}  # by the identity of a dtype, which many columns share

    def kind(self, j: int) -> str:
        dtype = self.dtypes[j]
        kind = self._kinds.get(id(dtype))
        if kind is None:
            kind = self._kinds[id(dtype)] = _kind_of(dtype)
        return kind

    def coded(self, j: int) -> CodedColumn:
        column, where = self.frame.iloc[:, j], self.where(j)
        dtype = column.dtype
        if dtype.name == "category":
            categories = column.cat.categories
            if _is_shown_as_text(categories.dtype):
                categories = categories.astype(str)
            return as_coded(column.cat.codes.to_numpy(), _values_of_index(categories), where)
        if hasattr(dtype, "pyarrow_dtype") or _is_string(dtype):
            with suppress(ImportError, UnicodeEncodeError):  # of lone surrogates
                import pyarrow as pa

                return as_coded(*_encode(pa.array(column, from_pandas=True)), where)
        if dtype == np.dtype(object):
            return code_objects(column.to_numpy(), where, _factorize)
        codes, levels = column.factorize()
        return as_coded(codes, _values_of_index(levels), where)

    def numbers(self, j: int) -> NumberColumn:
        column = self.frame.iloc[:, j]
        if column.dtype == object:
            return objects_as_numbers(column, self.where(j))
        return as_numbers(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _kind_of(dtype: Any) -> str:
    """Return the kind of a column, by its dtype in pandas."""
    from pandas.api import types

    if hasattr(dtype, "pyarrow_dtype"):
        return arrow_kind(dtype.pyarrow_dtype)
    if dtype.name == "category":
        return "category"
    if types.is_bool_dtype(dtype):
        return "boolean"
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        return "number"
    if types.is_object_dtype(dtype):
        return "object"
    return "text" if types.is_string_dtype(dtype) else str(dtype)


def _factorize(values: NDArray[np.object_], where: Where) -> CodedColumn:
    """Return a categorical column of objects; pandas is faster than pyarrow and `code_each`."""
    import pandas as pd

    with suppress(TypeError):
        codes, levels = pd.factorize(values)
        if all(isinstance(level, str) for level in levels):
            return as_coded(codes, levels.tolist(), where)
    return code_each(values, where)


def _values_of_index(index: Any) -> list[Any]:
    """Return the values of an index of pandas as objects, short floats as what they are."""
    name = str(index.dtype).lower()  # that of an extension dtype begins with a capital letter
    values: list[Any] = as_values(index.to_numpy(name)) if name == "float32" else index.tolist()
    return values


def _is_shown_as_text(dtype: Any) -> bool:
    """Return whether categories of a dtype, such as intervals and dates, become texts."""
    from pandas import ArrowDtype
    from pandas.api import types

    if isinstance(dtype, ArrowDtype):
        return arrow_kind(dtype.pyarrow_dtype) not in ("text", "boolean", "number")
    is_plain = types.is_object_dtype(dtype) or types.is_numeric_dtype(dtype) or _is_string(dtype)
    return not is_plain


def _is_string(dtype: Any) -> bool:
    """Return whether a dtype of pandas is for strings alone."""
    return bool(getattr(dtype, "name", "") in ("string", "str") or hasattr(dtype, "storage"))


class ArrowTable(Table):
    """A table that Arrow can read: of pyarrow, polars and others."""

    def __init__(self, table: Any) -> None:
        try:
            import pyarrow as pa
        except ImportError:
            raise ImportError(
                f"Tables of {type(table).__module__.partition('.')[0]} need pyarrow: "
                f"{how_to_install('cli')}"
            ) from None
        try:
            self.table = table if isinstance(table, pa.Table | pa.RecordBatch) else pa.table(table)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"pyarrow cannot read X: {error}. Convert the columns of this type, or drop them."
            ) from None
        names = _as_names(self.table.column_names)
        super().__init__(names, self.table.num_rows, self.table.num_columns)

    def kind(self, j: int) -> str:
        return arrow_kind(self.table.schema.field(j).type)

    def coded(self, j: int) -> CodedColumn:
        return as_coded(*_encode(self.table.column(j)), self.where(j))

    def numbers(self, j: int) -> NumberColumn:
        import pyarrow as pa

        column = self.table.column(j)
        if column.type != pa.float64():
            column = column.cast(pa.float64(), safe=False)
        return as_numbers(np.asarray(column, np.float64))


class TextTable(ArrowTable):
    """A table that was written as text: levels are ordered as numbers if all of them are."""

    def coded(self, j: int) -> CodedColumn:
        column = super().coded(j)
        return replace(column, are_numbers=all(map(is_number, column.levels)))


def arrow_kind(dtype: Any) -> str:
    """Return the kind of a column, by its type in Arrow."""
    from pyarrow import types

    if types.is_dictionary(dtype):
        return "category"
    if types.is_boolean(dtype):
        return "boolean"
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "number"
    if types.is_null(dtype):
        return "object"
    is_text = types.is_string(dtype) or types.is_large_string(dtype)
    return "text" if is_text or str(dtype) == "string_view" else str(dtype)


def _encode(column: Any) -> tuple[NDArray[Any], list[Any]]:
    """Return the code of each row, -1 if it is null, and the value of each code."""
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), -1), []
    if pa.types.is_float16(column.type):  # which not every pyarrow encodes
        numbers, places = np.unique(np.asarray(column, np.float16), return_inverse=True)
        return places, as_values(numbers)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if not isinstance(column, pa.ChunkedArray):
        return _codes_of(column), _values_of(column)
    if any(chunk.dictionary.null_count for chunk in column.chunks):  # which cannot be unified
        column = column.cast(column.type.value_type).dictionary_encode()
    chunks = column.unify_dictionaries().chunks
    if not chunks:
        return np.empty(0, np.int64), []
    codes = [_codes_of(chunk) for chunk in chunks]
    return codes[0] if len(codes) == 1 else np.concatenate(codes), _values_of(chunks[0])


def _codes_of(chunk: Any) -> NDArray[Any]:
    indices = chunk.indices
    if indices.null_count:
        indices = indices.cast("int64").fill_null(-1)
    codes = np.asarray(indices)
    return codes.astype(np.int64) if codes.dtype.kind == "u" else codes


def _values_of(chunk: Any) -> list[Any]:
    from pyarrow import types

    dictionary = chunk.dictionary
    if types.is_float16(dictionary.type) or types.is_float32(dictionary.type):
        return as_values(dictionary.to_numpy(zero_copy_only=False))
    values: list[Any] = dictionary.to_pylist()
    return values


class ArrayTable(Table):
    """The columns of a NumPy array."""

    def __init__(self, array: NDArray[Any]) -> None:
        super().__init__(None, *array.shape)
        self.array = array.astype(object) if array.dtype.kind == "T" else array  # of StringDType

    def kind(self, j: int) -> str:
        kinds = {"b": "number", "i": "number", "u": "number", "f": "number", "U": "text"}
        if self.array.dtype != object:
            return kinds.get(self.array.dtype.kind, str(self.array.dtype))
        types = {type(value) for value in self.array[:, j]}
        if any(issubclass(each, str) for each in types):
            return "object"
        return "number" if any(issubclass(each, Real | Decimal) for each in types) else "object"

    def coded(self, j: int) -> CodedColumn:
        column = self.array[:, j]
        if column.dtype == object:
            return code_objects(column, self.where(j))
        values, codes = np.unique(column, return_inverse=True)
        return as_coded(codes, as_values(values), self.where(j))

    def numbers(self, j: int) -> NumberColumn:
        column = self.array[:, j]
        if column.dtype == object:
            return objects_as_numbers(column, self.where(j))
        return as_numbers(column.astype(np.float64))
