"""`fit --cv`: the penalty is chosen by cross-validation."""

import numpy as np
import pytest

import sample_files
from polysparse import (
    PolynomialLogisticRegression,
    PolynomialLogisticRegressionCV,
    PolynomialRidgeCV,
    load_model,
)
from sample_files import X, Y, refused, run


@pytest.fixture
def data(tmp_path):
    """The matrix of `sample_files` with its labels, which are -1, 0 and 1."""
    sample_files.write_svmlight(tmp_path / "in.svmlight")
    return tmp_path / "in.svmlight"


def table_of(text):
    """The lines that --cv prints, as tuples."""
    return [tuple(line.split("\t")) for line in text.splitlines()]


def test_the_scores_are_a_table_and_the_model_is_the_chosen_one(data, tmp_path, capsys):
    options = ["-C", "1,0.01,100", "--cv", "3", "--scoring", "neg_log_loss", "--quiet"]
    run("fit", data, "-o", tmp_path / "model.npz", *options)
    own = PolynomialLogisticRegressionCV([1, 0.01, 100], cv=3, scoring="neg_log_loss")
    own.fit(X, Y.astype(int))
    means = own.scores_.mean(axis=0)
    errors = own.scores_.std(axis=0, ddof=1) / np.sqrt(3)
    head, *rows = table_of(capsys.readouterr().out)
    assert head == ("C", "score", "standard error")
    assert [row[0] for row in rows] == ["1", "0.01", "100"]
    np.testing.assert_allclose([float(row[1]) for row in rows], means, rtol=1e-5)
    np.testing.assert_allclose([float(row[2]) for row in rows], errors, rtol=0.05)
    assert [len(row) == 4 and row[3] == "chosen" for row in rows] == list(own.Cs_ == own.C_)
    loaded = load_model(tmp_path / "model.npz")
    assert type(loaded) is PolynomialLogisticRegression
    assert own.C_ == loaded.C
    assert loaded.coef_.tobytes() == own.coef_.tobytes()


def test_default_penalties_and_one_standard_error(data, tmp_path, capsys):
    options = ["--model", "ridge", "--cv", "2", "--one-standard-error", "--quiet"]
    run("fit", data, "-o", tmp_path / "model.npz", *options)
    own = PolynomialRidgeCV(cv=2, selection="one_standard_error").fit(X, Y)
    _, *rows = table_of(capsys.readouterr().out)
    assert [float(row[0]) for row in rows] == pytest.approx(list(own.alphas_), rel=1e-5)
    assert load_model(tmp_path / "model.npz").alpha == own.alpha_


MISUSED = {
    "--cv 1": "--cv needs at least 2 splits",
    "--scoring f1": "--scoring only applies with --cv",
    "--one-standard-error": "--one-standard-error only applies with --cv",
    "-C 1,10": "-C takes several numbers only with --cv",
    "--model ridge --alpha 1,2": "--alpha takes several numbers only with --cv",
}
FAILED = {
    "--cv 2 --scoring finest": "scoring",
    "--cv 1000": "n_splits=1000",
    "--cv 2 --max-memory 20kB": "a copy of its rows for --cv",
}


@pytest.mark.parametrize("options", [*MISUSED, *FAILED])
def test_what_is_not_valid_is_refused(options, data, tmp_path, capsys):
    arguments = "fit", data, "-o", tmp_path / "model.npz", "--quiet", *options.split()
    error = refused(capsys, 2 if options in MISUSED else 1, *arguments)
    assert {**MISUSED, **FAILED}[options] in error
    assert not (tmp_path / "model.npz").exists()
