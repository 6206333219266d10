"""Tables on the command line: every command, from CSV, Parquet and Arrow files."""

import json
import os
import threading

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from checks import names_in  # noqa: E402
from inside import lower  # noqa: E402
from model_data import may_end_by_rounding  # noqa: E402
from polysparse import (  # noqa: E402
    PolynomialLogisticRegression,
    PolynomialRidge,
    TableEncoder,
    expand,
    load,
    load_model,
)
from polysparse.cli.progress_bar import ProgressBar  # noqa: E402
from sample_files import files_in, refused, run  # noqa: E402

# NumPy 1.24 warns of the NaN that pandas 2.1 writes into a CSV file.
cast_by_pandas = pytest.mark.filterwarnings("ignore:invalid value encountered in cast")

LEVELS = {
    "education": ["school", "bachelor", "master"],
    "occupation": ["sales", "craft", "service", "farming"],
    "shift": ["day", "night"],
}
N_ROWS, N_TRAINING = 900, 700


def people():
    """A table like UCI Adult, of which two pairs of variables interact."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.choice(each, N_ROWS) for name, each in LEVELS.items()})
    table["hours"] = rng.integers(20, 60, N_ROWS)
    score = 3 * (table["education"].eq("master") & table["occupation"].eq("sales"))
    score += (table["hours"] - 40) / 10 * table["shift"].eq("night")
    table["income"] = np.where(score + rng.logistic(size=N_ROWS) > 1, "high", "low")
    table["amount"] = score.round(3)
    return table


PEOPLE = people()
TRAINING, TEST = PEOPLE[:N_TRAINING], PEOPLE[N_TRAINING:]
FEATURES = [*LEVELS, "hours"]


def write(path, table):
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    elif path.suffix == ".arrow":
        table.reset_index(drop=True).to_feather(path)
    else:
        table.to_csv(path, index=False)
    return path


@pytest.fixture
def inside(tmp_path, monkeypatch):
    """A folder with tables, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for ending in (".csv", ".csv.gz", ".parquet", ".arrow"):
        write(tmp_path / f"train{ending}", TRAINING.drop(columns="amount"))
    write(tmp_path / "test.csv", TEST.drop(columns="amount"))
    write(tmp_path / "amounts.csv", TRAINING.drop(columns="income"))
    return tmp_path


def fit(*options, name="train.csv", target="income", out="model.npz"):
    run("fit", name, "--target", target, "-o", out, "--force", *options)
    return load_model(out)


def assert_same(found, expected, table):
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.intercept_, expected.intercept_)
    np.testing.assert_array_equal(found.predict(table), expected.predict(table))


# ------------------------------------------------------------------------------------- as in Python


@pytest.mark.parametrize("name", ["train.csv", "train.csv.gz", "train.parquet", "train.arrow"])
def test_fit_is_that_of_python_bit_for_bit(name, inside):
    expected = PolynomialLogisticRegression().fit(TRAINING[FEATURES], TRAINING["income"])
    found = fit(name=name)
    assert_same(found, expected, TEST)
    assert found.classes_.tolist() == ["high", "low"]
    assert list(found.importance()["name"])[:2] == list(expected.importance()["name"])[:2]


def test_a_regression(inside):
    expected = PolynomialRidge().fit(TRAINING[FEATURES], TRAINING["amount"])
    found = fit("--model", "ridge", name="amounts.csv", target="amount")
    assert_same(found, expected, TEST)


@pytest.mark.parametrize(
    ("options", "encoder"),
    [
        (["--categorical", "hours", "--min-frequency", "20"], {"min_frequency": 20}),
        (["--categorical", "hours", "--max-categories", "5"], {"max_categories": 5}),
        (["--categorical", "hours", "--min-frequency", "0.02"], {"min_frequency": 0.02}),
    ],
)
def test_encodings_are_those_of_python(options, encoder, inside):
    encoder = TableEncoder(FEATURES, **encoder)
    model = PolynomialLogisticRegression(categorical_features=encoder)
    expected = model.fit(TRAINING[FEATURES], TRAINING["income"])
    found = fit(*options)
    assert_same(found, expected, TEST)
    again = found.set_params(tol=1e-6).fit(TRAINING[FEATURES], TRAINING["income"])
    assert_same(again, expected, TEST)


def test_terms_of_variables(inside):
    terms = ["education:occupation", "shift*hours"]
    expected = PolynomialLogisticRegression(terms=terms)
    expected.fit(TRAINING[FEATURES], TRAINING["income"])
    found = fit("--terms", terms[0], "--terms", terms[1])
    assert_same(found, expected, TEST)


@pytest.mark.parametrize("columns", ["observed", "hashed"])
def test_other_columns(columns, inside):
    options = {"observed": ["--observed"], "hashed": ["--hashed", "64"]}[columns]
    model = fit(*options)
    assert model.score(TEST, TEST["income"]) > 0.6


def test_columns_that_are_dropped(inside):
    found = fit("--drop", "education,hours")
    assert found.feature_names_in_.tolist() == ["occupation", "shift"]


def numbered(holes):
    """A table of numbers that are levels, some of them missing: codes, and fractions."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"zip": rng.choice([9, 10, 100, 1001, 20500], 300)})
    table["rate"] = rng.choice([0.1, 1.0, 2.5, 10.0, 1e-05, 1e16], 300)
    table["size"] = rng.normal(size=300) * 10.0 ** rng.integers(-5, 5, 300)
    table["y"] = table["zip"] / 1000 + table["rate"].eq(1.0) * table["size"] + rng.normal(size=300)
    if holes:
        table["zip"] = table["zip"].where(rng.random(300) > 0.1).astype("Int64")
        table["rate"] = table["rate"].where(rng.random(300) > 0.1)
    return table


@may_end_by_rounding
@cast_by_pandas
@pytest.mark.parametrize("holes", [False, True])
def test_numbers_that_are_levels(holes, inside, capsys):
    table, listed = numbered(holes), ["zip", "rate"]
    table.to_csv("numbers.csv", index=False)  # has 20500, even if some are missing
    again = table.astype({"zip": float}) if holes else table  # as read_csv returns it
    again.to_csv("again.csv", index=False)  # has 20500.0, if some are missing
    assert ("20500.0" in (inside / "again.csv").read_text()) == holes
    again.to_parquet("again.parquet", index=False)
    X = again.drop(columns="y")
    expected = PolynomialRidge(categorical_features=listed).fit(X, again["y"])
    expected.save("python.npz")
    for name in ("numbers.csv", "again.csv", "again.parquet"):
        options = "--model", "ridge", "--categorical", ",".join(listed)
        found = fit(*options, name=name, target="y")
        assert_same(found, expected, X)
        for each in (found, expected):
            assert list(each.table_encoder_.categories_[0])[:3] == ["9", "10", "100"]
        for model in ("model.npz", "python.npz"):
            capsys.readouterr()
            run("predict", model, name, "--strict", "--quiet")
            predictions = np.array(capsys.readouterr().out.split(), float)
            np.testing.assert_array_equal(predictions, expected.predict(X))


def test_codes_with_zeros_keep_them(inside):
    (inside / "codes.csv").write_text("zip,y\n007,0\n7,1\n7.0,2\n010,3\n")
    found = fit("--model", "ridge", "--categorical", "zip", name="codes.csv", target="y")
    assert list(found.table_encoder_.categories_[0]) == ["007", "7", "010"]


# ------------------------------------------------------------------------------------------ predict


def test_predictions_are_those_of_python(inside, capsys):
    model = fit()
    capsys.readouterr()
    run("predict", "model.npz", "test.csv")
    assert capsys.readouterr().out.split() == model.predict(TEST).tolist()
    write(inside / "mixed.csv", TEST[["hours", "amount", "shift", "occupation", "education"]])
    run("predict", "model.npz", "mixed.csv", "--proba", "--quiet")
    found = [line.split() for line in capsys.readouterr().out.splitlines()]
    np.testing.assert_allclose(np.array(found, float), model.predict_proba(TEST))


def test_columns_that_are_missing_from_a_table(inside, capsys):
    fit()
    write(inside / "few.csv", TEST[["hours", "shift"]])
    error = refused(capsys, 1, "predict", "model.npz", "few.csv")
    assert "few.csv: there is no column 'education', 'occupation'" in error
    assert "Its columns are 'hours', 'shift'" in error


def test_levels_that_are_not_known(inside, capsys):
    model = fit()
    other = TEST.assign(shift="evening")
    write(inside / "other.csv", other)
    capsys.readouterr()
    run("predict", "model.npz", "other.csv")
    captured = capsys.readouterr()
    assert captured.out.split() == model.predict(other).tolist()
    note = "note: other.csv: column 'shift' has levels in 200 rows that the model does not know, "
    note += "such as 'evening': they are ignored, and --strict would refuse them."
    assert note in captured.err
    run("fit", "train.csv", "--target=income", "-o", "m.npz", "--test", "other.csv")
    assert "other.csv: column 'shift' has levels in 200 rows" in capsys.readouterr().err
    run("predict", "model.npz", "other.csv", "--quiet")
    run("predict", "model.npz", "test.csv")
    assert "column" not in capsys.readouterr().err
    error = refused(capsys, 1, "predict", "model.npz", "other.csv", "--strict")
    assert "column 'shift' has the level 'evening' in row 2 (the heading is row 1)" in error
    assert "without --strict" in error


def test_missing_values_and_one_row_that_are_not_known(inside, capsys):
    fit()
    other = TEST.assign(shift=None)
    other.iloc[[5], other.columns.get_loc("education")] = "none yet"
    write(inside / "other.csv", other)
    run("predict", "model.npz", "other.csv")
    error = capsys.readouterr().err
    assert "column 'shift' has missing values in 200 rows that the model does not know: " in error
    assert (
        "'education' has levels in 1 row that the model does not know, such as 'none yet'" in error
    )


def test_a_model_that_python_fitted_predicts_files(inside, capsys):
    numbers = TRAINING[["hours", "amount"]]
    PolynomialLogisticRegression().fit(numbers, TRAINING["income"]).save("numbers.npz")
    write(inside / "numbers.csv", TEST)
    run("predict", "numbers.npz", "numbers.csv")
    expected = load_model("numbers.npz").predict(TEST[["hours", "amount"]])
    assert capsys.readouterr().out.split() == expected.tolist()


def test_scores(inside, capsys):
    model = fit("--test", "test.csv")
    accuracy = model.score(TEST, TEST["income"])
    assert f"accuracy\t{accuracy:g}" in capsys.readouterr().out
    write(inside / "new.csv", TEST.assign(income="medium").drop(columns="amount"))
    options = ["--target", "income", "-o", "m.npz", "--test", "new.csv", "--quiet"]
    error = refused(capsys, 1, "fit", "train.csv", *options)
    assert "new.csv has the label 'medium', which the model was not fitted on" in error


def test_a_table_through_a_pipe(inside):
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs named pipes")
    os.mkfifo("pipe.csv")
    content = (inside / "train.csv").read_bytes()
    thread = threading.Thread(target=(inside / "pipe.csv").write_bytes, args=[content])
    thread.start()
    found = fit(name="pipe.csv")
    thread.join()
    assert_same(found, fit(), TEST)


# ------------------------------------------------------------------------------ expand, plan, names


@pytest.mark.parametrize("output", ["out", "out.npz", "out.parquet"])
def test_an_expansion_has_names(output, inside, capsys):
    run("expand", "train.csv", output, "--target", "income", "--no-bias")
    assert "as labels, high is 0, low is 1" in capsys.readouterr().err
    run("names", output, "--json")
    names = [row["name"] for row in json.loads(capsys.readouterr().out)]
    model = PolynomialLogisticRegression().fit(TRAINING[FEATURES], TRAINING["income"])
    assert sorted(names) == sorted(model.top_terms(1000)["name"])


def test_a_description_that_is_too_long_for_a_comment(inside, capsys):
    table = pd.DataFrame({"id": [f"user {i:05}" for i in range(5000)]})
    write(inside / "ids.csv", table)
    run("expand", "ids.csv", "ids.npz", "--degree", 1, "--no-bias")
    run("names", "ids.npz", "--columns", "4999")
    assert capsys.readouterr().out == "4999\t4999\tid=user 04999\n"


def test_values_and_labels(inside):
    run("expand", "train.csv", "out", "--target", "income")
    X, y = load("out", labels=True)
    encoder = TableEncoder().fit(TRAINING[FEATURES])
    expected = expand(encoder.transform(TRAINING[FEATURES]), groups=encoder.groups_)
    assert (expected != X).nnz == 0
    np.testing.assert_array_equal(y, TRAINING["income"].eq("low"))


def test_plan(inside, capsys):
    run("plan", "train.csv", "--target", "income", "--json")
    captured = capsys.readouterr()
    assert "3 categorical columns (education, occupation, shift), 1 numeric (hours)" in captured.err
    assert json.loads(captured.out)["shape"] == [N_TRAINING, 47]


def test_a_vocabulary_has_the_levels(inside, capsys):
    run("expand", "train.csv", "out", "--target", "income", "--observed", "--min-count", 60)
    run("expand", "test.csv", "test", "--vocabulary", "out.vocabulary")
    assert load("test").shape[1] == load("out").shape[1]
    error = refused(
        capsys, 2, "expand", "test.csv", "t", "--vocabulary", "out.vocabulary", "--drop", "hours"
    )
    assert "out.vocabulary has its own columns and levels: leave out --drop" in error


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("name", ["train.csv", "train.csv.gz", "train.parquet", "train.arrow"])
@pytest.mark.parametrize("options", [[], ["--observed"]], ids=["all", "observed"])
def test_interrupted_and_resumed_it_is_the_same(options, name, inside, monkeypatch):
    lower(monkeypatch, CACHE_PER_THREAD=4_000)
    options = ["--target", "income", *options]
    run("expand", name, "whole", *options)
    with monkeypatch.context() as patch:
        advance, calls = ProgressBar.advance, []

        def stop_at_the_second(self, *arguments):
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt
            advance(self, *arguments)

        patch.setattr(ProgressBar, "advance", stop_at_the_second)
        run("expand", name, "out", *options, "--resume", code=130)
    assert ".out.polysparse-partial" in names_in(inside)
    run("expand", name, "out", *options, "--resume")
    assert files_in(inside / "out") == files_in(inside / "whole")


# -------------------------------------------------------------------------------------------- terms


def test_importance_is_listed_and_drawn(inside, capsys):
    pytest.importorskip("matplotlib")
    fit("--plot", "variables.png")
    capsys.readouterr()
    assert (inside / "variables.png").read_bytes().startswith(b"\x89PNG")
    run("terms", "model.npz", "--by", "group", "--json")
    names = json.loads(capsys.readouterr().out)["name"]
    assert {"shift:hours", "education:occupation"} <= set(names[:4])
    run("terms", "model.npz", "--within", "education:occupation", "-n", 1, "--json")
    assert json.loads(capsys.readouterr().out)["name"] == ["education=master occupation=sales"]


def test_without_groups_the_largest_terms_are_drawn(inside):
    pytest.importorskip("matplotlib")
    (inside / "in.svmlight").write_text("1 1:1 2:1\n0 2:1\n" * 20)
    run("fit", "in.svmlight", "-o", "m.npz", "--plot", "terms.svg")
    assert "<svg" in (inside / "terms.svg").read_text()


# ------------------------------------------------------------------------------------------- misuse


@pytest.mark.parametrize(
    ("code", "options", "message"),
    [
        (2, [], "train.csv is a table: give the column with its labels, --target NAME"),
        (1, ["--target", "wages"], "there is no column 'wages'. Its columns are 'education'"),
        (2, ["--target", "income", "--drop", "income"], "is listed in target and in drop"),
        (1, ["--target", "income", "--numeric", "shift"], "'day' is not a number"),
        (1, ["--target", "income", "--model", "ridge", "--quiet"], "has classes such as 'high',"),
        (2, ["--target", "income", "--n-features", "9"], "--n-features does not apply to tables"),
        (2, ["--target", "income", "--groups", "4"], "--groups does not apply to tables"),
        (2, ["--target", "income", "--min-frequency", "0"], "--min-frequency must be"),
        (2, ["--target", "income", "--terms", "shift:hour"], "Did you mean 'hours'?"),
        (2, ["--target", "income", "--plot", "a.gif"], "a.gif: unknown ending"),
    ],
)
def test_misuse(code, options, message, inside, capsys):
    error = refused(capsys, code, "fit", "train.csv", "-o", "model.npz", *options)
    assert message in error
    assert not (inside / "model.npz").exists()


def test_a_frequency_that_is_not_a_number(inside, capsys):
    with pytest.raises(SystemExit):
        run("fit", "train.csv", "-o", "model.npz", "--min-frequency", "few")
    assert "'few' is neither a number of rows nor a share of them" in capsys.readouterr().err


def test_options_on_tables_only_apply_to_tables(inside, capsys):
    (inside / "in.svmlight").write_text("1 1:1\n0 2:1\n")
    error = refused(capsys, 2, "fit", "in.svmlight", "-o", "m.npz", "--target", "income")
    assert "--target only applies to tables, but in.svmlight has numbered columns" in error


def test_a_model_of_numbered_columns_refuses_a_table(inside, capsys):
    (inside / "in.svmlight").write_text("1 1:1\n0 2:1\n")
    run("fit", "in.svmlight", "-o", "m.npz")
    error = refused(capsys, 1, "predict", "m.npz", "test.csv")
    assert "m.npz does not come from a table, but from numbered columns" in error


@cast_by_pandas
def test_missing_numbers(inside, capsys):
    write(inside / "holes.csv", TRAINING.assign(hours=TRAINING["hours"].where(lambda h: h > 25)))
    error = refused(capsys, 1, "fit", "holes.csv", "--target", "income", "-o", "m.npz")
    assert "column 'hours' is NaN or missing in row " in error
    assert "--missing indicator" in error
    model = fit("--missing", "indicator", "--drop", "amount", name="holes.csv")
    assert "hours=(missing)" in model.table_encoder_.get_feature_names_out()
