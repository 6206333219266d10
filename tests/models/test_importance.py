"""Importance by groups, and contributions to single rows, against the expanded matrix."""

import numpy as np
import pytest
from scipy import sparse

import polysparse
from csr_zoo import random_dense
from groupings import contiguous, interleaved, some_alone
from polysparse import PolynomialLogisticRegression, PolynomialRidge, load_model
from small_models import TARGETS, X

GROUPINGS = [contiguous, interleaved, some_alone]
NAMES = ["age", "dose", "hour", "town", "zone"]


def expected_variances(model, data, weights=None):
    """Variance of what each tuple of groups contributes, by name, from the expanded matrix."""
    basis = model.column_space_.basis
    expanded = polysparse.expand(data, columns=None, **how(basis)).toarray()
    if model.column_space_.kind == "chosen":
        expanded = expanded[:, model.column_space_.ranks]
    tuples = [
        tuple(sorted({int(basis.groups.group_of[j]) for j in row if j >= 0}))
        if len({int(j) for j in row if j >= 0}) > 1
        else tuple(int(basis.groups.group_of[j]) for j in row if j >= 0)
        for row in basis.unrank(
            model.column_space_.ranks
            if model.column_space_.kind == "chosen"
            else np.arange(basis.n_columns)
        )
    ]
    out = {}
    for each in dict.fromkeys(tuples):
        inside = [t == each for t in tuples]
        parts = expanded[:, inside] @ np.atleast_2d(model.coef_)[:, inside].T
        mean = np.average(parts, axis=0, weights=weights)
        variance = np.average((parts - mean) ** 2, axis=0, weights=weights).sum()
        out[":".join(basis.groups.name_of(g) for g in each)] = variance
    return out


def how(basis):
    parameters = basis.as_dict()
    del parameters["n_features"]
    parameters["degree"] = tuple(parameters["degree"])
    return parameters


def by_name(table):
    return dict(zip(table["name"], table["variance"], strict=True))


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("target", ["ridge", "binary", "three"])
@pytest.mark.parametrize("columns", ["all", "observed"])
def test_importance_is_the_variance_of_contributions(grouping, target, columns):
    make = PolynomialRidge if target == "ridge" else PolynomialLogisticRegression
    model = make(groups=grouping(5), columns=columns).fit(X, TARGETS[target])
    table = model.importance()
    assert by_name(table) == pytest.approx(expected_variances(model, X))
    assert list(table["variance"]) == sorted(table["variance"], reverse=True)
    assert sum(table["share"]) == pytest.approx(1)
    assert [":".join(groups) for groups in table["groups"]] == list(table["name"])
    assert by_name(model.importance(X)) == pytest.approx(by_name(table))


def test_importance_of_terms_and_weights():
    model = PolynomialRidge(groups=interleaved(5), terms=["g0*g1", "g2"])
    weights = np.random.default_rng(0).integers(0, 4, X.shape[0]).astype(float)
    model.fit(X, TARGETS["ridge"], sample_weight=weights)
    assert by_name(model.importance()) == pytest.approx(expected_variances(model, X, weights))
    assert set(model.importance()["name"]) == {"g0", "g1", "g2", "g0:g1"}


def test_importance_is_saved(tmp_path):
    model = PolynomialRidge(groups=interleaved(5)).fit(X, TARGETS["ridge"])
    model.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert by_name(loaded.importance()) == by_name(model.importance())
    assert loaded.groups == tuple(interleaved(5))
    assert loaded.column_space_ == model.column_space_


def test_without_groups_rows_are_needed_and_features_are_groups():
    model = PolynomialRidge(feature_names=NAMES).fit(X, TARGETS["ridge"])
    with pytest.raises(ValueError, match="give X, the rows to compute it on"):
        model.importance()
    names = list(model.importance(X)["name"])
    assert len(names) == 5 + 15
    assert {"age", "age:age", "age:dose"} <= set(names)


def test_importance_of_hashed_columns_is_refused():
    model = PolynomialRidge(groups=interleaved(5), columns="hashed").fit(X, TARGETS["ridge"])
    for call in (model.importance, lambda: model.top_terms(within="g0")):
        with pytest.raises(ValueError, match="The columns of this model are hashed"):
            call()


def test_terms_within_a_tuple_of_groups():
    model = PolynomialRidge(groups=interleaved(5)).fit(X, TARGETS["ridge"])
    table = model.top_terms(10**6, within="g0:g1")
    assert set(table["name"]) == {"x0 x1", "x0 x4", "x3 x1", "x3 x4"}  # sorted by group
    assert list(model.top_terms(99, within=("g1", "g0"))["name"]) == list(table["name"])
    assert [" ".join(members) for members in table["features"]] == list(table["name"])
    with pytest.raises(ValueError, match=r"within='g0:g9' .* importance\(\) lists them"):
        model.top_terms(within="g0:g9")


def test_separators_and_members():
    model = PolynomialRidge(feature_names=["a b", "c", "d", "e", "f"]).fit(X, TARGETS["ridge"])
    table = model.top_terms(10**6, sep=" * ")
    assert "a b * c" in set(table["name"])
    assert ("a b", "c") in set(table["features"])
    assert ("c", "c") in set(table["features"])
    assert "c^2" in set(table["name"])
    basis = model.column_space_.basis
    assert basis.names([5, 6], ["a b", "c", "d", "e", "f"], sep="*").tolist() == ["a b^2", "a b*c"]


def test_heat_map():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    model = PolynomialRidge(3, degree=3, groups=some_alone(5)).fit(X, TARGETS["ridge"])
    figure, ax = pyplot.subplots()
    assert model.plot_importance(ax=ax) is ax
    labels = {text.get_text() for text in ax.get_yticklabels()}
    assert labels == {"g0", "g1", "x2"}
    shown = np.ma.filled(ax.images[0].get_array(), np.nan)
    shares = dict(zip(model.importance()["groups"], model.importance()["share"], strict=True))
    drawn = sum(share for groups, share in shares.items() if len(groups) <= 2)
    assert np.nansum(shown) == pytest.approx(100 * drawn)
    pyplot.close(figure)


def test_a_heat_map_has_no_grid():
    mpl = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from matplotlib.figure import Figure

    model = PolynomialRidge(groups=interleaved(5)).fit(X, TARGETS["ridge"])
    with mpl.rc_context({"axes.grid": True}):
        ax = model.plot_importance(ax=Figure().subplots())
    lines = [*ax.get_xgridlines(), *ax.get_ygridlines()]
    assert not any(line.get_visible() for line in lines)


@pytest.mark.parametrize("target", ["ridge", "binary", "three"])
@pytest.mark.parametrize("columns", ["all", "observed"])
def test_contributions_add_up_to_scores(target, columns):
    make = PolynomialRidge if target == "ridge" else PolynomialLogisticRegression
    model = make(columns=columns).fit(X, TARGETS[target])
    table = model.contributions(X[:7], 10**6)
    scores = np.atleast_2d(model._scores(X[:7]).T) - np.reshape(model.intercept_, (-1, 1))
    kinds = list(getattr(model, "classes_", [0])) if target == "three" else [None]
    for r in range(7):
        for c, kind in enumerate(kinds):
            total = sum(
                part
                for i, part in enumerate(table["contribution"])
                if table["row"][i] == r and (kind is None or table["class"][i] == kind)
            )
            assert total == pytest.approx(scores[c, r], abs=1e-12)
    products = np.array(table["value"]) * np.array(table["weight"])
    np.testing.assert_allclose(products, table["contribution"])


def test_the_largest_contributions_of_each_row_come_first():
    data = sparse.csr_array(random_dense(9, 5, 0.8))
    model = PolynomialRidge().fit(X, TARGETS["ridge"])
    every, few = model.contributions(data, 10**6), model.contributions(data, 2)
    for r in range(9):
        sizes = [abs(p) for i, p in enumerate(every["contribution"]) if every["row"][i] == r]
        found = [abs(p) for i, p in enumerate(few["contribution"]) if few["row"][i] == r]
        assert sizes == sorted(sizes, reverse=True)
        assert found == sizes[:2]


def test_contributions_of_no_rows():
    model = PolynomialRidge().fit(X, TARGETS["ridge"])
    assert len(model.contributions(sparse.csr_array((1, 5)))) == 0
    with pytest.raises(ValueError, match="n must be an int"):
        model.contributions(X, 0)
