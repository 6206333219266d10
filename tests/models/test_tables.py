"""Models of tables: those of the encoded rows with groups, bit for bit."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialLogisticRegression,
    PolynomialRidge,
    TableEncoder,
    load_model,
)
from polysparse.files.errors import FileFault
from polysparse.files.model_file import ModelFile

RNG = np.random.default_rng(0)
N = 120
FRAME = pd.DataFrame(
    {
        "city": RNG.choice(["Oslo", "Rome", "a=b, c\n"], N),
        "hours": RNG.normal(size=N).round(2),
        "married": RNG.random(N) < 0.5,
        "n": RNG.integers(0, 3, N),
    }
)
Y = np.asarray((FRAME.city == "Oslo") * FRAME.hours + FRAME.married, float)
CLASSES = np.where(Y > 0.3, "yes", "no")
ENCODER = TableEncoder().fit(FRAME)
ENCODED = ENCODER.transform(FRAME)
EXPECTED = PolynomialRidge(groups=ENCODER.groups_).fit(ENCODED, Y).predict(ENCODED)


@pytest.mark.parametrize(
    "categorical",
    [
        "from_dtype",
        [True, False, True, False],
        np.array([0, 2]),
        ["city", "married"],
        TableEncoder(),
        TableEncoder(["city", "married"], missing="indicator"),
        ENCODER,
    ],
    ids=str,
)
def test_a_table_gives_the_model_of_its_encoded_rows(categorical, tmp_path):
    model = PolynomialRidge(categorical_features=categorical).fit(FRAME, Y)
    forms = FRAME, FRAME.iloc[:, ::-1].assign(more=1), pl.from_pandas(FRAME)
    for table in (*forms, pa.Table.from_pandas(FRAME), ENCODED):
        assert np.array_equal(model.predict(table), EXPECTED)
    assert (model.n_features_in_, list(model.feature_names_in_)) == (4, list(FRAME))
    model.save(tmp_path / "model.npz")
    for again in (load_model(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(again.predict(FRAME), EXPECTED)
        assert list(again.feature_names_in_) == list(FRAME)
        assert np.array_equal(again.fit(FRAME, Y).predict(FRAME), EXPECTED)  # the same parameters


@pytest.mark.parametrize(
    "columns",
    [
        "observed",
        "hashed",
        [0, 3, 9],
        ObservedPolynomialFeatures(min_count=5),
        HashedPolynomialFeatures(n_columns=64),
        ObservedPolynomialFeatures(categorical_features=ENCODER).fit(FRAME),
    ],
    ids=str,
)
def test_columns_of_a_table(columns, tmp_path):
    same = columns
    if hasattr(columns, "groups") and not hasattr(columns, "n_features_in_"):
        same = type(columns)(**columns.get_params() | {"groups": ENCODER.groups_})
    expected = PolynomialRidge(columns=same, groups=ENCODER.groups_).fit(ENCODED, Y)
    model = PolynomialRidge(columns=columns).fit(FRAME, Y)
    assert np.array_equal(model.coef_, expected.coef_)
    model.save(tmp_path / "model.npz")
    found = load_model(tmp_path / "model.npz").predict(FRAME)
    assert np.array_equal(found, expected.predict(ENCODED))


def test_models_are_read_by_variables_and_levels(tmp_path):
    model = PolynomialLogisticRegression(terms=["city*hours", "married"]).fit(FRAME, CLASSES)
    assert list(model.classes_) == ["no", "yes"]
    assert set(model.importance()["name"]) == {"city", "hours", "married", "city:hours"}
    within = model.top_terms(9, within=("city", "hours"))
    assert set(within["name"]) == {f"city={c} hours" for c in ("Oslo", "Rome", "a=b, c\n")}
    total = model.contributions(FRAME.iloc[:1])["contribution"].sum() + model.intercept_[0]
    assert np.isclose(total, model.decision_function(FRAME.iloc[:1])[0])
    model.to_text(tmp_path / "model.txt")
    assert "city=Oslo hours" in (tmp_path / "model.txt").read_text()


def test_scikit_learn_searches_and_validates_tables():
    model = PolynomialLogisticRegression(categorical_features=TableEncoder())
    search = GridSearchCV(model, {"categorical_features__min_frequency": [1, N]}, cv=3)
    search.fit(FRAME, CLASSES)
    assert search.best_params_ == {"categorical_features__min_frequency": 1}
    for table in (FRAME, pl.from_pandas(FRAME)):
        scores = cross_val_score(model, table, CLASSES, cv=3, error_score="raise")
        assert scores.mean() > 0.8
    piped = make_pipeline(TableEncoder(), PolynomialRidge(groups=ENCODER.groups_)).fit(FRAME, Y)
    assert np.array_equal(piped.predict(FRAME), EXPECTED)


def test_weights_count_as_repeated_rows():
    twice = pd.concat([FRAME, FRAME.iloc[:40]])
    weights = np.repeat([2.0, 1.0], [40, N - 40])
    model = PolynomialRidge(tol=1e-10).fit(FRAME, Y, sample_weight=weights)
    other = PolynomialRidge(tol=1e-10).fit(twice, np.concatenate([Y, Y[:40]]))
    assert np.allclose(model.predict(FRAME), other.predict(FRAME), atol=1e-6)


def test_nothing_is_left_of_the_last_fit():
    model = PolynomialRidge().fit(FRAME, Y)
    model.fit(FRAME[["hours", "n"]].to_numpy(), Y)
    assert model.n_features_in_ == 2
    assert not hasattr(model, "table_encoder_")
    assert not hasattr(model, "feature_names_in_")
    model.fit(FRAME, Y)
    with pytest.raises(ValueError, match="column 'hours' is inf in row 0"):
        model.fit(FRAME.assign(hours=np.inf), Y)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_a_frame_whose_columns_are_all_sparse_is_a_matrix():
    frame = pd.get_dummies(FRAME[["city"]], sparse=True)
    model = PolynomialRidge(interaction_only=True).fit(frame, Y)
    assert not hasattr(model, "table_encoder_")
    assert set(model.top_terms(3)["name"]) <= set(frame.columns)
    expected = (
        PolynomialRidge(interaction_only=True).fit(frame.to_numpy(), Y).predict(frame.to_numpy())
    )
    np.testing.assert_allclose(model.predict(frame), expected)
    names = TableEncoder().fit(frame).get_feature_names_out()
    assert len(names) == 2 * frame.shape[1]  # for a TableEncoder, each column is a variable


def test_refusals_name_what_is_wrong():
    model = PolynomialRidge().fit(FRAME, Y)
    with pytest.raises(ValueError, match="X lacks columns of fit: 'city'"):
        model.predict(FRAME.drop(columns="city"))
    with pytest.raises(TypeError, match=r"call X.collect\(\)"):
        PolynomialRidge().fit(pl.from_pandas(FRAME).lazy(), Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PolynomialRidge().fit(FRAME, Y[:5])
    with pytest.raises(ValueError, match="groups only applies to X without categories"):
        PolynomialRidge(groups=[0, 1, 2, 3]).fit(FRAME, Y)
    with pytest.raises(ValueError, match=r"convert string to float.*X has text: set"):
        PolynomialRidge(categorical_features=None).fit(FRAME, Y)
    with pytest.raises(ValueError, match="X has text: set categorical_features"):
        PolynomialFeatures().fit(FRAME)
    with pytest.raises(ValueError, match=r"'hours' is NaN.*TableEncoder\(missing=\"indicator\"\)"):
        model.predict(FRAME.assign(hours=np.nan))


@pytest.mark.filterwarnings("ignore:elementwise comparison failed")  # by NumPy 1.24, of pandas.NA
@pytest.mark.parametrize("X", [FRAME, FRAME[["hours"]], FRAME[["hours"]].to_numpy()])
def test_targets_that_are_words_or_missing_are_refused_with_a_way_out(X):
    words = CLASSES.astype(object)
    with pytest.raises(ValueError, match=r"string to float: '(yes|no)'\. y must be numbers"):
        PolynomialRidge().fit(X, words)
    words[2] = None
    for targets in (words, pd.Series(words, dtype="string")):
        with pytest.raises(ValueError, match="y contains NaN, or a missing value, in row 2"):
            PolynomialLogisticRegression().fit(X, targets)
    with pytest.raises(ValueError, match="y contains NaN, or a missing value, in row 1"):
        PolynomialRidge().fit(X, np.where(np.arange(len(Y)) == 1, np.nan, Y))


def test_a_fitted_encoder_is_saved_as_such(tmp_path):
    path = tmp_path / "model.npz"
    PolynomialRidge(categorical_features=ENCODER).fit(FRAME, Y).save(path)
    few = load_model(path).fit(FRAME[:9], Y[:9])
    assert few.table_encoder_.groups_ == ENCODER.groups_
    ObservedPolynomialFeatures(categorical_features=ENCODER).fit(FRAME).save(path)
    poly = ObservedPolynomialFeatures.load(path).partial_fit(FRAME.assign(city="Bern"))
    assert poly.table_encoder_.groups_ == ENCODER.groups_


@pytest.mark.parametrize(
    "damage",
    [
        lambda table: table["variables"].pop(),
        lambda table: table["variables"][0]["levels"].append("more"),
        lambda table: table["variables"].reverse(),
        lambda table: table.pop("are_named"),
        lambda table: table.update(variables=10**12),
    ],
)
def test_damaged_levels_are_refused(damage, tmp_path):
    path = tmp_path / "model.npz"
    PolynomialRidge().fit(FRAME, Y).save(path)
    file = ModelFile.read(path)
    damage(file.more["table"])
    file.write(path)
    with pytest.raises(FileFault, match=r"model.npz is damaged"):
        load_model(path)
