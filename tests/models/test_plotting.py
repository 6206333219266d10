"""Pictures of the heaviest terms."""

import re
import sys

import pytest

from polysparse.extras import how_to_install
from small_models import X, fitted

mpl = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
mpl.use("Agg")


@pytest.fixture
def ax():
    from matplotlib.figure import Figure

    return Figure(layout="constrained").subplots()


def drawn(ax):
    """Names and lengths of the bars, from top to bottom."""
    ax.figure.canvas.draw()
    labels = [label.get_text() for label in ax.get_yticklabels()]
    return labels, [bar.get_width() for bar in ax.patches]


def test_there_is_a_bar_for_each_term_the_heaviest_on_top(ax):
    model = fitted("ridge")
    assert model.plot_top_terms(6, ax=ax) is ax
    table = model.top_terms(6)
    assert drawn(ax) == (list(table["name"]), list(table["weight"]))
    bottom, top = ax.get_ylim()
    assert bottom > top


def test_signs_differ_in_grey(ax):
    fitted("ridge").plot_top_terms(ax=ax)
    grey = {bar.get_width() > 0: sum(bar.get_facecolor()[:3]) / 3 for bar in ax.patches}
    assert grey[False] - grey[True] > 0.3


def test_classes_stand_behind_the_names(ax):
    fitted("three").plot_top_terms(3, ax=ax)
    assert all(label.endswith((" → 0", " → 10", " → 20")) for label in drawn(ax)[0])


def test_long_names_have_two_lines_and_others_lose_their_middle(ax):
    pd = pytest.importorskip("pandas")
    names = ["a" * 20, "b" * 40, "c" * 200, "$d_1$", "e\nf"]
    fitted("ridge", data=pd.DataFrame(X.toarray(), columns=names)).plot_top_terms(30, ax=ax)
    labels = drawn(ax)[0]
    assert f"{'a' * 20} {'b' * 40}".replace(" ", "\n") in labels
    assert all(len(line) <= 48 for label in labels for line in label.split("\n"))
    assert any("…" in label for label in labels)
    assert r"\$d_1\$" in labels
    assert r"e\nf" in labels


def test_hashed_columns_are_named_by_data(ax):
    model = fitted("ridge", "hashed")
    model.plot_top_terms(3, X, ax=ax)
    assert drawn(ax)[0] == list(model.top_terms(3, X)["name"])


def test_a_new_figure_is_as_high_as_its_bars_need():
    plt = pytest.importorskip("matplotlib.pyplot")
    model = fitted("ridge")
    few, many = (model.plot_top_terms(n).figure for n in (2, 20))
    assert few.get_figheight() + 4 < many.get_figheight()
    plt.close("all")


def test_a_model_without_weights_is_drawn_empty(ax):
    model = fitted("ridge")
    model.coef_[:] = 0
    model.plot_top_terms(ax=ax)
    assert drawn(ax) == ([], [])


def test_without_matplotlib_the_message_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=re.escape(how_to_install("cli"))):
        fitted("ridge").plot_top_terms()
