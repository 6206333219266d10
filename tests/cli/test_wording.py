"""Messages of the library in the words of the command line."""

import pytest

from polysparse.cli.wording import FLAGS, with_flags

PATHS = [
    "/data/n_features/in.svm",
    "n_features/in.svm",
    "/data/n_features",
    "./max_memory",
    "min_count.txt",
    "out.min_count",
    "in-max_columns.npz",
    "my_min_count",
    "min_counts",
    "/data/force=True/out",
]


@pytest.mark.parametrize(("argument", "flag"), FLAGS.items())
def test_every_argument_becomes_its_flag(argument, flag):
    assert with_flags(argument) == flag
    assert with_flags(f"Well, {argument}, or less.") == f"Well, {flag}, or less."
    assert with_flags(f"({argument}) {argument}: no") == f"({flag}) {flag}: no"


@pytest.mark.parametrize("path", PATHS)
def test_paths_and_longer_words_are_left_alone(path):
    for message in (path, f"{path}: there is no such file.", f"'{path}' has 3 columns"):
        assert with_flags(message) == message


def test_a_path_beside_an_argument():
    message = "min_count.txt has 9 columns, but n_features=7: raise n_features"
    assert with_flags(message) == (
        "min_count.txt has 9 columns, but --n-features=7: raise --n-features"
    )


def test_values_are_kept():
    assert with_flags("max_memory=5000 (5 kB) is too little") == (
        "--max-memory=5000 (5 kB) is too little"
    )


def test_an_argument_at_the_end_of_a_sentence_is_turned_into_its_flag():
    assert with_flags("lower min_count.") == "lower --min-count."
    assert with_flags("set interaction_only=True.") == "set --interaction-only."
