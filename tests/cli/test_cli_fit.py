"""The command `fit`: from data with labels to a model in a file."""

import io
import re
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score, log_loss, r2_score

import sample_files
from checks import names_in
from inside import before, lower, pretend_terminal, raising, read_small_blocks, set_available_memory
from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialElasticNet,
    PolynomialLasso,
    PolynomialLinearSVC,
    PolynomialLinearSVR,
    PolynomialLogisticRegression,
    PolynomialRidge,
    PolynomialTweedieRegressor,
    load_model,
)
from sample_files import INPUTS, X, Y, refused, run
from small_models import outputs

TEST = X[:40]


@pytest.fixture
def data(tmp_path):
    """The matrix of `sample_files` with its labels, which are -1, 0 and 1."""
    sample_files.write_svmlight(tmp_path / "in.svmlight")
    return tmp_path / "in.svmlight"


@pytest.fixture
def model(tmp_path):
    return tmp_path / "model.npz"


def write_targets(path, targets, n_rows=120, first=0):
    """Rows of the matrix, with other labels."""
    with open(path, "w") as file:
        for row, target in zip(range(first, first + n_rows), targets, strict=True):
            start, stop = X.indptr[row : row + 2]
            pairs = zip(X.indices[start:stop], X.data[start:stop], strict=True)
            text = " ".join(f"{j + 1}:{float(v)!r}" for j, v in pairs)
            file.write(f"{float(target)!r} {text}\n")
    return path


def assert_same_model(path, expected):
    loaded = load_model(path)
    assert type(loaded) is type(expected)
    np.testing.assert_array_equal(loaded.coef_, expected.coef_)
    np.testing.assert_array_equal(loaded.intercept_, expected.intercept_)
    assert outputs(loaded, X) == outputs(expected, X)


# ------------------------------------------------------------------------------------- as in Python


@pytest.mark.parametrize("name", [name for name in INPUTS if name not in ("in.npz", "in.mtx")])
def test_every_format_with_labels_gives_the_same_model(name, model, tmp_path):
    INPUTS[name](tmp_path / name)
    run("fit", tmp_path / name, "-o", model, "--quiet")
    assert_same_model(model, PolynomialLogisticRegression().fit(X, Y.astype(int)))


def test_what_expand_has_written_is_read_with_its_labels(data, model, tmp_path):
    run("expand", data, tmp_path / "out.npz", "--degree", "1", "--no-bias", "--quiet")
    run("fit", tmp_path / "out.npz", "-o", model, "--quiet")
    assert_same_model(model, PolynomialLogisticRegression().fit(X, Y.astype(int)))


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (["-C", "0.1"], {"C": 0.1}),
        (["-C", "inf", "--degree", "1"], {"C": np.inf, "degree": 1}),
        (["--degree", "3", "--interaction-only"], {"degree": 3, "interaction_only": True}),
        (["--degree", "2-3", "--no-intercept"], {"degree": (2, 3), "fit_intercept": False}),
        (["--tol", "1e-2", "--max-iter", "50"], {"tol": 1e-2, "max_iter": 50}),
    ],
    ids=str,
)
def test_options_are_parameters(options, parameters, data, model):
    run("fit", data, "-o", model, "--quiet", *options)
    assert_same_model(model, PolynomialLogisticRegression(**parameters).fit(X, Y.astype(int)))
    assert load_model(model).get_params().items() >= parameters.items()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--penalty", "l1", "-C", "2"], PolynomialLogisticRegression(2.0, penalty="l1")),
        (["--l1-ratio", "0.5"], PolynomialLogisticRegression(l1_ratio=0.5)),
        (["--model", "svc", "--penalty", "l1"], PolynomialLinearSVC(penalty="l1")),
        (["--model", "svr", "--l1-ratio", "1"], PolynomialLinearSVR(l1_ratio=1)),
        (
            ["--model", "tweedie", "--power", "0", "--penalty", "l1", "--alpha", "0.01"],
            PolynomialTweedieRegressor(alpha=0.01, penalty="l1"),
        ),
        (["--model", "lasso", "--alpha", "0.01"], PolynomialLasso(0.01)),
        (["--model", "elastic-net", "--l1-ratio", "0.2"], PolynomialElasticNet(l1_ratio=0.2)),
    ],
    ids=str,
)
def test_penalties_with_an_l1_part(options, expected, data, model):
    run("fit", data, "-o", model, "--quiet", *options)
    is_classifier = isinstance(expected, ClassifierMixin)
    assert_same_model(model, expected.fit(X, Y.astype(int) if is_classifier else Y))


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        (["--observed"], lambda: "observed"),
        (
            ["--observed", "--min-count", "9", "--max-columns", "20", "--degree", "3"],
            lambda: ObservedPolynomialFeatures(3, min_count=9, max_columns=20).fit(X),
        ),
        (
            ["--hashed", "2^6", "--seed", "7", "--no-alternate-sign"],
            lambda: HashedPolynomialFeatures(n_columns=64, seed=7, alternate_sign=False),
        ),
    ],
    ids=["observed", "limits", "hashed"],
)
def test_kinds_of_columns(options, columns, data, model):
    options = [*options, "--model", "ridge", "--alpha", "0.5"]
    run("fit", data, "-o", model, "--quiet", *options)
    found, wanted = load_model(model), PolynomialRidge(0.5, columns=columns()).fit(X, Y)
    if "--max-columns" not in options:
        assert found.column_space_ == wanted.column_space_
        assert_same_model(model, wanted)
    else:  # in the library, the bias counts as one of the columns
        assert found.column_space_.n_columns == 20


def test_columns_of_a_vocabulary(data, model, tmp_path):
    run("expand", data, tmp_path / "out", "--observed", "--min-count", "9", "--quiet")
    vocabulary = tmp_path / "out.vocabulary"
    run("fit", data, "-o", model, "--vocabulary", vocabulary, "--quiet")
    columns = ObservedPolynomialFeatures.load(vocabulary)
    assert_same_model(model, PolynomialLogisticRegression(columns=columns).fit(X, Y.astype(int)))


def test_names_of_features_are_in_the_model(data, model, tmp_path, capsys):
    names = [f"feature={j}" for j in range(X.shape[1])]
    (tmp_path / "names").write_text("\n".join(names))
    run("fit", data, "-o", model, "--quiet", "--feature-names", tmp_path / "names")
    expected = PolynomialLogisticRegression(feature_names=names).fit(X, Y.astype(int))
    assert list(load_model(model).top_terms(9)["name"]) == list(expected.top_terms(9)["name"])
    capsys.readouterr()
    run("terms", model, "-n", 1)
    assert expected.top_terms(1)["name"][0] in capsys.readouterr().out.splitlines()[1]


def test_too_few_names_of_features_are_refused(data, model, tmp_path, capsys):
    (tmp_path / "names").write_text("a\nb\n")
    error = refused(capsys, 1, "fit", data, "-o", model, "--feature-names", tmp_path / "names")
    assert f"names has 2 lines, but there are {X.shape[1]} input columns" in error
    assert not model.exists()


def test_a_file_read_in_blocks_gives_the_same_model(data, model, tmp_path, monkeypatch):
    run("fit", data, "-o", model, "--quiet")
    read_small_blocks(monkeypatch)
    run("fit", data, "-o", tmp_path / "blocks.npz", "--quiet")
    assert model.read_bytes() == (tmp_path / "blocks.npz").read_bytes()


def test_the_number_of_threads_does_not_matter(data, model, tmp_path):
    run("fit", data, "-o", model, "--quiet", "--jobs", "1")
    run("fit", data, "-o", tmp_path / "other.npz", "--quiet", "--jobs", "3")
    assert model.read_bytes() == (tmp_path / "other.npz").read_bytes()


# ----------------------------------------------------------------------------------------- the test


def test_classes_are_tested_by_accuracy_and_log_loss(data, model, tmp_path, capsys):
    test = write_targets(tmp_path / "test.svm", Y[:40], 40)
    run("fit", data, "-o", model, "--quiet", "--test", test)
    scores = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    fitted = load_model(model)
    shares = np.unique(Y[:40], return_counts=True)[1] / 40
    assert scores == {
        "accuracy": f"{accuracy_score(Y[:40], fitted.predict(TEST)):.6g}",
        "log loss": f"{log_loss(Y[:40], fitted.predict_proba(TEST)):.6g}",
        "baseline accuracy (most frequent class)": f"{shares.max():.6g}",
        "baseline log loss (class frequencies)": f"{-np.sum(shares * np.log(shares)):.6g}",
    }


def test_numbers_are_tested_by_r2_and_rmse(data, model, tmp_path, capsys, monkeypatch):
    targets = np.linspace(1e6, 1e6 + 2, 40)
    test = write_targets(tmp_path / "test.svm", targets, 40)
    read_small_blocks(monkeypatch)
    run("fit", data, "-o", model, "--quiet", "--test", test, "--model", "ridge")
    scores = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    predicted = load_model(model).predict(TEST)
    assert float(scores["R2"]) == pytest.approx(r2_score(targets, predicted), rel=1e-5)
    rmse = np.sqrt(np.mean((targets - predicted) ** 2))
    assert float(scores["RMSE"]) == pytest.approx(rmse, rel=1e-5)


def test_a_label_that_was_not_there_is_refused_after_the_model_was_written(
    data, model, tmp_path, capsys
):
    test = write_targets(tmp_path / "test.svm", [-1, 0, 7], 3)
    error = refused(capsys, 1, "fit", data, "-o", model, "--quiet", "--test", test)
    assert "has the label 7, which the model was not fitted on" in error
    assert load_model(model).classes_.tolist() == [-1, 0, 1]


def test_further_columns_of_a_test_are_dropped_or_refused_before_anything_takes_long(
    data, model, tmp_path, capsys
):
    (tmp_path / "wide.svm").write_text("1 2:1 12:5\n")
    command = ["fit", data, "-o", model, "--test", tmp_path / "wide.svm"]
    error = refused(capsys, 1, *command, "--strict")
    assert f"wide.svm has 12 features, but {data} has 9: leave out --strict" in error
    assert not model.exists()
    run(*command)
    assert "wide.svm: dropped 1 values in 1 rows" in capsys.readouterr().err
    run(*command, "--quiet", "--force", "--n-features", 12)
    run(*command, "--force", "--drop-unseen")
    assert "wide.svm: dropped 1 values in 1 rows" in capsys.readouterr().err
    run("predict", model, tmp_path / "wide.svm", "--drop-unseen", "--one-based")
    assert "dropped 1 values" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run(*command, "--strict", "--drop-unseen")
    assert "not allowed with argument" in capsys.readouterr().err


def test_what_comes_next_is_noted_on_a_terminal(data, model, capsys, monkeypatch):
    run("fit", data, "-o", model)
    assert "lists the largest" not in capsys.readouterr().err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    run("fit", data, "-o", model, "--force")
    note = f"polysparse: note: polysparse terms {model} -n 5 lists the largest terms."
    assert note in capsys.readouterr().err.splitlines()
    run("fit", data, "-o", model, "--force", "--quiet")
    assert "lists the largest" not in capsys.readouterr().err


def test_a_vocabulary_is_read_once(data, model, tmp_path, monkeypatch):
    run("expand", data, tmp_path / "out", "--observed", "--quiet")
    seen = []
    before(monkeypatch, "read the vocabulary", lambda *given: seen.append(given[0]))
    vocabulary = tmp_path / "out.vocabulary"
    run("fit", data, "-o", model, "--vocabulary", vocabulary, "--no-intercept", "--quiet")
    assert seen == [vocabulary]
    assert not load_model(model).intercept_.any()


# ------------------------------------------------------------------------------------- what is said


def test_success_is_one_line(data, model, capsys):
    run("fit", data, "-o", model, "--one-based")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith(
        f"polysparse: {model}: logistic regression, 120 rows, 54 columns, "
    )
    assert " iteration" in captured.err


def test_quiet_silences_it(data, model, capsys):
    run("fit", data, "-o", model, "--quiet")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_in_a_terminal_the_solver_tells_of_every_iteration(data, model, capsys, monkeypatch):
    pretend_terminal(monkeypatch)
    run("fit", data, "-o", model, "--one-based")
    captured = capsys.readouterr()
    assert captured.out == ""
    n_iter = int(np.max(load_model(model).n_iter_))
    assert captured.err.count("objective") >= n_iter


def test_a_solver_that_did_not_end_is_a_note(data, model, capsys):
    run("fit", data, "-o", model, "--one-based", "--max-iter", "1", "-C", "100")
    notes = [line for line in capsys.readouterr().err.splitlines() if ": note: " in line]
    assert len(notes) == 1
    assert "--max-iter" in notes[0]


# ----------------------------------------------------------------------------------------- refusals


def test_data_without_labels_are_refused(model, tmp_path, capsys):
    sparse.save_npz(tmp_path / "in.npz", X)
    error = refused(capsys, 1, "fit", tmp_path / "in.npz", "-o", model)
    assert "in.npz has no labels to fit a model to" in error


def test_data_without_rows_are_refused(model, tmp_path, capsys):
    (tmp_path / "in.svm").write_text("")
    assert "in.svm has no " in refused(capsys, 1, "fit", tmp_path / "in.svm", "-o", model)


def test_numbers_are_no_classes(model, tmp_path, capsys):
    write_targets(tmp_path / "in.svm", np.linspace(0.5, 1, 120))
    error = refused(capsys, 1, "fit", tmp_path / "in.svm", "-o", model, "--quiet")
    assert "has the label 0.5; classes are whole numbers. Give --model ridge" in error


def test_one_class_is_refused(model, tmp_path, capsys):
    write_targets(tmp_path / "in.svm", [1] * 120)
    assert "class" in refused(capsys, 1, "fit", tmp_path / "in.svm", "-o", model, "--quiet")
    assert not model.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--alpha", "1"], "--alpha only applies with --model ridge or poisson"),
        (["--model", "ridge", "--penalty", "l1"], "--penalty only applies with --model logistic"),
        (["--model", "lasso", "--l1-ratio", "1"], "--l1-ratio only applies with --model logistic"),
        (["--model", "ridge", "-C", "1"], "-C only applies with --model logistic"),
        (["--observed", "--hashed", "9"], "cannot be combined"),
        (["--min-count", "2"], "--min-count only applies with --observed"),
    ],
    ids=str,
)
def test_options_that_make_no_sense(options, message, data, model, capsys):
    assert message in refused(capsys, 2, "fit", data, "-o", model, *options)


@pytest.mark.parametrize(
    "option",
    [
        ["-C", "0"],
        ["-C", "nan"],
        ["--alpha", "-1"],
        ["--tol", "x"],
        ["--max-iter", "0"],
        ["--jobs=0"],
    ],
)
def test_numbers_that_cannot_be(option, data, model, capsys):
    with pytest.raises(SystemExit) as stopped:
        run("fit", data, "-o", model, *option)
    assert stopped.value.code == 2
    assert "is not a number" in capsys.readouterr().err


def test_standard_input_is_read_once(model, monkeypatch, data, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data.read_bytes())))
    run("fit", "-", "-o", model, "--quiet")
    assert load_model(model).n_features_in_ == 9
    error = refused(capsys, 2, "fit", "-", "-o", model, "--force", "--test", "-")
    assert "cannot both be -" in error


def test_an_existing_file_is_kept(data, model, capsys):
    model.write_text("mine")
    error = refused(capsys, 2, "fit", data, "-o", model)
    assert "model.npz already exists: give --force to overwrite it" in error
    assert model.read_text() == "mine"
    run("fit", data, "-o", model, "--force", "--quiet")
    assert load_model(model).n_features_in_ == 9


def test_an_input_is_never_replaced(data, capsys):
    before, test = data.read_bytes(), data.parent / "test.svmlight"
    test.write_bytes(before)
    for output in (data, test):
        error = refused(capsys, 2, "fit", data, "-o", output, "--test", test, "--force")
        assert "is or contains an input" in error
        assert output.read_bytes() == before


def test_folders(data, tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    assert "is not a regular file" in refused(
        capsys, 2, "fit", data, "-o", tmp_path / "folder", "--force"
    )
    assert "no such directory" in refused(capsys, 2, "fit", data, "-o", tmp_path / "a" / "b")


def test_a_memory_limit_is_held(data, model, capsys):
    error = refused(capsys, 1, "fit", data, "-o", model, "--quiet", "--max-memory", "1kB")
    assert "--max-memory=1000 (1.0 kB) is too little" in error
    options = ["--degree", "6", "--max-memory", "100kB"]
    error = refused(capsys, 1, "fit", data, "-o", model, "--quiet", *options)
    assert re.search(r"IN and \d+ vectors of 5,004 coefficients would need --max-memory=", error)
    assert "--observed, --hashed" in error
    assert not model.exists()


def test_memory_that_is_not_there(data, model, capsys, monkeypatch):
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, 1000)
    error = refused(capsys, 1, "fit", data, "-o", model, "--quiet")
    assert "all of which a fit keeps in memory, would need" in error


def test_more_columns_than_can_be_numbered(model, tmp_path, capsys):
    (tmp_path / "in.svm").write_text("1 1:1 1000000000:1\n0 2:1\n")
    options = ["--degree", "3", "--quiet"]
    error = refused(capsys, 1, "fit", tmp_path / "in.svm", "-o", model, *options)
    assert "Or give --hashed N" in error


def test_ctrl_c_leaves_the_old_model(data, model, capsys, monkeypatch):
    model.write_text("old")
    monkeypatch.setattr(PolynomialLogisticRegression, "fit", raising(KeyboardInterrupt()))
    assert "interrupted" in refused(capsys, 130, "fit", data, "-o", model, "--force", "--quiet")
    assert model.read_text() == "old"
    assert names_in(model.parent) == ["in.svmlight", "model.npz"]


@pytest.mark.no_sanitizer
def test_a_full_disk_leaves_nothing(data, model):
    sample_files.run_on_a_full_disk(1000, "fit", data, "-o", model, "--quiet")
    assert "model.npz" not in names_in(model.parent)
    assert names_in(model.parent) == ["in.svmlight"]
