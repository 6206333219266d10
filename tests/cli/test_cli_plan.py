"""The command `plan`: which ways of computing an expansion fit in memory."""

import json

import pytest

import polysparse
from inside import set_available_memory
from sample_files import X, run, write_svmlight


@pytest.fixture
def planned(tmp_path, monkeypatch, capsys):
    """What the command prints if so much memory is available."""
    write_svmlight(tmp_path / "in.svm")

    def plan(available, *options):
        set_available_memory(monkeypatch, available)
        capsys.readouterr()
        run("plan", tmp_path / "in.svm", "--degree", 3, *options)
        return capsys.readouterr().out

    return plan


def test_a_way_fits_if_there_is_just_as_much_as_it_needs(planned):
    def fitting(available):
        fits = json.loads(planned(available, "--json"))["fits"]
        return [way for way in fits if fits[way]]

    plan = polysparse.plan(X, 3)
    whole = plan.nbytes + plan._working_bytes(1)
    longest_row = 220 * 12 + 2 * 4  # nine values and a bias: 220 products of three
    assert fitting(whole) == ["whole", "in blocks"]
    assert fitting(whole - 1) == ["in blocks"]
    assert fitting(2 * longest_row) == ["in blocks"]
    assert fitting(2 * longest_row - 1) == []


def test_the_ways_are_printed_with_what_is_available(planned):
    text = planned(1_000)
    assert "available memory: 1.0 kB\nwhole      does not fit (polysparse.expand)\n" in text
    assert "in blocks  does not fit (polysparse expand," in text
    text = planned(2**40)
    assert "available memory: 1.1 TB\nwhole      fits (polysparse.expand)\n" in text
    assert "in blocks  fits (polysparse expand," in text


def test_memory_that_is_not_known_is_not_printed(planned):
    text = planned(None)
    assert "available memory" not in text
    assert text.count(" fits (") == 2
    assert json.loads(planned(None, "--json"))["bytes_available"] is None
