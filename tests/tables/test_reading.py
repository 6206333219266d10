"""Columns of every library and dtype: what they become, and which are refused."""

import builtins
import datetime as dt
import subprocess
import sys
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from inside import lower
from polysparse import TableEncoder


def encoded(table, *args, **options):
    """Return the names and the values of features; `transform` agrees with `fit_transform`."""
    encoder = TableEncoder(*args, **options)
    found = encoder.fit_transform(table)
    assert np.array_equal(encoder.transform(table).toarray(), found.toarray())
    return list(encoder.get_feature_names_out()), found.toarray().tolist()


def of_pandas(values, dtype=None):
    return pd.DataFrame({"a": pd.Series(values, dtype=dtype)})


def of_numpy(values, dtype=None):
    return np.array([[value] for value in values], dtype)


def of_polars(values, dtype=None):
    return pl.DataFrame({"a": pl.Series(values, dtype=dtype)})


def of_arrow(values, dtype=None):
    return pa.table({"a": pa.array(values, dtype)})


def dictionary(codes, values):
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(values))


ARROW_DICTIONARY = pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
B_NONE_A = {
    "pandas, object": lambda: of_pandas(["b", None, "a"], object),
    "pandas, other missing values": lambda: of_pandas(["b", pd.NA, "a"], object),
    "pandas, string": lambda: of_pandas(["b", None, "a"], "string"),
    "pandas, string[python]": lambda: of_pandas(["b", None, "a"], "string[python]"),
    "pandas, string[pyarrow]": lambda: of_pandas(["b", None, "a"], "string[pyarrow]"),
    "pandas, ArrowDtype": lambda: of_pandas(["b", None, "a"], pd.ArrowDtype(pa.string())),
    "pandas, Arrow dictionary": lambda: of_pandas(["b", None, "a"], ARROW_DICTIONARY),
    "pandas, category": lambda: of_pandas(["b", None, "a"], "category"),
    "pandas, ordered": lambda: of_pandas(
        ["b", None, "a"], pd.CategoricalDtype(["b", "unused", "a"], ordered=True)
    ),
    "polars, String": lambda: of_polars(["b", None, "a"]),
    "polars, Categorical": lambda: of_polars(["b", None, "a"], pl.Categorical),
    "polars, Enum": lambda: of_polars(["b", None, "a"], pl.Enum(["b", "unused", "a"])),
    "polars, two chunks": lambda: pl.concat(
        [of_polars(["b", None], pl.Categorical), of_polars(["a"], pl.Categorical)], rechunk=False
    ),
    "pyarrow, string": lambda: of_arrow(["b", None, "a"]),
    "pyarrow, large_string": lambda: of_arrow(["b", None, "a"], pa.large_string()),
    "pyarrow, string_view": lambda: of_arrow(["b", None, "a"], pa.string_view()),
    "pyarrow, slice": lambda: of_arrow(["z", "b", None, "a", "z"]).slice(1, 3),
    "pyarrow, RecordBatch": lambda: pa.record_batch({"a": ["b", None, "a"]}),
    "pyarrow, null in a dictionary": lambda: pa.table(
        {"a": dictionary([0, 1, 2], ["b", None, "a"])}
    ),
    "pyarrow, a level twice": lambda: pa.table({"a": dictionary([2, None, 0], ["a", "a", "b"])}),
    "pyarrow, two dictionaries": lambda: pa.table(
        {"a": pa.chunked_array([dictionary([1, None], ["a", "b"]), dictionary([0], ["a", "c"])])}
    ),
    "pyarrow, two dictionaries with null": lambda: pa.table(
        {"a": pa.chunked_array([dictionary([0, 1], ["b", None]), dictionary([1], [None, "a"])])}
    ),
    "numpy, object": lambda: np.array([["b"], [None], ["a"]], dtype=object),
    "numpy, NA": lambda: np.array([["b"], [pd.NA], ["a"]], dtype=object),
    "lists": lambda: [["b"], [None], ["a"]],
}


@pytest.mark.parametrize("form", B_NONE_A)
def test_texts_and_categories_become_levels(form):
    names, values = encoded(B_NONE_A[form]())
    assert [name.partition("=")[2] for name in names] == ["a", "b", "(missing)"]
    assert values == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]


TWO_NONE_ZERO = {
    "pandas, float": lambda: of_pandas([2.0, np.nan, 0.0]),
    "pandas, Int64": lambda: of_pandas([2, None, 0], "Int64"),
    "pandas, Float32": lambda: of_pandas([2, None, 0], "Float32"),
    "pandas, sparse": lambda: of_pandas(pd.arrays.SparseArray([2.0, np.nan, 0.0])),
    "pandas, int64[pyarrow]": lambda: of_pandas([2, None, 0], "int64[pyarrow]"),
    "pandas, object": lambda: of_pandas([2, None, Decimal(0)], object),
    "polars, Int64": lambda: of_polars([2, None, 0]),
    "polars, Float64": lambda: of_polars([2.0, None, 0.0]),
    "polars, NaN": lambda: of_polars([2.0, float("nan"), 0.0]),
    "polars, Decimal": lambda: of_polars([Decimal(2), None, Decimal(0)]),
    "pyarrow, int8": lambda: of_arrow([2, None, 0], pa.int8()),
    "pyarrow, decimal": lambda: of_arrow([Decimal("2.00"), None, Decimal("0.00")]),
    "numpy, float32": lambda: np.array([[2], [np.nan], [0]], np.float32),
    "numpy, object": lambda: np.array([[2], [pd.NA], [0]], object),
    "numpy, masked": lambda: np.ma.masked_array([[2], [7], [0]], mask=[[False], [True], [False]]),
}


@pytest.mark.parametrize("form", TWO_NONE_ZERO)
def test_numbers_stay_and_missing_ones_have_an_indicator(form):
    names, values = encoded(TWO_NONE_ZERO[form](), None, missing="indicator")
    assert [name[1:].lstrip("0") for name in names] == ["", "=(missing)"]
    assert values == [[2, 0], [0, 1], [0, 0]]


@pytest.mark.parametrize("form", TWO_NONE_ZERO)
def test_numbers_that_are_listed_become_levels(form):
    names, values = encoded(TWO_NONE_ZERO[form](), [0])
    assert [name.partition("=")[2] for name in names] == ["0", "2", "(missing)"]
    assert values == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    "table",
    [
        of_pandas([True, None, False], "boolean"),
        of_pandas([True, None, False], object),
        of_pandas(pd.Categorical([True, None, False])),
        of_pandas([True, None, False], "bool[pyarrow]"),
        of_polars([True, None, False]),
        of_arrow([True, None, False]),
    ],
)
def test_booleans_are_levels(table):
    names, values = encoded(table)
    assert names == ["a=False", "a=True", "a=(missing)"]
    assert values == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    "table", [of_pandas([None, None], object), of_polars([None, None]), of_arrow(pa.nulls(2))]
)
def test_a_column_without_values_is_a_level_or_missing_numbers(table):
    assert encoded(table) == (["a=(missing)"], [[1], [1]])
    assert encoded(table, None, missing="indicator") == (["a", "a=(missing)"], [[0, 1], [0, 1]])


def test_true_and_one_are_different_levels():
    names, values = encoded(of_pandas([True, 1, "1", 1.0], object))
    assert (names, values) == (["a=1", "a=True"], [[0, 1], [1, 0], [1, 0], [1, 0]])


@pytest.mark.parametrize("of", [of_pandas, of_polars, of_arrow, of_numpy])
def test_texts_of_whole_numbers_have_no_fraction(of):
    names, values = encoded(of(["1.0", "1", "-0.0", "007", "7.00", "2.5", "1e+16", "v1.0"]), [0])
    levels = ["0", "007", "1", "10000000000000000", "2.5", "7.00", "v1.0"]
    assert [name.partition("=")[2] for name in names] == levels
    assert values[0] == values[1]


FRACTIONS = {
    "pandas, float32": lambda: of_pandas([0.1, 0.2], "float32"),
    "pandas, Float32": lambda: of_pandas([0.1, 0.2], "Float32"),
    "pandas, float[pyarrow]": lambda: of_pandas([0.1, 0.2], "float[pyarrow]"),
    "pandas, category": lambda: of_pandas(pd.Categorical(np.array([0.1, 0.2], "f4"))),
    "pandas, object": lambda: of_pandas(list(np.array([0.1, 0.2], "f4")), object),
    "polars, Float32": lambda: of_polars([0.1, 0.2], pl.Float32),
    "pyarrow, float": lambda: of_arrow([0.1, 0.2], pa.float32()),
    "pyarrow, halffloat": lambda: of_arrow(np.array([0.1, 0.2], np.float16)),
    "texts": lambda: of_pandas(["0.1", "0.2"]),
}


@pytest.mark.parametrize("form", FRACTIONS)
def test_fractions_of_every_precision_are_the_same_levels(form):
    table = FRACTIONS[form]()
    encoder = TableEncoder([0], handle_unknown="error").fit(of_pandas([0.1, 0.2]))
    assert encoder.transform(table).toarray().tolist() == [[1, 0], [0, 1]]
    assert encoded(table, [0])[0] == ["a=0.1", "a=0.2"]


def test_float32_of_an_array_are_the_same_levels():
    encoder = TableEncoder([0], handle_unknown="error").fit(of_numpy([0.1, 0.2]))
    assert encoder.transform(of_numpy([0.1, 0.2], "f4")).toarray().tolist() == [[1, 0], [0, 1]]


BOOLEANS = [False, True], [0, 1], [0.0, 1.0], ["false", "true"], ["FALSE", "TRUE"], ["0", "1"]


@pytest.mark.parametrize("fitted", BOOLEANS, ids=str)
@pytest.mark.parametrize("given", BOOLEANS, ids=str)
def test_booleans_are_known_however_they_are_written(given, fitted):
    encoder = TableEncoder([0], handle_unknown="error").fit(of_pandas(fitted))
    assert encoder.transform(of_pandas(given)).toarray().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("fitted", "given", "found"),
    [
        (["1.50", "2.0e3", "5"], [1.5, 2000.0, 3.5], ["1.50", "2.0e3", None]),
        ([1.5, 2000.0, 5.0], ["1.50", "2.0e3", "x"], ["1.5", "2000", None]),
        (["1.10", "1.2", "5"], ["1.1", "1.20", "5"], [None, None, "5"]),  # may be versions
        (["1.50", "1.500", "5"], [1.5, 5.0, 5.0], [None, "5", "5"]),
        (["1.5", "1.50", "5"], [1.5, 5.0, 5.0], ["1.5", "5", "5"]),
        (["007", "08.5", "5"], [7, 8.5, 5], [None, None, "5"]),
    ],
    ids=str,
)
def test_numbers_are_found_however_they_are_written(fitted, given, found):
    encoder = TableEncoder([0]).fit(of_pandas(fitted))
    values = encoder.inverse_transform(encoder.transform(of_pandas(given)))
    assert values[:, 0].tolist() == found


def test_ones_are_not_true_among_other_levels():
    encoder = TableEncoder([0]).fit(of_pandas([1, 2]))
    assert encoder.transform(of_pandas([True])).nnz == 0
    encoder = TableEncoder([0]).fit(of_pandas(["true", "True"]))
    assert encoder.transform(of_pandas([1])).nnz == 0


VALUES_OF_COLUMNS = {
    "texts": ["b", "a", "é", ""],
    "texts and missing values": ["b", None, float("nan"), "a", np.nan, pd.NA],
    "booleans and numbers": [1, True, 0, False, 1.0, np.bool_(True), np.int64(7)],
    "numbers": [10, 9.5, Decimal("2"), 10.0],
    "nothing": [None, float("nan")],
}


@pytest.mark.parametrize("values", VALUES_OF_COLUMNS.values(), ids=VALUES_OF_COLUMNS)
@pytest.mark.parametrize("of", [of_pandas, of_numpy])
def test_rows_that_share_objects_have_the_levels_of_rows_that_do_not(values, of, monkeypatch):
    rng = np.random.default_rng(0)
    rows = [values[i] for i in rng.integers(len(values), size=500)]
    found = []
    for rows_per_object in (1, len(rows) + 1):  # always numbered first, and never
        lower(monkeypatch, ROWS_PER_OBJECT=rows_per_object)
        found.append(encoded(of(rows, object), [0]))
    assert found[0] == found[1]


def test_intervals_and_dates_that_are_categories_are_shown_as_pandas_shows_them():
    names, _ = encoded(of_pandas(pd.cut([1.0, 5.0], [0, 2, 10])))
    assert names == ["a=(0, 2]", "a=(2, 10]"]
    names, _ = encoded(of_pandas(pd.Categorical(pd.to_datetime(["2021-05-01", "2020-05-01"]))))
    assert names == ["a=2020-05-01", "a=2021-05-01"]


def test_lone_surrogates_are_levels():
    for dtype in (object, "string[python]"):
        names, _ = encoded(of_pandas(["\ud800", "b"], dtype))
        assert names == ["a=b", "a=\ud800"]


DAY = dt.datetime(2020, 1, 1)
REFUSED = {
    "pandas, datetime": lambda: of_pandas([DAY]),
    "pandas, timedelta": lambda: of_pandas([dt.timedelta(1)]),
    "pandas, period": lambda: of_pandas(pd.period_range("2020", periods=1)),
    "pandas, complex": lambda: of_pandas([1j]),
    "polars, Date": lambda: of_polars([DAY.date()]),
    "polars, Duration": lambda: of_polars([dt.timedelta(1)]),
    "polars, List": lambda: of_polars([[1]]),
    "polars, Struct": lambda: of_polars([{"x": 1}]),
    "pyarrow, timestamp": lambda: of_arrow([DAY]),
    "pyarrow, binary": lambda: of_arrow([b"x"]),
    "numpy, datetime": lambda: np.array([["2020-01-01"]], "M8[D]"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_other_columns_are_refused_with_a_way_out(form):
    with pytest.raises(ValueError, match=r"column ('a'|0) is .*convert it, .*or drop it"):
        TableEncoder().fit(REFUSED[form]())


@pytest.mark.parametrize("value", [[1], (1, 2), b"x", dt.date(2020, 1, 1)])
def test_python_objects_that_are_not_levels_are_refused(value):
    with pytest.raises(TypeError, match=r"column 'a' has the value .*which is not a level"):
        TableEncoder().fit(of_pandas([value], object))


def test_text_among_numbers_names_column_and_row():
    encoder = TableEncoder([1]).fit(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}))
    table = pd.DataFrame({"a": pd.Series([1, "two"], dtype=object), "b": ["x", "y"]})
    with pytest.raises(ValueError, match="column 'a' has 'two' in row 1, but numbers are needed"):
        encoder.transform(table)
    with pytest.raises(ValueError, match="'a' is text, such as 'two' in row 1, but numbers"):
        encoder.transform(pl.DataFrame({"a": ["1", "two"], "b": ["x", "y"]}))


def test_what_is_not_in_memory_is_refused_with_a_way_out():
    with pytest.raises(TypeError, match=r"LazyFrame; call X.collect\(\)"):
        TableEncoder().fit(of_polars(["a"]).lazy())
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match=r"call X.compute\(\)"):
        TableEncoder().fit(da.ones((2, 2)))


@pytest.mark.parametrize("X", [None, "text", [1, 2], pd.Series(["a"])])
def test_what_is_not_a_table_is_refused(X):
    with pytest.raises(ValueError, match="X must be a table or a 2-D array"):
        TableEncoder().fit(X)


def test_names_of_columns_are_strings_or_all_others():
    names, _ = encoded(pd.DataFrame([["a", 2.0]], columns=[5, 7]))
    assert names == ["x0=a", "x1"]
    with pytest.raises(TypeError, match="must all have strings as names"):
        TableEncoder().fit(pd.DataFrame([["a", 2.0]], columns=["a", 7]))


@pytest.mark.parametrize(
    "table",
    [pd.DataFrame([[1, 2]], columns=["a", "a"]), pa.table([[1], [2]], names=["a", "a"])],
)
def test_two_columns_of_the_same_name_are_refused(table):
    with pytest.raises(ValueError, match="two columns named 'a'"):
        TableEncoder().fit(table)


def test_tables_that_cannot_be_written_to_are_read_and_not_changed():
    numbers, words = np.array([1.0, np.nan]), np.array(["a", "b"], dtype=object)
    for array in (numbers, words):
        array.flags.writeable = False
    frame = pd.DataFrame({"n": pd.Series(numbers, copy=False), "w": pd.Series(words, copy=False)})
    _, values = encoded(frame, missing="indicator")
    assert values == [[1, 0, 1, 0], [0, 1, 0, 1]]
    assert np.isnan(numbers[1])


# ------------------------------------------------------------------------------ optional libraries


def test_polysparse_needs_no_library_of_tables():
    program = (
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(name, *others):\n"
        "        if name in ('pandas', 'polars', 'pyarrow'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Hidden)\n"
        "import polysparse as p\n"
        "print(p.TableEncoder([0]).fit_transform([['a', 1.0], ['b', 2.0]]).toarray().tolist())\n"
        "p.PolynomialRidge(categorical_features=[0]).fit([['a', 1.0], ['b', 2.0]], [1, 2])"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[[1.0, 0.0, 1.0], [0.0, 1.0, 2.0]]"


@pytest.fixture
def no_pyarrow(monkeypatch):
    """Hide pyarrow from import statements."""
    given = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "pyarrow":
            raise ImportError("hidden")
        return given(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)


@pytest.mark.parametrize("dtype", [object, "string[python]", "category"])
def test_pandas_needs_no_pyarrow(no_pyarrow, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        names, _ = encoded(of_pandas(["b", None, "a"], dtype))
    assert names == ["a=a", "a=b", "a=(missing)"]


def test_polars_needs_pyarrow(no_pyarrow):
    with pytest.raises(ImportError, match="Tables of polars need pyarrow: pip install"):
        TableEncoder().fit(of_polars(["a"]))
