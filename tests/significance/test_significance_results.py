"""What can be done with a TestedInteractions."""

import pickle

import numpy as np
import pytest

from polysparse import interaction_test

RNG = np.random.default_rng(0)
X = (RNG.random((200, 6)) < 0.5).astype(float)
Y = 3 * X[:, 1] * X[:, 2] + RNG.normal(size=200)


@pytest.fixture
def tested():
    return interaction_test(X, Y, 4, n_null=19, random_state=0, feature_names=list("abcdef"))


def test_it_prints_as_a_table_with_a_note(tested):
    lines = repr(tested).splitlines()
    assert lines[0].split() == ["name", "score", "rows", "bonferroni", "p"]
    assert lines[1].startswith("b c")
    assert lines[-1] == (
        "15 interactions tested, linear main effects; p is adjusted for all of them, in steps of "
        "0.05"
    )
    assert len(lines) == 6
    assert ">b c</td>" in tested._repr_html_()
    assert "<p>15 interactions tested" in tested._repr_html_()


def test_it_converts_to_a_table(tested):
    table = tested.to_table()
    assert list(table) == ["name", "score", "rows", "bonferroni", "p", "features", "column"]
    assert list(table["p"]) == tested.p_values.tolist()


def test_significant_interactions_are_a_result_of_the_same_kind(tested):
    few = tested.significant(0.05)
    assert few.names == ["b c"]
    assert few.n_tested == 15
    assert few.p_values.tolist() == [0.05]
    assert few.resolution == tested.resolution == 0.05


def test_it_can_be_pickled(tested):
    assert repr(pickle.loads(pickle.dumps(tested))) == repr(tested)


def test_bars_are_drawn(tested):
    mpl = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    mpl.use("Agg")
    from matplotlib.figure import Figure

    ax = Figure(layout="constrained").subplots()
    tested.plot(3, ax=ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == tested.names[:3]
    assert ax.get_xlabel() == "statistic"


def test_without_simulated_targets_p_is_that_of_bonferroni(tested):
    free = interaction_test(X, Y, 4, n_null=0, feature_names=list("abcdef"))
    assert free.p_values.tolist() == free.bonferroni.tolist() == tested.bonferroni.tolist()
    assert free.names == tested.names
    assert free.null_maxima.tolist() == []
    assert free.significant(1e-6).names == ["b c"]
    assert repr(free).splitlines()[0].split() == ["name", "score", "rows", "bonferroni"]
    assert repr(free).endswith("15 interactions tested, linear main effects; no simulated targets")


def test_a_part_of_an_interaction_cannot_be_drawn(tested):
    with pytest.raises(ValueError, match=r"n must be a positive int; got 2\.5"):
        tested.plot(2.5)
