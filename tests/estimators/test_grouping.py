"""groups_from: the variable of each output, for the transformers that people use."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from polysparse import InteractionTransformer, TableEncoder, groups_from

TEXTS = np.array(
    [["m", "a"], ["f", "b"], ["f", "c"], ["f", "c"], ["m", "c"], ["f", "c"]], dtype=object
)
NUMBERS = np.random.default_rng(0).standard_normal((30, 3))


def frame(n=30):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "city": rng.choice(list("abcd"), n),
            "age": rng.standard_normal(n),
            "hours": rng.standard_normal(n),
        }
    )


@pytest.mark.parametrize(
    ("encoder", "groups"),
    [
        (OneHotEncoder(), "00111"),
        (OneHotEncoder(drop="first"), "011"),
        (OneHotEncoder(drop="if_binary"), "0111"),
        (OneHotEncoder(min_frequency=2), "0011"),
        (OneHotEncoder(max_categories=2), "0011"),
        (OneHotEncoder(drop=["m", "c"], min_frequency=2), "01"),
        (OneHotEncoder(categories=[["f", "m", "x"], ["a", "b", "c", "d"]]), "0001111"),
        (OrdinalEncoder(), "01"),
    ],
    ids=repr,
)
def test_encoders_of_categories(encoder, groups):
    encoder.fit(TEXTS)
    assert groups_from(encoder) == [f"x{j}" for j in groups]
    assert len(groups) == encoder.transform(TEXTS).shape[1]


@pytest.mark.parametrize(
    ("transformer", "groups"),
    [
        (StandardScaler(), "012"),
        (KBinsDiscretizer([2, 3, 4], strategy="uniform"), "001112222"),
        (KBinsDiscretizer(3, encode="ordinal", strategy="uniform"), "012"),
        (SplineTransformer(3, degree=1), "000111222"),
        (SplineTransformer(3, degree=1, include_bias=False), "001122"),
        (make_pipeline(StandardScaler(), SplineTransformer(2, degree=1)), "001122"),
        (
            FeatureUnion([("a", StandardScaler()), ("b", SplineTransformer(2, degree=1))]),
            "012001122",
        ),
        (FeatureUnion([("a", "passthrough"), ("b", "drop")]), "012"),
        (make_pipeline(SelectKBest(k=2), SplineTransformer(2, degree=1)), None),
        (FunctionTransformer(np.exp, feature_names_out="one-to-one"), "012"),
    ],
    ids=lambda each: None if isinstance(each, str) else type(each).__name__,
)
def test_transformers_of_numbers(transformer, groups):
    transformer.fit(NUMBERS, NUMBERS[:, 0] > 0)
    if groups is None:
        chosen = transformer[0].get_support(indices=True)
        groups = "".join(2 * str(j) for j in chosen)
    assert groups_from(transformer) == [f"x{j}" for j in groups]
    assert len(groups) == transformer.transform(NUMBERS).shape[1]


def test_missing_values_are_of_the_variable_that_misses_them():
    X = NUMBERS.copy()
    X[3, 1] = np.nan
    imputer = SimpleImputer(add_indicator=True).fit(X)
    assert groups_from(imputer) == ["x0", "x1", "x2", "x1"]


@pytest.mark.parametrize(
    "verbose", [True, False], ids=["names with prefixes", "names without prefixes"]
)
@pytest.mark.parametrize(
    "numbers",
    [["age", "hours"], slice("age", "hours"), [2, 3], [False, False, True, True], slice(2, 4)],
)
def test_columns_of_a_frame_are_named(numbers, verbose):
    data = frame()
    encoder = ColumnTransformer(
        [
            ("levels", OneHotEncoder(), ["city", "sex"]),
            ("unused", "drop", ["age"]),
            ("splines", make_pipeline(StandardScaler(), SplineTransformer(2, degree=1)), numbers),
            ("selected", OneHotEncoder(), make_column_selector("sex")),
        ],
        verbose_feature_names_out=verbose,
    )
    if not verbose:
        encoder.set_params(transformers=encoder.transformers[:3])
    encoder.fit(data)
    wanted = ["city"] * 4 + ["sex"] * 2 + ["age"] * 2 + ["hours"] * 2 + ["sex"] * 2 * verbose
    assert groups_from(encoder) == wanted
    assert len(wanted) == encoder.transform(data).shape[1]


@pytest.mark.filterwarnings("ignore:(?s).*the remainder:FutureWarning")  # of scikit-learn 1.6
def test_the_remainder_is_of_its_own_variables():
    encoder = ColumnTransformer([("levels", OneHotEncoder(), ["city"])], remainder="passthrough")
    encoder.fit(frame().drop(columns="sex"))
    assert groups_from(encoder) == ["city"] * 4 + ["age", "hours"]


def test_one_column_of_text_is_one_variable():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    encoder = ColumnTransformer([("words", text.CountVectorizer(analyzer="char"), "city")])
    encoder.fit(frame())
    assert groups_from(encoder) == ["city"] * 4


def test_column_transformers_are_nested():
    inner = ColumnTransformer([("levels", OneHotEncoder(), [1])], remainder="passthrough")
    outer = ColumnTransformer(
        [("inner", inner, ["age", "city"]), ("sex", OneHotEncoder(), ["sex"])]
    )
    assert groups_from(outer.fit(frame())) == ["city"] * 4 + ["age"] + ["sex"] * 2


@pytest.mark.parametrize("kind", ["Index", "Series", "booleans", "array", "objects"])
def test_columns_are_selected_by_any_sequence(kind):
    pd = pytest.importorskip("pandas")
    data = frame()
    chosen = {
        "Index": data.columns[:2],
        "Series": pd.Series(["sex", "city"]),
        "booleans": pd.Series([True, True, False, False], dtype="boolean"),
        "array": np.array(["sex", "city"]),
        "objects": np.array([0, 1], dtype=object),
    }[kind]
    encoder = ColumnTransformer([("levels", OneHotEncoder(), ["sex", "city"])]).fit(data)
    (name, fitted, _) = encoder.transformers_[0]
    encoder.transformers_[0] = (name, fitted, chosen)  # some versions refuse some of them in fit
    assert groups_from(encoder) == ["sex"] * 2 + ["city"] * 4


def test_columns_may_be_an_index():
    data = frame()
    encoder = ColumnTransformer([("levels", OneHotEncoder(), data.columns[:2])]).fit(data)
    assert groups_from(encoder) == ["sex"] * 2 + ["city"] * 4


@pytest.mark.parametrize("n_classes", [2, 3])
def test_target_encoders_have_an_output_for_each_class(n_classes):
    data = frame()[["sex", "city"]].rename(columns={"city": "sex_2"})
    encoder = TargetEncoder().fit(data, np.arange(30) % n_classes)
    n_each = 1 if n_classes == 2 else 3
    assert groups_from(encoder) == ["sex"] * n_each + ["sex_2"] * n_each
    columns = ColumnTransformer([("means", encoder, ["sex_2"])])
    columns.fit(data, np.arange(30) % n_classes)
    assert groups_from(columns) == ["sex_2"] * n_each


class Doubled(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Has two outputs for each feature, against what it inherits."""

    def __init__(self, names=None):
        self.names = names

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        self.feature_names_in_ = np.array(X.columns, dtype=object)
        return self

    def transform(self, X):
        return np.hstack([X, X])

    def get_feature_names_out(self, input_features=None):
        return super().get_feature_names_out() if self.names is None else np.array(self.names)


def test_the_number_of_outputs_is_checked():
    numbers = frame()[["age", "hours"]]
    named = Doubled(["age_0", "hours_0", "age_1", "hours_1"]).fit(numbers)
    assert groups_from(named) == ["age", "hours"] * 2
    with pytest.raises(ValueError, match="'both', which is not named after one of its features"):
        groups_from(Doubled(["age_0", "hours_0", "both"]).fit(numbers))
    columns = ColumnTransformer([("twice", Doubled(), ["age", "hours"])]).fit(numbers)
    with pytest.raises(ValueError, match="Doubled has 4 outputs but names 2"):
        groups_from(columns)


def test_names_that_fit_several_features_are_refused():
    numbers = frame()[["age", "hours"]].rename(columns={"hours": "age_2"})
    with pytest.raises(ValueError, match="'age_2', which may come from 'age' or 'age_2': rename"):
        groups_from(Doubled(["age_1", "age_2", "age_2_1", "age_2_2"]).fit(numbers))
    numbers.iloc[0] = np.nan
    imputer = SimpleImputer(add_indicator=True).fit(numbers)  # all names are names of features
    assert groups_from(imputer) == ["age", "age_2"] * 2


def test_outputs_of_several_variables_are_refused():
    data = frame()
    interactions = InteractionTransformer([("levels", OneHotEncoder(), ["sex", "city"])])
    for transformer in (PolynomialFeatures().fit(NUMBERS), interactions.fit(data)):
        with pytest.raises(ValueError, match="come from several features: pass groups"):
            groups_from(transformer)
    powers = ColumnTransformer([("powers", PolynomialFeatures(3), ["age"])]).fit(data)
    assert groups_from(powers) == ["age"] * 4
    with pytest.raises(TypeError, match="does not name its output features"):
        groups_from(make_pipeline(StandardScaler(), FunctionTransformer(np.exp)).fit(NUMBERS))


def test_no_outputs_have_no_groups():
    encoder = ColumnTransformer([("levels", OneHotEncoder(), [])]).fit(frame())
    assert groups_from(encoder) == []


def test_a_transformer_that_is_not_fitted_is_refused():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        groups_from(OneHotEncoder())


def test_a_table_encoder():
    table = frame()
    table.loc[3, "age"] = np.nan
    encoder = TableEncoder(missing="indicator").fit(table)
    groups = ["sex"] * 2 + ["city"] * 4 + ["age"] * 2 + ["hours"]
    assert groups_from(encoder) == groups
    pipeline = make_pipeline(TableEncoder(missing="indicator"), StandardScaler(with_mean=False))
    assert groups_from(pipeline.fit(table)) == groups
    transformer = InteractionTransformer(
        [("t", TableEncoder(), ["sex", "city"]), ("n", "passthrough", ["hours"])]
    ).fit(table)
    names = list(transformer.get_feature_names_out())
    assert sum("sex=f" in name for name in names) == 1 + 4 + 1
    assert not any("sex=f" in name and "sex=m" in name for name in names)
