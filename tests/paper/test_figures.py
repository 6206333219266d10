"""The paper's figures: readable as power laws, and drawn again without measuring."""

import re
import shutil
from functools import cache

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the figures need matplotlib: the [cli] extra")

from matplotlib.backends.backend_agg import FigureCanvasAgg

from command_line import run
from inside import raising
from polysparse.paper import reproducing
from polysparse.paper.experiments import DENSE, FILL, SKLEARN, SPARSE, Measurement, Point, vary
from polysparse.paper.figures import draw_figure_1, draw_figure_2
from polysparse.paper.results import Results


def sweeps():
    for K in (2, 3):
        base = Point(K, 2000, 200, 0.2)
        yield vary("fixed cost", "N", Point(K, 1, 1, 1.0), [1])
        yield vary("1", "d", base, [0.1, 0.5, 0.7, 0.8, 1.0], (SPARSE, DENSE, SKLEARN, FILL))
        yield vary("1", "D", base, [50, 100, 200])
        yield vary("1", "N", base, [500, 1000, 2000])
        yield vary("2", "D", base, [50, 100, 200], (SPARSE,))
        yield vary("2", "N", base, [500, 1000, 2000], (SPARSE,))


def seconds(point, side):
    """Power laws; sparse and dense cross at a density of 0.75."""
    size = 1e-6 * point.N * point.D**point.K
    return {
        SPARSE: size * point.d**point.K,
        DENSE: size * 0.75**point.K,
        SKLEARN: 9 * size * point.d**point.K,
        FILL: size / 2,
    }[side]


MEASURED = [
    Measurement(sweep, point, side, i, round(seconds(point, side), 9))
    for sweep in sweeps()
    for point in sweep.points
    for side in sweep.sides
    for i in range(3)
]
RESULTS = Results(MEASURED)
FIGURES = {"1": draw_figure_1, "2": draw_figure_2}
each_figure = pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)


@cache
def rendered(draw):
    figure = draw(RESULTS)
    FigureCanvasAgg(figure).draw()
    return figure


@each_figure
def test_both_axes_are_logarithmic(draw):
    for ax in rendered(draw).axes:
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


@each_figure
def test_everything_measured_is_inside_the_axes(draw):
    for ax in rendered(draw).axes:
        for line in ax.lines:
            if line.get_marker() != "None":
                assert ax.get_ylim()[0] < min(line.get_ydata()) <= max(line.get_ydata())
                assert max(line.get_ydata()) < ax.get_ylim()[1]


@each_figure
def test_thousands_are_separated_by_commas_everywhere(draw):
    for ax in rendered(draw).axes:
        legend = ax.get_legend().get_texts() if ax.get_legend() else []
        ticks = *ax.get_xticklabels(), *ax.get_yticklabels()
        texts = [text.get_text() for text in (ax.title, *legend, *ticks)]
        assert not [text for text in texts if re.search(r"\d{4}|10\^", text)]
        shown = " ".join(texts).replace("{,}", ",")
        if "rows" in ax.get_xlabel():
            assert "1,000" in shown


def test_no_text_lies_on_a_line():
    """The number at a crossover stands clear of every curve, and of the line that marks it."""
    figure = rendered(draw_figure_1)
    labelled = [ax for ax in figure.axes if ax.texts]
    assert len(labelled) == 2
    for ax in labelled:
        (text,) = ax.texts
        assert text.get_text() == "0.75"
        box = text.get_window_extent()
        for line in ax.lines:
            path = line.get_path().transformed(line.get_transform())
            assert not path.intersects_bbox(box, filled=False)


@pytest.mark.parametrize(("panel", "slopes"), [(0, {2, 3}), (1, {1})])
def test_the_second_figure_has_the_slopes_that_are_expected(panel, slopes):
    ax = rendered(draw_figure_2).axes[panel]
    guides = [line for line in ax.lines if line.get_label().startswith("slope ")]
    found = set()
    for line in guides:
        (x0, x1), (y0, y1) = line.get_data()
        slope = np.log(y1 / y0) / np.log(x1 / x0)
        assert line.get_label() == f"slope {slope:.0f}"
        found.add(round(slope, 6))
    assert found == slopes


# --------------------------------------------------------------------------------------- redrawing


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn")
    reproducing.write(folder, MEASURED, "- a machine of long ago")
    return folder


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_the_measurements_are_read_as_they_were_written(drawn):
    assert reproducing.read_csv(drawn / "paper.csv") == MEASURED


def test_redrawing_measures_nothing_and_writes_the_same_files(drawn, tmp_path, monkeypatch, capsys):
    for name in ("paper.csv", "paper.md"):
        shutil.copy(drawn / name, tmp_path)
    monkeypatch.setattr(reproducing, "measure", raising(AssertionError("it measures")))
    assert run("paper", "--redraw", "--out", tmp_path) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "paper.md")
    assert contents(tmp_path) == contents(drawn)


def test_the_page_keeps_what_it_says_about_the_machine(drawn):
    page = (drawn / "paper.md").read_text()
    assert page.endswith("## Made by\n\n- a machine of long ago\n")


def test_other_measurements_are_refused(drawn, tmp_path):
    shutil.copy(drawn / "paper.md", tmp_path)
    (tmp_path / "paper.csv").write_text("figure,K,side\n1,2,sparse\n")
    with pytest.raises(ValueError, match=r"paper.csv must have the columns figure, K, side, N"):
        reproducing.redraw_paper(tmp_path)
