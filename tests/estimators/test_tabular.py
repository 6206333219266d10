"""Transformers that take tables: the features of TableEncoder, with its groups."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialFTRLRegressor,
    PolynomialRidge,
    TableEncoder,
)

TRANSFORMERS = PolynomialFeatures, ObservedPolynomialFeatures, HashedPolynomialFeatures
FRAME = pd.DataFrame(
    {
        "city": ["Oslo", "Rome", "Oslo", None, "a=b, c"],
        "hours": [1.5, 0.0, -2.0, 3.0, 1.0],
        "married": [True, False, False, True, True],
    }
)
ENCODER = TableEncoder().fit(FRAME)
ENCODED = ENCODER.transform(FRAME)
NUMBERS = FRAME[["hours"]].assign(n=[1.0, 2, 3, 4, 5])

each_transformer = pytest.mark.parametrize("make", TRANSFORMERS)


def is_same(a, b):
    return a.shape == b.shape and abs(a - b).nnz == 0


@each_transformer
@pytest.mark.parametrize(
    "categorical",
    ["from_dtype", [True, False, True], [0, 2], ["city", "married"], TableEncoder(), ENCODER],
    ids=str,
)
def test_a_table_becomes_the_expansion_of_its_encoded_rows(make, categorical):
    poly = make(3, categorical_features=categorical).fit(FRAME)
    expected = make(3, groups=ENCODER.groups_).fit(ENCODED).transform(ENCODED)
    assert is_same(poly.transform(FRAME), expected)
    assert is_same(poly.transform(pl.from_pandas(FRAME)[:, ::-1]), expected)
    assert is_same(poly.transform(ENCODED), expected)  # rows that are encoded already
    assert poly.n_features_in_ == 3
    assert list(poly.feature_names_in_) == list(FRAME)


@pytest.mark.parametrize("make", [PolynomialFeatures, ObservedPolynomialFeatures])
def test_names_have_the_levels(make):
    poly = make(categorical_features="from_dtype", include_bias=False).fit(FRAME)
    names = list(poly.get_feature_names_out())
    assert names[:5] == ["city=Oslo", "city=Rome", "city=a=b, c", "city=(missing)", "hours"]
    assert "city=Oslo married=True" in names
    assert "hours^2" in names
    assert "married=False married=True" not in names
    array = make(categorical_features=[0], include_bias=False).fit(FRAME.to_numpy(object)[:, :2])
    assert list(array.get_feature_names_out())[:2] == ["x0=Oslo", "x0=Rome"]


@each_transformer
def test_terms_name_variables(make):
    poly = make(terms=["city:hours"], categorical_features="from_dtype").fit(FRAME)
    same = make(terms=["city:hours"], groups=ENCODER.groups_).fit(ENCODED)
    assert is_same(poly.transform(FRAME), same.transform(ENCODED))


@each_transformer
def test_groups_contradict_a_table(make):
    poly = make(groups=[0, 1, 2], categorical_features="from_dtype")
    with pytest.raises(ValueError, match="groups only applies to X without categories"):
        poly.fit(FRAME)


@each_transformer
def test_an_encoder_is_not_changed_and_does_not_change_the_transformer(make):
    unfitted = TableEncoder()
    make(categorical_features=unfitted).fit(FRAME)
    assert not hasattr(unfitted, "n_features_in_")
    fitted = TableEncoder().fit(FRAME)
    poly = make(categorical_features=fitted).fit(FRAME)
    before = poly.transform(FRAME)
    fitted.partial_fit(FRAME.assign(city="A"))
    assert is_same(poly.transform(FRAME), before)


@each_transformer
def test_a_table_of_numbers_is_checked_by_scikit_learn(make):
    poly = make(categorical_features="from_dtype").fit(NUMBERS)
    assert not hasattr(poly, "table_encoder_")
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        poly.transform(NUMBERS[["n", "hours"]])


DAYS = pd.date_range("2020", periods=5)
REFUSED = {
    "dates": (NUMBERS[["hours"]].assign(n=DAYS), r"'n' is (datetime64|timestamp).*convert it"),
    "durations": (NUMBERS[["hours"]].assign(n=DAYS - DAYS[0]), "'n' is (timedelta|duration)"),
    "a missing number": (NUMBERS.assign(n=[1, 2, np.nan, 4, 5]), "'n' is NaN or missing in row 2"),
    "an infinite number": (NUMBERS.assign(n=[1, 2, np.inf, 4, 5]), "'n' is inf in row 2"),
}


@pytest.mark.parametrize("form", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("make", [*TRANSFORMERS, PolynomialFTRLRegressor, PolynomialRidge])
@pytest.mark.parametrize("categorical", ["from_dtype", None])
def test_a_table_without_categories_is_refused_by_column_and_row(categorical, make, what, form):
    table, message = REFUSED[what]
    model = make(categorical_features=categorical)
    use = getattr(model, "transform", None) or model.predict
    y = np.arange(5.0)
    with pytest.raises(ValueError, match=f"column {message}"):
        model.fit(form(table), y).transform(form(table))
    model.fit(form(NUMBERS), y)
    with pytest.raises(ValueError, match=f"column {message}"):
        use(form(table))


@each_transformer
def test_nothing_is_left_of_the_last_fit(make):
    poly = make(categorical_features="from_dtype").fit(FRAME)
    poly.fit(NUMBERS.to_numpy())
    assert poly.n_features_in_ == 2
    assert not hasattr(poly, "table_encoder_")
    assert not hasattr(poly, "feature_names_in_")
    poly.fit(FRAME)
    assert poly.n_features_in_ == 3
    assert is_same(poly.transform(FRAME), make(categorical_features=ENCODER).fit_transform(FRAME))


@each_transformer
def test_invalid_values_are_refused_for_sparse_data_too(make):
    with pytest.raises(ValueError, match='categorical_features must be "from_dtype"'):
        make(categorical_features="dtype").fit(ENCODED)
    with pytest.raises(ValueError, match="needs a table or an array, but X is sparse"):
        make(categorical_features=[0]).fit(ENCODED)
    with pytest.raises(ValueError, match=r"X has 2 features and is not a table.* became 7"):
        make(categorical_features="from_dtype").fit(FRAME).transform(ENCODED[:, :2])


@each_transformer
def test_levels_have_to_be_learned_first(make):
    with pytest.raises(NotFittedError):
        make(categorical_features="from_dtype").transform(FRAME)


def test_hashed_columns_of_a_table_can_be_found_by_name():
    poly = HashedPolynomialFeatures(categorical_features="from_dtype")
    with pytest.raises(NotFittedError, match="call fit first"):
        poly.collisions(FRAME)
    poly.fit(FRAME)
    assert poly.collisions(FRAME).n_sharing == 0
    column = poly.column_of(("city=Rome", "married=False"))
    assert poly.transform(FRAME)[1, column] != 0


# ----------------------------------------------------------------------- batches and vocabularies


def test_batches_of_a_table_count_as_a_single_fit():
    poly = ObservedPolynomialFeatures(categorical_features=ENCODER)
    whole = ObservedPolynomialFeatures(categorical_features=ENCODER).fit(FRAME)
    for start in range(0, len(FRAME), 2):
        poly.partial_fit(FRAME.iloc[start : start + 2])
    assert np.array_equal(poly.counts_, whole.counts_)
    first = ObservedPolynomialFeatures(categorical_features=ENCODER).fit(FRAME.iloc[:2])
    rest = ObservedPolynomialFeatures(categorical_features=ENCODER).fit(FRAME.iloc[2:])
    assert np.array_equal(first.merge(rest).counts_, whole.counts_)
    empty = ObservedPolynomialFeatures(categorical_features=ENCODER)
    assert is_same(empty.merge(whole).transform(FRAME), whole.transform(FRAME))


def test_new_levels_in_a_batch_are_not_silently_dropped():
    poly = ObservedPolynomialFeatures(categorical_features="from_dtype").partial_fit(FRAME)
    with pytest.raises(ValueError, match=r"the level 'Bonn' in row 0.*fit a TableEncoder to all"):
        poly.partial_fit(FRAME.assign(city="Bonn"))
    poly.partial_fit(FRAME)
    assert np.array_equal(poly.counts_[:1], [2 * len(FRAME)])


def test_a_vocabulary_keeps_the_levels(tmp_path):
    poly = ObservedPolynomialFeatures(categorical_features="from_dtype", min_count=2).fit(FRAME)
    poly.save(tmp_path / "vocabulary.npz")
    again = ObservedPolynomialFeatures.load(tmp_path / "vocabulary.npz")
    assert is_same(again.transform(FRAME), poly.transform(FRAME))
    assert list(again.get_feature_names_out()) == list(poly.get_feature_names_out())
    assert list(again.feature_names_in_) == list(FRAME)
    assert is_same(again.fit(FRAME).transform(FRAME), poly.transform(FRAME))
