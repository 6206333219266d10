"""TableEncoder: the columns of OneHotEncoder, for tables of every library."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder

from polysparse import TableEncoder

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
    "pandas, str": lambda: FRAME.astype({"city": "str"}),
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
