"""help(polysparse) begins with what the package offers."""

import doctest
import pydoc

import pytest

import polysparse

HELP = pydoc.plain(pydoc.render_doc(polysparse))


@pytest.mark.parametrize("name", polysparse.__all__)
def test_every_public_name_comes_before_the_modules_of_the_package(name):
    described, _, _ = HELP.partition("PACKAGE CONTENTS")
    assert name in described


def test_the_example_runs():
    failed, tried = doctest.testmod(polysparse)
    assert tried > 0
    assert failed == 0
