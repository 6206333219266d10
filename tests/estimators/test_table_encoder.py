"""TableEncoder: the columns of OneHotEncoder, for tables of every library."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from polysparse import TableEncoder
from polysparse.estimators.table_encoder import FORMAT
from polysparse.files.errors import FileFault

CITY = ["Oslo", "Rome", None, "Oslo", "São Paulo", "a=b, c\nd"]
FRAME = pd.DataFrame(
    {
        "city": pd.Series(CITY, dtype=object),
        "hours": [1.5, 0.0, 2.0, -1.0, 0.0, 3.0],
        "size": pd.Categorical([3, 7, 3, 3, 7, 2], categories=[7, 3, 2, 99]),
        "married": [True, False, True, True, False, False],
    }
)

FORMS = {
    "pandas, object": lambda: FRAME,
    "pandas, str": lambda: FRAME.assign(  # older pandas would write "None"
        city=FRAME["city"].astype("str").where(FRAME["city"].notna())
    ),
    "pandas, string": lambda: FRAME.astype({"city": "string", "hours": "Float64"}),
    "pandas, category": lambda: FRAME.astype({"city": "category", "married": "boolean"}),
    "pandas, pyarrow": lambda: FRAME.astype(
        {"city": "string[pyarrow]", "hours": "double[pyarrow]"}
    ),
    "polars": lambda: pl.DataFrame({k: _plain(v) for k, v in FRAME.items()}).with_columns(
        pl.col("size").cast(pl.String).cast(pl.Categorical)
    ),
    "polars, enum": lambda: pl.DataFrame({k: _plain(v) for k, v in FRAME.items()}).with_columns(
        pl.col("size").cast(pl.String).cast(pl.Enum(["7", "2", "3"]))
    ),
    "pyarrow": lambda: pa.table({k: _plain(v) for k, v in FRAME.items()}).set_column(
        2, "size", pa.array(_plain(FRAME["size"])).dictionary_encode()
    ),
}


def _plain(column):
    return [None if pd.isna(value) else value for value in column.astype(object)]


def one_hot(frame, **options):
    """Encode by scikit-learn, with the columns in order."""
    encode = {
        name: OneHotEncoder(**options) if name != "hours" else "passthrough" for name in frame
    }
    encoder = make_column_transformer(*((each, [name]) for name, each in encode.items()))
    return encoder.fit_transform(frame)


@pytest.mark.parametrize("form", FORMS)
def test_columns_are_those_of_one_hot_encoding(form):
    encoder = TableEncoder()
    found = encoder.fit_transform(FORMS[form]())
    assert np.array_equal(found.toarray(), np.asarray(one_hot(FRAME)))
    assert found.has_canonical_format
    names = [f"city={c}" for c in ("Oslo", "Rome", "São Paulo", "a=b, c\nd", "(missing)")]
    names += ["hours", "size=2", "size=3", "size=7", "married=False", "married=True"]
    assert list(encoder.get_feature_names_out()) == names
    assert encoder.groups_ == ["city"] * 5 + ["hours"] + ["size"] * 3 + ["married"] * 2
    assert np.array_equal(encoder.transform(FORMS[form]()).toarray(), found.toarray())


def test_numbers_are_sorted_by_value_and_texts_by_characters():
    numbers = TableEncoder([0]).fit(np.array([[10.0], [9.0], [2.5]]))
    assert list(numbers.categories_[0]) == ["2.5", "9", "10"]
    texts = TableEncoder().fit(pd.DataFrame({"x": ["10", "9", "2.5"]}))
    assert list(texts.categories_[0]) == ["10", "2.5", "9"]


def test_features_have_different_names():
    frame = pd.DataFrame({"a": ["p", "b=p"], "a=p": [1.0, 2.0], "a=b": ["p", "q"]})
    encoder = TableEncoder().fit(frame)
    names = ["a=b=p", "a=p", "(a=p)", "(a=b=p)", "a=b=q"]
    assert list(encoder.get_feature_names_out()) == names


# -------------------------------------------------------------------- the rules of OneHotEncoder

LEVELS = st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=1, max_size=25)
FREQUENCIES = st.one_of(st.none(), st.integers(1, 8), st.floats(0.05, 0.6))


@given(LEVELS, FREQUENCIES, st.one_of(st.none(), st.integers(1, 5)))
def test_rare_levels_are_those_of_one_hot_encoding(column, min_frequency, max_categories):
    frame = pd.DataFrame({"x": pd.Series(column, dtype=object)})
    options = {"min_frequency": min_frequency, "max_categories": max_categories}
    expected = OneHotEncoder(**options).fit_transform(frame)
    found = TableEncoder(**options).fit_transform(frame)
    assert np.array_equal(found.toarray(), expected.toarray())


@given(LEVELS, FREQUENCIES, st.data())
def test_batches_give_the_encoder_of_a_single_fit(column, min_frequency, data):
    frame = pd.DataFrame({"x": pd.Series(column, dtype=object)})
    frame["n"] = [None if data.draw(st.booleans()) else 2.0 for _ in column]
    frame["n"] = frame["n"].astype(float)
    options = {"min_frequency": min_frequency, "missing": "indicator"}
    whole, batches = TableEncoder(**options).fit(frame), TableEncoder(**options)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(frame)), max_size=3)))
    for start, stop in pairwise([0, *cuts, len(frame)]):
        batches.partial_fit(frame.iloc[start:stop, ::-1] if start else frame.iloc[start:stop])
    assert list(batches.get_feature_names_out()) == list(whole.get_feature_names_out())
    assert np.array_equal(batches.transform(frame).toarray(), whole.transform(frame).toarray())


NO_VALUES = {
    "polars": lambda n: pl.DataFrame({"a": [None] * n}),
    "pyarrow": lambda n: pa.table({"a": pa.nulls(n)}),
    "pandas": lambda n: pd.DataFrame({"a": pd.Series([None] * n, dtype=object)}),
}


@pytest.mark.parametrize("form", NO_VALUES)
@pytest.mark.parametrize("n_missing", [0, 2])
def test_a_column_without_values_in_the_first_batch_is_what_it_is_in_the_next(n_missing, form):
    empty, numbers = NO_VALUES[form](n_missing), pd.DataFrame({"a": [1.5, 2.5]})
    encoder = TableEncoder(missing="indicator").partial_fit(empty).partial_fit(numbers)
    names = ["a", "a=(missing)"] if n_missing else ["a"]
    assert list(encoder.get_feature_names_out()) == names
    assert encoder.partial_fit(NO_VALUES[form](1)).transform(numbers).toarray()[1, 0] == 2.5
    words = TableEncoder().partial_fit(empty).partial_fit(pd.DataFrame({"a": ["x"]}))
    assert "a=x" in words.get_feature_names_out()
    listed = TableEncoder(["a"]).partial_fit(empty).partial_fit(numbers)
    assert "a=1.5" in listed.get_feature_names_out()


def test_numbers_that_were_missing_in_earlier_batches_are_refused():
    encoder = TableEncoder().partial_fit(pl.DataFrame({"a": [None, None]}))
    with pytest.raises(ValueError, match="'a' has numbers, but is missing in the 2 rows before"):
        encoder.partial_fit(pl.DataFrame({"a": [1.5, 2.5]}))
    assert list(encoder.get_feature_names_out()) == ["a=(missing)"]


def test_unknown_levels_store_nothing_or_are_refused():
    frame = pd.DataFrame({"x": ["a", "b"]})
    new = pd.DataFrame({"x": ["a", "z", None]})
    assert TableEncoder().fit(frame).transform(new).toarray().tolist() == [[1, 0], [0, 0], [0, 0]]
    strict = TableEncoder(handle_unknown="error").fit(frame)
    with pytest.raises(ValueError, match="column 'x' has the level 'z' in row 1"):
        strict.transform(new)
    with pytest.raises(ValueError, match="column 'x' has a missing value in row 0"):
        strict.transform(new.iloc[2:])


# -------------------------------------------------------------------------------- missing numbers


def test_only_numbers_that_are_missing_in_fit_have_an_indicator():
    encoder = TableEncoder(missing="indicator").fit(pd.DataFrame({"a": [1.0, 2], "b": [np.nan, 1]}))
    assert list(encoder.get_feature_names_out()) == ["a", "b", "b=(missing)"]
    assert encoder.groups_ == ["a", "b", "b=(missing)"]
    with pytest.raises(ValueError, match="column 'a' is NaN or missing in row 1"):
        encoder.transform(pd.DataFrame({"a": [1, np.nan], "b": [0.0, 0]}))


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN or missing"), (-np.inf, "-inf")])
def test_fit_refuses_missing_and_infinite_numbers(value, what):
    frame = pd.DataFrame({"w": ["a", "b"], "n": [1.0, value]})
    encoder = TableEncoder().fit(frame.iloc[:1])
    with pytest.raises(ValueError, match=f"column 'n' is {what} in row 1"):
        encoder.fit_transform(frame)
    assert not hasattr(encoder, "n_features_in_")  # a failed fit leaves nothing


def test_an_indicator_is_a_group_of_its_own_whatever_other_columns_are_called():
    frame = pd.DataFrame({"x": [1.0, np.nan], "x=(missing)": ["u", "v"]})
    groups = TableEncoder(missing="indicator").fit(frame).groups_
    assert groups == ["x", "(x=(missing))", "x=(missing)", "x=(missing)"]


# --------------------------------------------------------------------------------- other tables


def test_columns_are_found_by_name_and_others_ignored():
    encoder = TableEncoder().fit(FRAME)
    shuffled = FRAME[["married", "size", "city", "hours"]].assign(more=1)
    assert np.array_equal(encoder.transform(shuffled).toarray(), encoder.transform(FRAME).toarray())
    with pytest.raises(ValueError, match="X lacks columns of fit: 'city', 'size'"):
        encoder.transform(FRAME[["hours", "married"]])


def test_columns_without_names_are_found_by_number_with_the_warning_of_scikit_learn():
    encoder = TableEncoder().fit(pd.DataFrame({"a": [1.0], "b": ["x"]}))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        found = encoder.transform([[2.0, "x"]])
    assert found.toarray().tolist() == [[2, 1]]
    with pytest.raises(ValueError, match="X has 3 features, but TableEncoder is expecting 2"):
        encoder.transform([[2.0, "x", 1]])


def test_no_rows_are_encoded_but_not_learned_from():
    encoder = TableEncoder().fit(FRAME)
    assert encoder.transform(FRAME.iloc[:0]).shape == (0, 11)
    assert encoder.transform(pa.table({name: pa.nulls(0) for name in FRAME})).shape == (0, 11)
    with pytest.raises(ValueError, match="Found 0 rows in X"):
        TableEncoder().fit(FRAME.iloc[:0])
    with pytest.raises(ValueError, match=r"Found 0 feature\(s\)"):
        TableEncoder().fit(FRAME[[]])


def test_a_million_levels():
    texts = [f"level {i}" for i in range(10**6)]
    encoder = TableEncoder()
    found = encoder.fit_transform(pa.table({"x": texts}))
    assert found.shape == (10**6, 10**6)
    assert found.nnz == 10**6
    assert encoder.categories_[0][found.indices[123_456]] == texts[123_456]


# ------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    "categorical", [[True, False, True, True], [0, 2, -1], ["city", "size", "married"]]
)
@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series])
def test_categorical_columns_are_a_mask_numbers_or_names(categorical, kind):
    found = TableEncoder(kind(categorical)).fit_transform(FRAME)
    assert np.array_equal(found.toarray(), TableEncoder().fit_transform(FRAME).toarray())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"categorical_features": "all"}, 'must be "from_dtype"'),
        ({"categorical_features": [True]}, "mask of length 1, but X has 4 columns"),
        ({"categorical_features": [4]}, "has 4, which is neither a name nor a number below 4"),
        ({"categorical_features": ["town"]}, "has 'town', which is not a column of X"),
        ({"categorical_features": 0}, "must be one-dimensional"),
        ({"categorical_features": ["size"]}, "column 'city' has 'Oslo' in row 0, but numbers"),
        ({"min_frequency": 0}, "min_frequency must be an int of at least 1"),
        ({"min_frequency": 1.0}, "min_frequency must be an int of at least 1"),
        ({"min_frequency": True}, "min_frequency must be an int of at least 1"),
        ({"max_categories": 0}, "max_categories must be an int of at least 1"),
        ({"missing": "drop"}, "missing must be 'error' or 'indicator'; got 'drop'"),
        ({"handle_unknown": None}, "handle_unknown must be 'ignore' or 'error'; got None"),
    ],
)
def test_invalid_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(**options).fit(FRAME)


# ---------------------------------------------------------------------------------- the inverse


def test_inverse_has_levels_numbers_and_none():
    encoder = TableEncoder(missing="indicator", min_frequency=2)
    frame = pd.DataFrame({"w": ["a", "a", "b", "c", None, None], "n": [1.5, 0, np.nan, 2, 3, 4]})
    found = encoder.inverse_transform(encoder.fit_transform(frame))
    assert found.tolist() == [
        ["a", 1.5],
        ["a", 0.0],
        ["(other)", None],
        ["(other)", 2.0],
        [None, 3.0],
        [None, 4.0],
    ]
    with pytest.raises(ValueError, match="X has 2 features, but the encoder has 5"):
        encoder.inverse_transform([[1.0, 0.0]])


# -------------------------------------------------------------------------------------- batches


def test_a_failed_batch_changes_nothing():
    encoder = TableEncoder().partial_fit(pd.DataFrame({"w": ["a"], "n": [1.0]}))
    with pytest.raises(ValueError, match="column 'n' is text, such as 'x' in row 0, but numbers"):
        encoder.partial_fit(pl.DataFrame({"w": ["b"], "n": ["x"]}))
    with pytest.raises(ValueError, match="X lacks columns of fit: 'n'"):
        encoder.partial_fit(pl.DataFrame({"w": ["b"]}))
    encoder.partial_fit(pd.DataFrame({"w": ["c"], "n": [1.0]}))
    assert list(encoder.get_feature_names_out()) == ["w=a", "w=c", "n"]


# ---------------------------------------------------------------------------------------- files

AWKWARD = [
    "",
    " ",
    "a b",
    "a\nb",
    "=",
    ",",
    '"',
    "ß",
    "日本",
    "\x00",
    "\ud800",
    "1",
    "1.0",
    "(missing)",
]


def test_files_keep_awkward_levels_and_parameters(tmp_path):
    frame = pd.DataFrame({"w": pd.Series([*AWKWARD, None], dtype=object), "n": 1.0})
    frame.loc[0, "n"] = np.nan
    encoder = TableEncoder(np.array(["w"]), missing="indicator", max_categories=100).fit(frame)
    encoder.save(tmp_path / "encoder.npz")
    again = TableEncoder.load(tmp_path / "encoder.npz")
    assert again.get_params() == encoder.get_params() | {"categorical_features": ["w"]}
    assert list(again.get_feature_names_out()) == list(encoder.get_feature_names_out())
    assert "w=((missing))" in again.get_feature_names_out()  # a level has its name
    assert np.array_equal(again.transform(frame).toarray(), encoder.transform(frame).toarray())
    with pytest.raises(ValueError, match=r"loaded from a file, .*call fit"):
        again.partial_fit(frame)


def _write(path, encoding, parameters=None):
    with open(path, "wb") as file:
        FORMAT.write(file, {"encoding": encoding, "parameters": parameters or {}}, {})


NUMBER = {"kind": "numeric", "name": "n", "has_indicator": False}
WORD = {"kind": "categorical", "name": "w", "levels": ["a"], "rare": [], "missing": None}


@pytest.mark.parametrize(
    "variables",
    [
        None,
        5,
        [5],
        [{}],
        [{"kind": "date", "name": "n"}],
        [NUMBER | {"has_indicator": 1}],
        [NUMBER | {"name": None}],
        [NUMBER | {"more": 1}],
        [NUMBER, NUMBER],
        [WORD | {"levels": "abc"}],
        [WORD | {"levels": ["a", "a"]}],
        [WORD | {"rare": ["a"]}],
        [WORD | {"levels": [1]}],
        [WORD | {"levels": [["a"]]}],
        [WORD | {"levels": 10**12}],
        [WORD | {"missing": "yes"}],
        [WORD | {"by_value": 1}],
        [WORD | {"missing": ["level"]}],
        [WORD | {"name": 3}],
        [{key: value for key, value in WORD.items() if key != "rare"}],
    ],
)
def test_damaged_files_are_refused(tmp_path, variables):
    path = tmp_path / "encoder.npz"
    _write(path, {"variables": variables, "are_named": True, "is_strict": False})
    with pytest.raises(FileFault, match=r"encoder.npz is damaged"):
        TableEncoder.load(path)


@pytest.mark.parametrize(
    ("flags", "parameters"),
    [
        ({"are_named": 1, "is_strict": False}, {}),
        ({"are_named": True}, {}),
        ({"are_named": True, "is_strict": False}, {"min_frequency": "x"}),
        ({"are_named": True, "is_strict": False}, {"degree": 2}),
        ({"are_named": True, "is_strict": False}, {"categorical_features": [{}]}),
        ({"are_named": True, "is_strict": False}, {"categorical_features": "x"}),
    ],
)
def test_damaged_settings_are_refused(tmp_path, flags, parameters):
    path = tmp_path / "encoder.npz"
    _write(path, {"variables": [WORD], **flags}, parameters)
    with pytest.raises(FileFault, match=r"encoder.npz is damaged"):
        TableEncoder.load(path)


def test_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "encoder.npz"
    TableEncoder().fit(FRAME).save(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FileFault, match="is not a table-encoder of polysparse, or is damaged"):
        TableEncoder.load(path)


# --------------------------------------------------------------------------------- scikit-learn


def expected_to_fail(estimator):
    """Return checks that fail for every estimator whose input is categorical and has no NaN."""
    is_new = parse_version(sklearn.__version__) >= parse_version("1.7")
    if is_new or estimator.missing == "indicator":
        return {}
    return {"check_positive_only_tag_during_fit": "it subtracts a mean from integers"}


@parametrize_with_checks(
    [TableEncoder(), TableEncoder(missing="indicator")], expected_failed_checks=expected_to_fail
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_clones_and_pickles():
    encoder = TableEncoder(["city", "size", "married"], min_frequency=2).fit(FRAME)
    again = pickle.loads(pickle.dumps(encoder))
    assert np.array_equal(again.transform(FRAME).toarray(), encoder.transform(FRAME).toarray())
    assert not hasattr(clone(encoder), "n_features_in_")
    assert clone(encoder).get_params() == encoder.get_params()


def test_output_stays_sparse_as_that_of_one_hot_encoding():
    encoder = TableEncoder().set_output(transform="pandas")
    with pytest.raises(ValueError, match="sparse"):
        encoder.fit_transform(FRAME)


def test_threads_may_transform_at_once():
    encoder = TableEncoder().fit(FRAME)
    expected = encoder.transform(FRAME).toarray()
    again = pickle.loads(pickle.dumps(encoder))  # without what is computed at the first call
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(again.transform, [FRAME] * 20):
            assert np.array_equal(found.toarray(), expected)
