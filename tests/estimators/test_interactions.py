"""InteractionTransformer: encoded variables interact, and outputs of one variable do not."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

import polysparse
from polysparse import (
    HashedPolynomialFeatures,
    InteractionTransformer,
    ObservedPolynomialFeatures,
    groups_from,
)

pd = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
DATA = pd.DataFrame(
    {
        "sex": RNG.choice(["f", "m"], 80),
        "city": RNG.choice(list("abc"), 80),
        "age": RNG.standard_normal(80),
    }
)
ENCODERS = [("levels", OneHotEncoder(), ["sex", "city"]), ("numbers", "passthrough", ["age"])]


def encoded():
    encoder = ColumnTransformer(ENCODERS, sparse_threshold=1.0).fit(DATA)
    return encoder.transform(DATA), groups_from(encoder)


@pytest.mark.parametrize("columns", ["all", "observed", "hashed"])
@pytest.mark.parametrize("degree", [2, 3, (2, 2)], ids=str)
def test_outputs_are_those_of_expand_with_groups(columns, degree):
    X, groups = encoded()
    made = InteractionTransformer(ENCODERS, degree=degree, columns=columns).fit(DATA)
    wanted = polysparse.expand(
        X, degree, groups=groups, include_bias=False, columns=None if columns == "all" else columns
    )
    for out in (made.transform(DATA), clone(made).fit_transform(DATA)):
        assert sparse.issparse(out)
        assert (out != wanted).nnz == 0


def test_outputs_are_named_by_variable():
    made = InteractionTransformer(ENCODERS, interaction_only=True).fit(DATA)
    assert made.groups_ == ["sex"] * 2 + ["city"] * 3 + ["age"]
    names = made.get_feature_names_out()
    assert len(names) == 6 + 2 * 3 + 2 + 3
    assert {"sex_f city_a", "city_c age"} <= set(names)
    assert made.feature_names_in_.tolist() == ["sex", "city", "age"]
    assert made.n_features_in_ == 3


def test_terms_choose_variables():
    made = InteractionTransformer(ENCODERS, terms=["sex:age", "city"]).fit(DATA)
    assert made.get_feature_names_out().tolist() == [
        "city_a",
        "city_b",
        "city_c",
        "sex_f age",
        "sex_m age",
    ]
    with pytest.raises(ValueError, match="Did you mean 'city'"):
        InteractionTransformer(ENCODERS, terms=["cities"]).fit(DATA)


def test_numbers_alone_give_sparse_output():
    made = InteractionTransformer([("splines", SplineTransformer(2, degree=1), ["age"])])
    assert sparse.issparse(made.fit_transform(DATA))


def test_columns_may_be_a_transformer_which_stays_as_it_is():
    observed = ObservedPolynomialFeatures(5, min_count=10)
    made = InteractionTransformer(ENCODERS, columns=observed).fit(DATA)
    assert made.features_.min_count == 10
    assert made.features_.degree == 2
    assert observed.groups is None
    assert not hasattr(observed, "n_features_in_")
    hashed = InteractionTransformer(ENCODERS, columns=HashedPolynomialFeatures(n_columns=64))
    assert hashed.fit_transform(DATA).shape == (80, 64)
    assert len(hashed.get_feature_names_out()) == 64


def test_it_is_searched_and_piped():
    y = (DATA["sex"] == "f") ^ (DATA["city"] == "a")
    encoders = ColumnTransformer(ENCODERS)
    pipeline = make_pipeline(InteractionTransformer(encoders), LogisticRegression())
    grid = {
        "interactiontransformer__degree": [1, 2],
        "interactiontransformer__transformers__levels__drop": [None, "first"],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(DATA, y)
    assert search.best_params_["interactiontransformer__degree"] == 2
    assert search.best_score_ > 0.95
    assert not hasattr(encoders, "transformers_")


def test_unseen_levels_store_nothing():
    encoders = [("levels", OneHotEncoder(handle_unknown="ignore"), ["sex", "city"])]
    made = InteractionTransformer(encoders).fit(DATA)
    row = pd.DataFrame({"sex": ["f"], "city": ["elsewhere"], "age": [0.0]})
    assert made.transform(row).nnz == 1


def test_columns_of_encoders_may_be_an_index():
    listed = InteractionTransformer([("levels", OneHotEncoder(), ["sex", "city"])])
    indexed = InteractionTransformer([("levels", OneHotEncoder(), DATA.columns[:2])])
    assert (indexed.fit_transform(DATA) != listed.fit_transform(DATA)).nnz == 0
    assert indexed.groups_ == ["sex"] * 2 + ["city"] * 3


@pytest.mark.parametrize("is_pipeline", [False, True])
@pytest.mark.parametrize("output", ["default", "pandas"])
def test_texts_interact(is_pipeline, output):
    words = CountVectorizer()
    data = DATA.assign(text=["red car", "blue car"] * 40)
    encoders = [
        ("words", make_pipeline(words, TfidfTransformer()) if is_pipeline else words, "text"),
        ("levels", OneHotEncoder(), ["sex"]),
        ("numbers", "passthrough", ["age"]),
    ]
    with config_context(transform_output=output):
        made = InteractionTransformer(encoders, interaction_only=True).fit(data)
    assert sparse.issparse(made.transform(data))
    assert made.groups_ == ["text"] * 3 + ["sex"] * 2 + ["age"]
    assert "blue sex_f" in made.get_feature_names_out()


def test_output_settings_of_encoders_are_not_used():
    encoders = ColumnTransformer([("levels", OneHotEncoder(sparse_output=False), ["sex", "city"])])
    wanted = InteractionTransformer(encoders).fit_transform(DATA)
    encoders.set_output(transform="pandas")
    assert (InteractionTransformer(encoders).fit_transform(DATA) != wanted).nnz == 0


def test_numbers_may_be_objects():
    numbers = np.array([[1, 2.5], [0, 3]], dtype=object)
    made = InteractionTransformer([("numbers", "passthrough", [0, 1])], interaction_only=True)
    assert made.fit_transform(numbers).toarray().tolist() == [[1, 2.5, 2.5], [0, 3, 0]]
    numbers[1, 0] = "red"
    for refused in (made.transform, made.fit):
        with pytest.raises(ValueError, match=r"must return numbers.*'red'.*OneHotEncoder"):
            refused(numbers)


@pytest.mark.parametrize(("n_jobs", "wanted"), [(None, 1), (2, 2)])
def test_n_jobs_is_that_of_columns_unless_given(n_jobs, wanted):
    columns = ObservedPolynomialFeatures(n_jobs=1)
    made = InteractionTransformer(ENCODERS, columns=columns, n_jobs=n_jobs).fit(DATA)
    assert made.features_.n_jobs == wanted


def test_names_of_a_variable_that_is_encoded_twice_are_unambiguous():
    encoders = [("plain", "passthrough", ["age"]), ("scaled", StandardScaler(), ["age"])]
    made = InteractionTransformer(encoders).fit(DATA)
    names = ["plain__age", "scaled__age"]
    assert made.get_feature_names_out().tolist()[:2] == names
    assert made.groups_ == ["age"] * 2
    assert made.column_transformer_.verbose_feature_names_out is False
    with pytest.raises(ValueError, match="feature_names_in_"):
        made.get_feature_names_out(["sex", "city", "years"])


@pytest.mark.parametrize("transformers", [[], None, OneHotEncoder(), [OneHotEncoder()]], ids=repr)
def test_transformers_must_be_a_list_of_encoders(transformers):
    with pytest.raises(ValueError, match="transformers must be a ColumnTransformer or a non-empty"):
        InteractionTransformer(transformers).fit(DATA)


@pytest.mark.parametrize(
    "transformers",
    [ColumnTransformer([]), [("none", OneHotEncoder(), [])], [("dropped", "drop", ["sex"])]],
    ids=["no encoder", "no column", "dropped"],
)
def test_transformers_must_have_outputs(transformers):
    with pytest.raises(ValueError, match="transformers have no output features"):
        InteractionTransformer(transformers).fit(DATA)


def test_what_is_wrong_is_refused():
    with pytest.raises(NotFittedError):
        InteractionTransformer(ENCODERS).transform(DATA)
    with pytest.raises(ValueError, match='columns must be "all", "observed", "hashed"'):
        InteractionTransformer(ENCODERS, columns="every").fit(DATA)
    made = InteractionTransformer(ENCODERS).fit(DATA)
    with pytest.raises(ValueError, match="degree"):
        made.set_params(degree=-1).fit(DATA)
    with pytest.raises(NotFittedError):  # a failed fit leaves nothing behind
        made.transform(DATA)
    assert not hasattr(InteractionTransformer(ENCODERS), "feature_names_in_")
