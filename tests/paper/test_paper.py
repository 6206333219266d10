"""The paper's experiments: what is read off the measurements, and a run on tiny matrices."""

import csv
import re
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the figures need matplotlib: the [cli] extra")

import polysparse
from polysparse.extras import how_to_install
from polysparse.paper import experiments, measuring, reproducing
from polysparse.paper import page as paper_page
from polysparse.paper import results as paper_results
from polysparse.paper.experiments import (
    DENSE,
    FILL,
    FRESH,
    SKLEARN,
    SPARSE,
    Measurement,
    Point,
    vary,
)

FILES = {"paper.md", "paper.csv"} | {
    f"paper-figure{i}.{kind}" for i in (1, 2) for kind in ("svg", "png")
}


def tiny_sweeps():
    for K in (2, 3):
        base = Point(K, 6, 10, 0.2)
        yield vary("fixed cost", "N", Point(K, 1, 1, 1.0), [1])
        yield vary("1", "d", base, [0.2, 0.5, 1.0], (SPARSE, DENSE, SKLEARN, FILL))
        yield vary("fresh", "d", base, [0.5, 1.0], (SPARSE, DENSE, FILL), FRESH)
        yield vary("1", "D", base, [5, 10])
        yield vary("1", "N", base, [3, 6])
        yield vary("2", "D", base, [5, 10, 15], (SPARSE,))
        yield vary("2", "N", base, [3, 6], (SPARSE,))


def tiny_run(out, progress=lambda fraction, what: None):
    return reproducing.reproduce(
        out, list(tiny_sweeps()), 2, "polysparse paper --out docs", progress
    )


def measured_as(seconds, n_matrices=3):
    """Measurements of the tiny sweeps whose times a function says."""
    return [
        Measurement(sweep, point, side, i, seconds(point, side))
        for sweep in tiny_sweeps()
        for point in sweep.points
        for side in sweep.sides
        for i in range(n_matrices)
    ]


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0])
def test_fit_recovers_an_exponent(exponent):
    x = np.array([1.0, 2.0, 5.0, 7.0, 20.0])
    fit = paper_results.fit_exponent(x, 0.3 * x**exponent)
    assert fit.exponent == pytest.approx(exponent)
    assert fit.error == pytest.approx(0.0, abs=1e-6)
    assert (fit.first, fit.last, fit.n_points) == (1.0, 20.0, 5)


def test_fit_has_the_standard_error_of_least_squares():
    x = np.exp([0.0, 1.0, 2.0, 3.0])
    y = np.exp([0.1, 0.9, 2.1, 2.9])
    fit = paper_results.fit_exponent(x, y)
    _, covariance = np.polyfit(np.log(x), np.log(y), 1, cov=True)
    assert fit.error == pytest.approx(np.sqrt(covariance[0, 0]))


def test_fit_needs_three_points():
    assert paper_results.fit_exponent(np.array([1.0, 2.0]), np.array([1.0, 2.0])) is None


def test_crossover_is_interpolated_in_log_time():
    d = np.array([0.2, 0.4, 0.6, 0.8])
    ramp = np.exp([-3.0, -2.0, -1.0, 3.0])
    assert paper_results.crossover(d, ramp, np.ones(4)) == pytest.approx(0.65)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_no_crossover_where_one_side_always_wins(factor):
    d = np.array([0.2, 0.6, 1.0])
    assert paper_results.crossover(d, factor * np.ones(3), np.ones(3)) is None


def test_matrices_have_the_planned_rows_and_are_the_same_in_every_run():
    point = Point(2, 7, 20, 0.35)
    X, again, other = point.matrix(0), point.matrix(0), point.matrix(1)
    assert X.shape == (7, 20)
    assert set(np.diff(X.indptr)) == {7}
    assert X.has_canonical_format
    assert (again != X).nnz == 0
    assert (other != X).nnz > 0
    result = polysparse.expand(X, 2)
    assert result.nnz == point.plan(SPARSE).nnz


@pytest.mark.parametrize("quick", [False, True])
def test_no_result_is_over_a_gigabyte_and_rows_are_whole(quick):
    for sweep in experiments.plan_sweeps(quick=quick):
        assert list(sweep.values) == sorted(set(sweep.values))
        for point in sweep.points:
            assert point.d * point.D == pytest.approx(point.row_length)
            assert max(point.plan(side).nbytes for side in sweep.sides) < 10**9


def test_run_writes_all_files_and_nothing_else(tmp_path):
    seen = []
    page = tiny_run(tmp_path / "new" / "docs", lambda fraction, what: seen.append(fraction))
    assert page == tmp_path / "new" / "docs" / "paper.md"
    assert {file.name for file in page.parent.iterdir()} == FILES
    assert all(file.stat().st_size for file in page.parent.iterdir())
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0.0, 1.0)


def test_csv_has_every_measurement(tmp_path):
    page = tiny_run(tmp_path)
    with (page.parent / "paper.csv").open() as file:
        rows = list(csv.DictReader(file))
    kept = [s for s in tiny_sweeps() if measuring.CONTROLS_MEMORY or s.memory != FRESH]
    expected = {
        (s.figure, str(p.K), side, str(p.N), str(p.D), str(p.d), str(i), s.memory, s.varied)
        for s in kept
        for p in s.points
        for side in s.sides
        for i in (1, 2)
    }
    assert tuple(rows[0]) == experiments.COLUMNS
    assert {
        tuple(row[c] for c in experiments.COLUMNS if c != "seconds") for row in rows
    } == expected
    assert len(rows) == sum(2 * len(s.points) * len(s.sides) for s in kept)
    assert all(float(row["seconds"]) >= 0 for row in rows)


def test_page_tells_what_was_measured():
    def seconds(point, side):
        plan = point.plan(SPARSE if side == SPARSE else DENSE)
        return plan.nnz * (1.5e-3 if side == SPARSE else 1e-3)

    results = paper_results.Results(measured_as(seconds))
    page = paper_page.page(results, "polysparse paper --out docs")
    sparse = paper_results.fit_exponent(np.array([2.0, 5.0, 10.0]), np.array([6.0, 21.0, 66.0]))
    exponent = f"{sparse.exponent:.2f} | {sparse.exponent:.2f} ± {sparse.error:.2f}"
    assert f"| sparse | 2 | d (figure 1) | 2 | {exponent} | d = 0.2 to 1, 3 of 3" in page
    assert "| dense | 3 | d (figure 1) | 0 | 0.00 | 0.00 ± 0.00 |" in page
    crossing = paper_results.find_crossing(results, results.select("1", "d")[0])
    assert crossing.at == pytest.approx(crossing.by_bytes, abs=0.01)
    assert "A sparse output costs 1.5" in " ".join(page.split())
    assert "takes 100% of the dense time" in " ".join(page.split())


def test_page_says_where_there_is_no_crossover():
    results = paper_results.Results(measured_as(lambda point, side: 1.0 if side == SPARSE else 2.0))
    page = " ".join(paper_page.page(results, "").split())
    assert "No crossover from d = 0.2 to 1; at the end sparse is faster." in page
    assert "too few points (0 of 3)" in page


def test_figures_do_not_change_with_the_clock(tmp_path):
    measured = measured_as(lambda point, side: 1e-3 * point.N * point.d * point.D)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        reproducing.write(tmp_path / name, measured, "")
    for i in (1, 2):
        first, second = (tmp_path / name / f"paper-figure{i}.svg" for name in ("a", "b"))
        assert first.read_bytes() == second.read_bytes()
        assert "time (ms)" in first.read_text()


def test_a_failed_run_leaves_the_old_files(tmp_path, monkeypatch):
    (tmp_path / "paper.md").write_text("old")

    def fail(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproducing, "page", fail)
    with pytest.raises(KeyboardInterrupt):
        tiny_run(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["paper.md"]
    assert (tmp_path / "paper.md").read_text() == "old"


def test_results_that_differ_are_refused():
    point = Point(2, 3, 4, 0.5)
    calls = measuring.calls_on(point, point.matrix(1), (SPARSE, DENSE))
    with pytest.raises(RuntimeError, match="sparse and the dense results differ at Point"):
        measuring.require_agreement(point, calls)


def test_missing_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=re.escape(how_to_install("cli"))):
        tiny_run(tmp_path / "out")
    assert not (tmp_path / "out").exists()
