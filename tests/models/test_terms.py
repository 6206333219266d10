"""The heaviest terms of a model, with names, weights and counts."""

import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from checks import names_in
from inside import raising, write_few_terms_at_a_time
from model_data import may_end_by_rounding
from polysparse import HashedPolynomialFeatures, PolynomialRidge, expand
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import AllColumns
from polysparse.display.tables import TermTable
from polysparse.models.terms import Terms, heaviest
from small_models import COLUMNS, NAMED, X, fitted, named_weights


def terms_with(weights, counts=None, n_features=3, **basis):
    """Terms of all columns of a basis without a bias."""
    space = AllColumns(MonomialBasis(n_features, **basis, include_bias=False))
    weights = np.atleast_2d(np.array(weights, dtype=float))
    counts = np.array([0] * space.n_columns if counts is None else counts)
    return Terms(space, weights, np.zeros(len(weights)), counts, None, None)


# ------------------------------------------------------------------------------------ the heaviest


@pytest.mark.parametrize(
    ("weights", "n", "places"),
    [
        ([1.0, -3.0, 2.0], 2, [1, 2]),
        ([1.0, -3.0, 2.0], 9, [1, 2, 0]),
        ([1.0, -3.0, 2.0], None, [1, 2, 0]),
        ([0.0, 5.0, 0.0], 3, [1]),
        ([0.0, 0.0], 3, []),
        ([], 3, []),
        ([2.0, -2.0, 1.0, 2.0, 2.0], 2, [0, 1]),
        ([1.0, 2.0, 1.0, 1.0], 3, [1, 0, 2]),
        ([-0.0, -1e-300], 2, [1]),
    ],
)
def test_the_heaviest_come_first_and_of_equal_ones_the_first(weights, n, places):
    assert heaviest(np.array(weights), n).tolist() == places


@pytest.mark.parametrize("seed", range(5))
def test_any_number_of_the_heaviest_is_the_beginning_of_all(seed):
    weights = np.random.default_rng(seed).integers(-4, 5, 30).astype(float)
    order = sorted(np.flatnonzero(weights), key=lambda place: -abs(weights[place]))
    for n in range(1, 35):
        assert heaviest(weights, n).tolist() == order[:n]


# ----------------------------------------------------------------------------------- names, counts


def test_terms_have_names_weights_and_counts():
    table = terms_with([5, 0, 1, -7, 0, 2], [9, 8, 7, 6, 5, 4], interaction_only=True).top(3)
    assert table == {
        "name": ["x0 x1", "x0", "x1 x2"],
        "weight": [-7, 5, 2],
        "rows": [6, 9, 4],
        "features": [("x0", "x1"), ("x0",), ("x1", "x2")],
    }


@pytest.mark.parametrize("columns", NAMED)
def test_names_and_counts_are_those_of_the_expansion(columns):
    model = fitted("ridge", columns)
    table = model.top_terms(1000)
    space = model.column_space_
    names = space.basis.names(getattr(space, "ranks", None)).tolist()
    built = expand(
        X,
        (space.basis.min_degree, space.basis.max_degree),
        include_bias=False,
        interaction_only=space.basis.interaction_only,
        columns=getattr(space, "ranks", None),
    )
    counts = np.diff(built.tocsc().indptr)
    for name, weight, rows in zip(table["name"], table["weight"], table["rows"], strict=True):
        place = names.index(name)
        assert weight == model.coef_[place]
        assert rows == counts[place]
    assert np.all(np.diff(np.abs(table["weight"])) <= 0)
    assert len(table) == np.count_nonzero(model.coef_)


def test_names_of_features_are_used():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X.toarray(), columns=["age", "dose", "c", "d", "e"])
    assert "age dose" in set(fitted("ridge", data=frame).top_terms()["name"])


def test_only_the_terms_that_are_shown_are_named(monkeypatch):
    basis = MonomialBasis(1_000, include_bias=False)
    monkeypatch.setattr(MonomialBasis, "_all_names", raising(AssertionError("all are named")))
    weights = np.zeros(basis.n_columns)
    weights[[7, 2**18]] = 3, -4
    assert terms_with(weights, n_features=1_000).top(5)["name"] == ["x308 x730", "x7"]


def test_several_classes_have_a_column_for_the_class():
    table = fitted("three").top_terms(7)
    assert list(table) == ["class", "name", "weight", "rows", "features"]
    assert set(table["class"]) <= {0, 10, 20}
    model = fitted("three")
    names = model.column_space_.basis.names().tolist()
    for label, name, weight in zip(table["class"], table["name"], table["weight"], strict=True):
        assert weight == model.coef_[label // 10, names.index(name)]


def test_two_classes_need_none():
    assert list(fitted("binary").top_terms()) == ["name", "weight", "rows", "features"]


@pytest.mark.parametrize("n", [0, -1, 2.5, "many", None, True])
def test_a_number_that_has_no_meaning(n):
    with pytest.raises(ValueError, match=r"n must be an int \(at least 1\); got"):
        fitted("ridge").top_terms(n)


def test_before_fit():
    for method in ("top_terms", "plot_top_terms"):
        with pytest.raises(NotFittedError):
            getattr(PolynomialRidge(), method)()
    for method in ("to_text", "save", "to_onnx"):
        with pytest.raises(NotFittedError):
            getattr(PolynomialRidge(), method)("nowhere/at/all")


# ------------------------------------------------------------------------------------------ hashed


def test_hashed_columns_are_called_by_their_number():
    model = fitted("ridge", "buckets")
    table = model.top_terms(4)
    assert list(table) == ["name", "weight"]
    for name, weight in zip(table["name"], table["weight"], strict=True):
        assert weight == model.coef_[int(name.removeprefix("column "))]


@may_end_by_rounding
def test_data_name_the_products_of_hashed_columns():
    hashed, named = (fitted("ridge", columns, tol=1e-15) for columns in ("hashed", "all"))
    found, wanted = named_weights(hashed, X), named_weights(named)
    assert found.keys() == wanted.keys()
    for name, weight in wanted.items():
        assert found[name] == pytest.approx(weight, rel=1e-4, abs=1e-6)
    counts = dict(zip(named.top_terms(99)["name"], named.top_terms(99)["rows"], strict=True))
    table = hashed.top_terms(99, X)
    assert dict(zip(table["name"], table["rows"], strict=True)) == counts


def test_products_that_share_a_column_are_listed_with_their_signs():
    poly = HashedPolynomialFeatures(2, include_bias=False, n_columns=3, seed=1)
    model = fitted("ridge", poly)
    table = model.top_terms(3, X)
    for column, candidates in _candidates_by_column(poly).items():
        first = candidates[0]
        shown = [("" if c.sign == first.sign else "-") + c.name for c in candidates[:3]]
        if len(candidates) > 3:
            shown.append(f"{len(candidates) - 3} more")
        place = list(table["name"]).index(" | ".join(shown))
        assert table["weight"][place] == model.coef_[column] * first.sign
        assert table["rows"][place] == first.n_rows


def _candidates_by_column(poly):
    found = {}
    for each in poly.candidates(X, range(poly.n_columns)):
        found.setdefault(each.column, []).append(each)
    return found


def test_a_column_without_candidates_keeps_its_number():
    model = fitted("ridge", "hashed")
    table = model.top_terms(3, sparse.csr_array((2, 5)))
    assert all(name.startswith("column ") for name in table["name"])
    assert list(table["rows"]) == [0, 0, 0]


def test_data_have_no_meaning_for_columns_with_names():
    with pytest.raises(ValueError, match="X only applies to hashed columns"):
        fitted("ridge").top_terms(3, X)


def test_data_of_another_width_are_refused():
    with pytest.raises(ValueError, match="4 features"):
        fitted("ridge", "hashed").top_terms(3, X[:, :4])


# ------------------------------------------------------------------------------------------ tables


def test_it_is_a_data_frame_where_pandas_is_installed():
    pd = pytest.importorskip("pandas")
    table = fitted("ridge").top_terms(3)
    assert isinstance(table, pd.DataFrame)
    assert table.dtypes["weight"] == np.float64
    assert table.dtypes["rows"] == np.int64


def test_it_is_a_small_table_elsewhere(monkeypatch):
    model = fitted("three")
    wanted = model.top_terms(3)
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = model.top_terms(3)
    assert isinstance(table, TermTable)
    assert len(table) == 3
    for name in ("class", "name", "weight", "rows"):
        assert table[name] == list(wanted[name])
    assert list(table) == list(wanted) == list(table.columns)


def test_a_small_table_prints_well():
    table = TermTable({"name": ["x0 x17", "<b>\n"], "weight": [-0.25, 12.0], "rows": [3, 1200]})
    assert str(table).splitlines() == [
        "name    weight  rows",
        "x0 x17   -0.25     3",
        "<b>\\n       12  1200",
    ]
    for cell in ("x0 x17", "-0.25", "3", "&lt;b&gt;\\n"):
        assert f">{cell}</td>" in table._repr_html_()


def test_an_empty_table_prints_its_heading():
    assert str(TermTable({"name": [], "weight": []})) == "name  weight"


# -------------------------------------------------------------------------------------------- text


@pytest.mark.parametrize("columns", COLUMNS)
def test_text_has_every_weight_with_all_its_digits(columns, tmp_path):
    model = fitted("ridge", columns)
    model.to_text(tmp_path / "terms.txt")
    first, *lines = (tmp_path / "terms.txt").read_text().splitlines()
    assert first == f"1\t{float(model.intercept_)!r}"
    found = {name: float(weight) for name, weight in (line.split("\t") for line in lines)}
    assert found == named_weights(model)
    assert list(found) == list(named_weights(model))
    assert names_in(tmp_path) == ["terms.txt"]


def test_text_of_several_classes_ends_with_the_class(tmp_path):
    model = fitted("three")
    model.to_text(tmp_path / "terms.txt")
    lines = [line.split("\t") for line in (tmp_path / "terms.txt").read_text().splitlines()]
    assert [line[0] for line in lines[:3]] == ["1", "1", "1"]
    assert [int(line[2]) for line in lines[:3]] == [0, 10, 20]
    assert [float(line[1]) for line in lines[:3]] == model.intercept_.tolist()
    names = model.column_space_.basis.names().tolist()
    for name, weight, label in lines[3:]:
        assert float(weight) == model.coef_[int(label) // 10, names.index(name)]
    assert len(lines) == 3 + np.count_nonzero(model.coef_)


def test_text_written_in_pieces_is_the_same(tmp_path, monkeypatch):
    model = fitted("three")
    model.to_text(tmp_path / "whole.txt")
    write_few_terms_at_a_time(monkeypatch)
    model.to_text(tmp_path / "pieces.txt")
    assert (tmp_path / "whole.txt").read_bytes() == (tmp_path / "pieces.txt").read_bytes()


def test_a_name_cannot_break_a_line(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X.toarray(), columns=["a\tb", "c\nd", "Größe", "e", "f"])
    fitted("ridge", data=frame, degree=1).to_text(tmp_path / "terms.txt")
    lines = (tmp_path / "terms.txt").read_text(encoding="utf-8").splitlines()
    assert {line.split("\t")[0] for line in lines} == {"1", "a\\tb", "c\\nd", "Größe", "e", "f"}


def test_interrupted_text_leaves_the_old_file(tmp_path, monkeypatch):
    model, path = fitted("ridge"), tmp_path / "terms.txt"
    path.write_text("old")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Terms, "names", stop)
    with pytest.raises(KeyboardInterrupt):
        model.to_text(path)
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["terms.txt"]
