"""Searches and tests of tables: categorical columns are encoded, and are the groups."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import polysparse as ps

N = 400
CITIES, JOBS = ["Oslo", "Rome", "Lima"], ["cook", "nurse", "clerk"]
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "city": RNG.choice(CITIES, N),
        "job": pd.Categorical(RNG.choice(JOBS, N)),
        "age": RNG.integers(20, 60, N).astype(float),
    }
)
Y = 3.0 * ((TABLE["city"] == "Rome") & (TABLE["job"] == "cook")) + RNG.normal(size=N)
Y = Y.to_numpy()
KINDS = {"pandas": lambda table: table, "polars": pl.from_pandas}


def assert_same(found, expected):
    assert found.names == expected.names
    assert found.basis == expected.basis
    assert found.columns.tolist() == expected.columns.tolist()
    assert found.scores.tolist() == expected.scores.tolist()
    assert found.counts.tolist() == expected.counts.tolist()


def encoded(X):
    encoder = ps.TableEncoder()
    Z = encoder.fit_transform(X)
    return Z, {"groups": encoder.groups_, "feature_names": encoder.get_feature_names_out()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("degree", [2, (1, 3)])
def test_top_interactions_searches_what_a_table_encoder_returns(kind, degree):
    X = KINDS[kind](TABLE)
    Z, how = encoded(X)
    found = ps.top_interactions(X, Y, 8, degree=degree)
    assert_same(found, ps.top_interactions(Z, Y, 8, degree=degree, **how))
    assert len(found.names) == 8


@pytest.mark.parametrize("kind", KINDS)
def test_interaction_test_tests_what_a_table_encoder_returns(kind):
    X = KINDS[kind](TABLE)
    Z, how = encoded(X)
    found = ps.interaction_test(X, Y, 5, n_null=19, random_state=0)
    expected = ps.interaction_test(Z, Y, 5, n_null=19, random_state=0, **how)
    assert_same(found, expected)
    assert found.p_values.tolist() == expected.p_values.tolist()
    assert "city=Rome job=cook" in found.names[:2]


def test_among_takes_a_variable_for_all_its_levels():
    levels = [f"city={city}" for city in CITIES]
    found = ps.top_interactions(TABLE, Y, 9, hierarchy="weak", among=["city"])
    expected = ps.top_interactions(TABLE, Y, 9, hierarchy="weak", among=levels)
    assert_same(found, expected)
    ages = ps.top_interactions(TABLE, Y, 9, hierarchy="weak", among=["age"])
    assert all("age" in members for members in ages.features)


def test_what_is_found_can_be_the_columns_of_a_model_of_the_same_table():
    found = ps.top_interactions(TABLE, Y, 5)
    model = ps.PolynomialRidge(columns=found, categorical_features="from_dtype").fit(TABLE, Y)
    assert len(model.coef_) == 5
    Z, _ = encoded(TABLE)
    expected = ps.expand(Z, columns=found) @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(TABLE), expected)


@pytest.mark.parametrize("dtype", ["float64", "Int64", "Sparse[int64]"])
@pytest.mark.parametrize("groups", [None, ["p", "p", "q"]])
def test_a_table_of_numbers_is_searched_as_a_matrix_is(dtype, groups):
    X = RNG.integers(0, 2, (50, 3))
    table = pd.DataFrame(X, columns=list("abc")).astype(dtype)
    found = ps.top_interactions(table, Y[:50], 3, groups=groups)
    assert_same(found, ps.top_interactions(X, Y[:50], 3, groups=groups, feature_names=list("abc")))


def test_a_sparse_frame_is_a_matrix_whose_columns_have_names():
    sparse_frame = pd.get_dummies(TABLE[["city", "job"]], sparse=True)
    dense = sparse_frame.to_numpy()
    names = list(sparse_frame.columns)
    expected = ps.top_interactions(dense, Y, 5, feature_names=names)
    assert_same(ps.top_interactions(sparse_frame, Y, 5), expected)
    tested = ps.interaction_test(sparse_frame, Y, 5, n_null=9, random_state=0)
    assert set(tested.names) <= {f"city_{c} job_{j}" for c in CITIES for j in JOBS}


def test_a_missing_number_is_refused_with_its_place_and_a_way_out():
    holes = TABLE.assign(age=TABLE["age"].where(TABLE.index != 7))
    with pytest.raises(ValueError, match=r"'age' is NaN or missing in row 7.*use TableEncoder"):
        ps.top_interactions(holes, Y)
    Z = ps.TableEncoder(missing="indicator").fit_transform(holes)
    assert ps.top_interactions(Z, Y, 3).basis.n_features == 8


@pytest.mark.parametrize("function", [ps.top_interactions, ps.interaction_test])
def test_groups_are_refused_where_columns_are_the_groups(function):
    with pytest.raises(ValueError, match="groups only applies to X without categorical columns"):
        function(TABLE, Y, groups=["a", "b", "c"])
