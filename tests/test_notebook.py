"""Results in notebooks: tables of HTML, with names escaped and without colors of their own."""

from html.parser import HTMLParser

import numpy as np
import pytest
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
