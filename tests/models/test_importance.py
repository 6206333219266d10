"""Importance by groups, and contributions to single rows, against the expanded matrix."""

import re

import numpy as np
import pytest
from scipy import sparse

import polysparse
from csr_zoo import random_dense
from groupings import contiguous, interleaved, some_alone
from inside import lower
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
        name = ":".join(basis.groups.name_of(g) for g in each)
        out[f"{name.partition(':')[0]}^2" if len({*each}) < len(each) else name] = variance
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
    assert [re.sub(r"(\w+):\1\b", r"\1^2", ":".join(g)) for g in table["groups"]] == [
        *table["name"]
    ]
    assert by_name(model.importance(X)) == pytest.approx(by_name(table))


def test_importance_of_terms_and_weights():
    model = PolynomialRidge(groups=interleaved(5), terms=["g0*g1", "g2"])
    weights = np.random.default_rng(0).integers(0, 4, X.shape[0]).astype(float)
    model.fit(X, TARGETS["ridge"], sample_weight=weights)
    assert by_name(model.importance()) == pytest.approx(expected_variances(model, X, weights))
    assert set(model.importance()["name"]) == {"g0", "g1", "g2", "g0:g1"}


def one_hot_rows():
    """Indicators of four variables, some of whose levels are missing; classes; weights."""
    rng = np.random.default_rng(0)
    levels = [(3, 3), (5, 4), (2, 2), (2, 1)]  # of each variable, and how many have a feature
    blocks = [np.eye(n)[:, :kept][rng.integers(n, size=600)] for n, kept in levels]
    weights = rng.random(600) * (rng.random(600) < 0.9)
    return sparse.csr_array(np.hstack(blocks)), rng.integers(2, size=600), weights


ONE_HOT_GROUPS = ["a"] * 3 + ["b"] * 4 + ["c"] * 2 + ["d"]


@pytest.mark.parametrize("interaction_only", [True, False])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_importance_of_indicators(interaction_only, n_jobs):
    data, y, weights = one_hot_rows()
    model = PolynomialLogisticRegression(
        groups=ONE_HOT_GROUPS, interaction_only=interaction_only, n_jobs=n_jobs
    )
    model.fit(data, y, sample_weight=weights)
    assert by_name(model.importance()) == pytest.approx(expected_variances(model, data, weights))
    others = data.copy()
    others.data[::7] = 2.0  # so that rows are expanded
    assert by_name(model.importance(others)) == pytest.approx(expected_variances(model, others))


@pytest.mark.parametrize("value", [1.0, 2.0])
def test_importance_does_not_depend_on_threads(value, monkeypatch):
    lower(monkeypatch, CACHE_PER_THREAD=2**12, OUTPUTS_PER_THREAD=1)  # several blocks
    data, y, weights = one_hot_rows()
    data.data[::7] = value
    model = PolynomialRidge(groups=ONE_HOT_GROUPS)
    tables = [
        by_name(model.set_params(n_jobs=n_jobs).fit(data, y, sample_weight=weights).importance())
        for n_jobs in (1, 2, 3)
    ]
    assert tables[0] == tables[1] == tables[2]


def test_importance_is_saved(tmp_path):
    model = PolynomialRidge(groups=interleaved(5)).fit(X, TARGETS["ridge"])
    model.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert by_name(loaded.importance()) == by_name(model.importance())
    assert loaded.groups == tuple(interleaved(5))
    assert loaded.column_space_ == model.column_space_


def test_without_groups_rows_are_needed_and_features_are_groups():
    model = PolynomialRidge(feature_names=NAMES).fit(X, TARGETS["ridge"])
    with pytest.raises(ValueError, match=r"needs a model fitted with groups or terms .* Pass X"):
        model.importance()
    names = list(model.importance(X)["name"])
    assert len(names) == 5 + 15
    assert {"age", "age^2", "age:dose"} <= set(names)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("integer_weights", [True, False])
def test_importance_of_contributions_far_from_zero(integer_weights):
    rng = np.random.default_rng(0)
    x, codes = rng.normal(size=300), rng.integers(0, 2, 300)
    weights = rng.integers(0, 3, 300) if integer_weights else rng.random(300)
    data = np.c_[np.eye(2)[codes], 1e9 + x]
    model = PolynomialRidge(1e-6, degree=1, groups=["a", "a", "b"])
    model.fit(data, 3 * x + codes, sample_weight=weights)
    mean = np.average(x, weights=weights)
    expected = model.coef_[2] ** 2 * np.average((x - mean) ** 2, weights=weights)
    assert by_name(model.importance())["b"] == pytest.approx(expected, rel=1e-4)
    own = model.coef_[2] ** 2 * x.var()
    assert by_name(model.importance(data))["b"] == pytest.approx(own, rel=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_importance_of_a_large_contribution_that_one_row_lacks():
    data = np.full((1_000, 2), 1e6)
    data[0, 0] = 0
    data[:, 1] = np.arange(1_000) % 2
    model = PolynomialRidge(1e-6, degree=1, groups=["a", "b"]).fit(data, data[:, 0])
    assert by_name(model.importance()) == pytest.approx(
        expected_variances(model, sparse.csr_array(data)), rel=1e-6
    )


def test_an_interaction_of_many_groups_among_many_features():
    data = sparse.csr_array(random_dense(40, 8, 0.9))
    data.resize(40, 3_000)
    terms = ["x0:x1:x2:x3:x4:x5:x6", "x7"]
    model = PolynomialRidge(terms=terms).fit(data, np.arange(40))
    assert set(model.importance()["name"]) == {terms[0], "x7"}
    assert list(model.top_terms(within="x7")["name"]) == ["x7"]


@pytest.mark.parametrize("groups", [None, [None] * 4_333 + ["a", "a"]])
def test_more_tuples_of_groups_than_int64_can_number(groups):
    data = sparse.random(9, 4_335, density=0.0016, format="csr", random_state=0)
    model = PolynomialRidge(degree=6, columns="observed", interaction_only=True, groups=groups)
    model.fit(data, np.arange(9))
    table = model.importance(data)
    assert len(table) == model.coef_.size
    assert sum(table["share"]) == pytest.approx(1)


def test_importance_of_terms_is_the_same_for_observed_columns():
    models = [
        PolynomialRidge(groups=some_alone(5), terms=["g1:g0", "g0", "x2"], columns=columns)
        for columns in ("all", "observed")
    ]
    tables = [by_name(model.fit(X, TARGETS["ridge"]).importance()) for model in models]
    assert tables[0] == pytest.approx(tables[1], rel=1e-4)
    assert tables[0] == pytest.approx(expected_variances(models[0], X))


def test_a_fit_leaves_out_the_importance_of_too_many_tuples(monkeypatch):
    monkeypatch.setattr("polysparse.models.fitting.MAX_TUPLES", 5)
    for parameters in ({"groups": interleaved(5)}, {"groups": NAMES}, {"terms": ["(x0+x1+x2)**2"]}):
        model = PolynomialRidge(**parameters).fit(X, TARGETS["ridge"])
        with pytest.raises(ValueError, match="Pass X"):
            model.importance()
        assert len(model.importance(X)) > 5


def test_groups_of_one_feature_each_are_groups():
    model = PolynomialRidge(groups=NAMES).fit(X, TARGETS["ridge"])
    assert by_name(model.importance()) == pytest.approx(by_name(model.importance(X)))
    assert {"age", "age^2", "age:dose"} <= set(model.importance()["name"])


def test_importance_is_by_group():
    model = PolynomialRidge(groups=interleaved(5)).fit(X, TARGETS["ridge"])
    assert by_name(model.importance(by="group")) == by_name(model.importance())
    with pytest.raises(ValueError, match="by must be \"group\"; got 'term'"):
        model.importance(by="term")


def test_groups_of_the_same_name_are_refused():
    model = PolynomialRidge(groups=["b", "b", None, "c", "c"]).fit(X, TARGETS["ridge"])
    for call in (model.importance, model.plot_importance):
        with pytest.raises(ValueError, match=r"two groups are named 'b': .* other feature_names"):
            call(feature_names=["a", "b", "b", "d", "e"])
    assert "b:x2" in set(model.importance()["name"])


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


def test_a_power_of_a_group_is_named_as_its_term():
    names = ["a", "b", "a^2", "c"]
    model = PolynomialRidge(3, degree=3, feature_names=names)
    data = np.random.default_rng(0).random((200, 4))
    model.fit(data, data[:, 1] ** 2 * data[:, 0])
    found = model.importance(data)
    assert {"b^2", "a:b^2", "b^3", "a^2", "b:a^2"} <= {*found["name"]}
    assert ("a", "b", "b") in [*found["groups"]]
    for within in ("b^2", "b:b", ("b", "b")):
        assert list(model.top_terms(within=within)["name"]) == ["b^2"]
    for within in ("a:b^2", "b^2:a", "b:b:a", "a:b:b"):
        assert list(model.top_terms(within=within)["name"]) == ["a b^2"]
    assert list(model.top_terms(within="a:a")["name"]) == ["a^2"]
    with pytest.raises(ValueError, match="ambiguous"):  # a feature, and the square of another
        model.top_terms(within="a^2")
    with pytest.raises(ValueError, match=r"within='b\^4' is not a combination of groups"):
        model.top_terms(within="b^4")


def test_labels_of_within():
    labels = [" a ", " a ", "b", "b", "b:c"]
    model = PolynomialRidge(groups=labels).fit(X, TARGETS["ridge"])
    assert len(model.top_terms(99, within=("b", " a "))) == 4
    assert len(model.top_terms(99, within=" a :b")) == 4
    assert len(model.top_terms(99, within="b:c")) == 1
    with pytest.raises(TypeError, match=r"within must be a tuple of labels, .*; got 3"):
        model.top_terms(within=3)
    model = PolynomialRidge(groups=["a", "a", "b", "b", "a:b"]).fit(X, TARGETS["ridge"])
    with pytest.raises(ValueError, match="within='a:b' is ambiguous: pass a tuple"):
        model.top_terms(within="a:b")
    assert len(model.top_terms(99, within=["a:b"])) == 1
    assert len(model.top_terms(99, within=("b", "a"))) == 4


def test_separators_and_members():
    model = PolynomialRidge(feature_names=["a b", "c", "d", "e", "f"]).fit(X, TARGETS["ridge"])
    table = model.top_terms(10**6, sep=" * ")
    assert "a b * c" in set(table["name"])
    assert ("a b", "c") in set(table["features"])
    assert ("c", "c") in set(table["features"])
    assert "c^2" in set(table["name"])
    basis = model.column_space_.basis
    assert basis.names([5, 6], ["a b", "c", "d", "e", "f"], sep="*").tolist() == ["a b^2", "a b*c"]


@pytest.mark.parametrize("sep", [None, 3])
def test_separators_are_strings(sep):
    model = PolynomialRidge().fit(X, TARGETS["ridge"])
    for call in (model.top_terms, lambda sep: model.contributions(X[:1], sep=sep)):
        with pytest.raises(TypeError, match=f"sep must be a string; got {sep}"):
            call(sep=sep)


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


def test_a_heat_map_needs_groups_or_pairs():
    model = PolynomialRidge(terms=["x0:x1:x2"]).fit(X, TARGETS["ridge"])
    with pytest.raises(ValueError, match=r"have three or more: list them with importance\(\)"):
        model.plot_importance()


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


def test_groups_of_a_basis_are_saved_with_a_model(tmp_path):
    groups = polysparse.MonomialBasis(5, groups=interleaved(5)).groups
    model = PolynomialRidge(groups=groups).fit(X, TARGETS["ridge"])
    model.save(tmp_path / "model.npz")
    assert load_model(tmp_path / "model.npz").column_space_ == model.column_space_
