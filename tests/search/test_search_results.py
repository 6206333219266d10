"""What can be done with a TopInteractions."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from polysparse import (
    ObservedPolynomialFeatures,
    PolynomialOperator,
    PolynomialRidge,
    expand,
    iter_expand,
    plan,
    top_interactions,
)

RNG = np.random.default_rng(0)
X = sparse.csr_array(np.where(RNG.random((60, 8)) < 0.4, RNG.random((60, 8)), 0))
Y = RNG.normal(size=60)


@pytest.fixture
def top():
    return top_interactions(X, Y, 6, degree=3)


def test_it_is_taken_as_columns_everywhere(top):
    all_columns = expand(X, (2, 3), interaction_only=True, include_bias=False).toarray()
    expected = all_columns[:, np.sort(top.columns)]
    np.testing.assert_array_equal(expand(X, columns=top).toarray(), expected)
    np.testing.assert_array_equal(PolynomialOperator(X, columns=top).toarray(), expected)
    blocks = [block.toarray() for _, block in iter_expand(X, columns=top)]
    np.testing.assert_array_equal(np.vstack(blocks), expected)
    assert plan(X, columns=top).shape == (60, 6)
    model = PolynomialRidge(0.1, columns=top).fit(X, Y)
    assert model.coef_.shape == (6,)
    assert set(model.top_terms(6)["name"]) == set(top.names)
    with pytest.raises(ValueError, match="X has 5 features, but the interactions were found in 8"):
        expand(X[:, :5], columns=top)
    with pytest.raises(ValueError, match="degree=2 contradicts columns"):
        expand(X, degree=2, columns=top)


def test_the_observed_transformer_takes_it(top, tmp_path):
    poly = clone(ObservedPolynomialFeatures(columns=top)).fit(X)
    np.testing.assert_array_equal(poly.columns_, np.sort(top.columns))
    np.testing.assert_array_equal(poly.counts_, top.counts[np.argsort(top.columns)])
    assert (poly.transform(X) != expand(X, columns=top)).nnz == 0
    assert set(poly.get_feature_names_out()) == set(top.names)
    model = PolynomialRidge(0.1, columns=ObservedPolynomialFeatures(columns=top)).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, PolynomialRidge(0.1, columns=top).fit(X, Y).coef_)

    parts = [ObservedPolynomialFeatures(columns=top, min_count=2) for _ in range(2)]
    parts[0].fit(X[:30]).partial_fit(X[30:50])
    merged = parts[0].merge(parts[1].fit(X[50:]))
    kept = poly.counts_ >= 2
    np.testing.assert_array_equal(merged.columns_, poly.columns_[kept])
    np.testing.assert_array_equal(merged.counts_, poly.counts_[kept])
    with pytest.raises(ValueError, match="other has counted other columns"):
        merged.merge(
            ObservedPolynomialFeatures((2, 3), interaction_only=True, include_bias=False).fit(X)
        )
    poly.save(tmp_path / "poly.npz")
    read = ObservedPolynomialFeatures.load(tmp_path / "poly.npz")
    assert (read.transform(X) != expand(X, columns=top)).nnz == 0
    with pytest.raises(ValueError, match="Call fit to start over"):  # it would count all columns
        read.partial_fit(X)


def test_the_observed_transformer_takes_column_numbers(top):
    poly = ObservedPolynomialFeatures(columns=[0, 3, 11], interaction_only=True).fit(X)
    assert poly.columns_.tolist() == [0, 3, 11]
    assert poly.get_feature_names_out().tolist() == ["1", "x2", "x0 x3"]
    with pytest.raises(ValueError, match="degree=4 contradicts columns, which has degree="):
        ObservedPolynomialFeatures(4, columns=top).fit(X)
    for bad in ("observed", ObservedPolynomialFeatures()):
        with pytest.raises(ValueError, match="columns must be None, increasing column numbers"):
            ObservedPolynomialFeatures(columns=bad).fit(X)


def test_sums_of_the_columns_are_the_scores(top):
    sums = expand(X, columns=top).T @ Y
    order = np.argsort(np.argsort(top.columns))
    np.testing.assert_allclose(top.scores, sums[order], rtol=1e-12)


def test_names_are_those_of_a_transformer():
    poly = ObservedPolynomialFeatures((2, 3), interaction_only=True, include_bias=False).fit(X)
    names = dict(zip(poly.columns_.tolist(), poly.get_feature_names_out(), strict=True))
    counts = dict(zip(poly.columns_.tolist(), poly.counts_.tolist(), strict=True))
    top = top_interactions(X, Y, 30, degree=3)
    assert top.names == [names[c] for c in top.columns.tolist()]
    assert top.counts.tolist() == [counts[c] for c in top.columns.tolist()]
    assert [" ".join(each) for each in top.features] == top.names


def test_it_prints_as_a_table(top):
    lines = repr(top).splitlines()
    assert lines[0].split() == ["name", "score", "rows"]
    assert len(lines) == 7
    assert lines[1].startswith(top.names[0])
    assert f">{top.names[0]}</td>" in top._repr_html_()
    table = top.to_table()
    assert list(table) == ["name", "score", "rows", "features", "column"]
    assert list(table["column"]) == top.columns.tolist()


def test_several_targets_are_named():
    top = top_interactions(X, np.column_stack([Y, -2 * Y]), 4)
    assert top.targets.tolist() == [1] * 4
    assert list(top.to_table()) == ["name", "target", "score", "rows", "features", "column"]
    one = top_interactions(X, Y, 4)
    np.testing.assert_array_equal(one.columns, top.columns)
    np.testing.assert_array_equal(one.scores * -2, top.scores)


def test_targets_of_a_table_have_its_names():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    top = top_interactions(X, pd.DataFrame({"sales": Y, "visits": -2 * Y}), 4)
    assert list(top.to_table()["target"]) == ["visits"] * 4
    assert repr(top).splitlines()[1].split()[-3] == "visits"


def test_it_can_be_pickled(top):
    other = pickle.loads(pickle.dumps(top))
    assert repr(other) == repr(top)
    assert other.column_space(8) == top.column_space(8)


def test_bars_and_a_matrix_are_drawn():
    mpl = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    mpl.use("Agg")
    from matplotlib.figure import Figure

    top = top_interactions(X, Y, 6, degree=(1, 2))
    ax = Figure(layout="constrained").subplots()
    assert top.plot(4, ax=ax) is ax
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_yticklabels()] == top.names[:4]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], top.scores[:4])
    assert ax.get_xlabel() == "score"
    ax = Figure(layout="constrained").subplots()
    top.plot(kind="matrix", ax=ax)
    cells = ax.images[0].get_array()
    found = sorted(float(cell) for cell in cells.compressed() if np.isfinite(cell))
    np.testing.assert_allclose(found, np.sort(np.abs(top.scores)))
    with pytest.raises(ValueError, match='kind must be "bars" or "matrix"'):
        top.plot(kind="pie")
    with pytest.raises(ValueError, match="A matrix has single features and pairs"):
        top_interactions(X, Y, 3, degree=(3, 3)).plot(kind="matrix")
