"""Files beside the examples are the ones that their generators write."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_people_are_those_of_their_generator():
    pytest.importorskip("pandas")
    people = runpy.run_path(str(EXAMPLES / "people.py"))["people"]()
    text = people.to_csv(index=False, lineterminator="\n")
    assert (EXAMPLES / "people.csv").read_text() == text
    assert len(text) < 250_000
