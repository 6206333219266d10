"""Results in notebooks: tables of HTML, with names escaped and without colors of their own."""

from html.parser import HTMLParser

import numpy as np
import pytest
import sklearn
from scipy import sparse

import polysparse
from polysparse.display.tables import TermTable

X = sparse.csr_array(np.tile(np.eye(4) + np.eye(4, k=1), (8, 1)))
Y = np.array([0, 1, 0, 1] * 8)
EVIL = ["<script>alert(1)</script>", "a & b", 'c"d', "e"]


class Cells(HTMLParser):
    """The texts of the cells of a table; raises if tags are not balanced."""

    def __init__(self, html):
        super().__init__()
        self.open, self.texts, self.tags = [], [], set()
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.texts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.texts[-1] += data


def fitted():
    model = polysparse.PolynomialLogisticRegression(feature_names=EVIL)
    return model.fit(X, Y)


RESULTS = {
    "plan": lambda: polysparse.plan(X),
    "basis": lambda: polysparse.MonomialBasis(4, groups=[0, 0, 1, 1], interaction_only=True),
    "operator": lambda: polysparse.PolynomialOperator(X, 2),
    "search": lambda: polysparse.top_interactions(X, Y - 0.5, k=3),
    "bootstrap": lambda: fitted().bootstrap(X, Y, n=50, random_state=0),
    "path": lambda: polysparse.PolynomialLasso().path(X, Y, alphas=3),
    "table": lambda: TermTable({"name": EVIL, "weight": [1.0, 2.0, 3.0, 4.0]}),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_is_a_table_in_the_colors_of_the_notebook(kind):
    html = RESULTS[kind]()._repr_html_()
    cells = Cells(html)
    assert {"table", "td"} <= cells.tags
    assert "script" not in cells.tags
    assert len(cells.texts) >= 4
    for word in ("color", "background", "font", "border-style"):
        assert f"{word}:" not in html


def test_names_are_escaped():
    assert EVIL[0] in Cells(RESULTS["table"]()._repr_html_()).texts
    assert EVIL[0] in Cells(RESULTS["bootstrap"]()._repr_html_()).texts


def test_a_plan_has_the_numbers_that_it_prints():
    plan = RESULTS["plan"]()
    texts = Cells(plan._repr_html_()).texts
    assert texts[:4] == ["degree", "columns", "stored values", "bytes"]
    for line in str(plan).splitlines()[1:-1]:
        assert line.split()[0] in texts
    assert str(plan).splitlines()[-1] in plan._repr_html_()


def test_a_basis_counts_its_groups():
    texts = Cells(RESULTS["basis"]()._repr_html_()).texts
    shown = dict(zip(texts[::2], texts[1::2], strict=True))
    assert (shown["features"], shown["groups"], shown["columns"]) == ("4", "2", "9")


def test_models_keep_the_diagram_of_scikit_learn():
    html = fitted()._repr_html_()
    assert "PolynomialLogisticRegression" in html
    assert "<script>alert(1)" not in html


def below(model):
    """What is shown below the diagram of scikit-learn."""
    html = model._repr_mimebundle_()["text/html"]
    assert html.count("Fitted model</strong>") == 1
    assert model._repr_html_().count("Fitted model</strong>") == 1
    return html[html.index("<div><strong>Fitted model") :]


def shown(html):
    """The facts, and the names of terms."""
    start = html.index("<div><strong>Largest terms</strong>")
    facts, terms = Cells(html[:start]), Cells(html[start:])
    width, place = html[start:].count("<th "), terms.texts.index("name")
    return dict(zip(facts.texts[::2], facts.texts[1::2], strict=True)), terms.texts[
        width + place :: width
    ]


def test_models_show_facts_and_their_largest_terms():
    model = fitted()
    html = below(model)
    facts, names = shown(html)
    assert facts.pop("iterations").isdecimal()
    assert facts.pop("nonzero coefficients") == f"{np.count_nonzero(model.coef_)}"
    assert facts == {"features": "4", "columns": "14"}
    assert names == list(model.top_terms(10)["name"])
    assert "weights are for class 1" in html
    assert "<script>" not in html
    for word in ("color", "background", "font", "border-style"):
        assert f"{word}:" not in html


def test_models_of_several_classes_hashed_chosen_and_online():
    html = below(polysparse.PolynomialLogisticRegression().fit(X, np.arange(32) % 3))
    facts, _ = shown(html)
    assert facts["classes"] == "3"
    assert "weights are for" not in html
    hashed = polysparse.HashedPolynomialFeatures(n_columns=64)
    facts, names = shown(below(polysparse.PolynomialRidge(columns=hashed).fit(X, Y)))
    assert facts["columns"] == "64 (hashed)"
    assert names[0].startswith("column ")
    facts, _ = shown(below(polysparse.PolynomialRidgeCV(alphas=[0.1, 10.0]).fit(X, Y)))
    assert facts["alpha_"] in ("0.1", "10")
    facts, _ = shown(below(polysparse.PolynomialFTRLClassifier().fit(X, Y)))
    assert facts["rows"] == "32"


def test_models_that_are_not_fitted_large_or_shown_as_text(monkeypatch):
    model = polysparse.PolynomialRidge()
    assert "Fitted model</strong>" not in model._repr_html_()
    assert "Fitted model</strong>" not in fitted().set_params(feature_names=["a"])._repr_html_()
    monkeypatch.setattr("polysparse.models.readable.MOST_SHOWN", 3)
    html = below(fitted())
    assert "top_terms() lists the largest of 14 coefficients" in html
    assert "Largest terms" not in html
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]
