"""The command `top`: the products with the largest scores, from a file with labels."""

import csv
import json
import re
from functools import partial

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import polysparse.cli.top  # noqa: E402
import sample_files  # noqa: E402
from checks import names_in  # noqa: E402
from inside import lower, set_available_memory  # noqa: E402
from polysparse import (  # noqa: E402
    PolynomialLogisticRegression,
    PolynomialPoissonRegressor,
    PolynomialRidge,
    TableEncoder,
    interaction_test,
    top_interactions,
)
from sample_files import INPUTS, X, Y, refused, run  # noqa: E402

BINARY = (Y > 0) * 2.0 - 1
NUMBERS = (X[:, [2]] * X[:, [5]]).toarray()[:, 0] + X[:, [4]].toarray()[:, 0]


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The matrix of `sample_files`; its labels are those of a test."""

    def write(labels):
        monkeypatch.setattr(sample_files, "Y", labels)
        sample_files.write_svmlight(tmp_path / "in.svmlight")
        return tmp_path / "in.svmlight"

    return write


def top_of(target, k=20, **parameters):
    """The result of the function, with the defaults of the command."""
    return top_interactions(X, target, k, **{"score": "correlation", "min_count": 10} | parameters)


def found(capsys, *arguments):
    """The table that the command prints as JSON."""
    capsys.readouterr()
    run("top", *arguments, "--json")
    return json.loads(capsys.readouterr().out)


def columns_of(top):
    """The table of a result, as JSON has it."""
    return json.loads(json.dumps({name: list(each) for name, each in top.to_table().items()}))


# ------------------------------------------------------------------------------- what is scored


def test_two_labels_are_classes_scored_by_residuals_of_a_logistic_regression(data, capsys):
    path = data(BINARY)
    model = PolynomialLogisticRegression(degree=1).fit(X, BINARY)
    residuals = (BINARY > 0) - model.predict_proba(X)[:, 1]
    expected = columns_of(top_of(residuals, 20))
    assert found(capsys, path) == expected
    run("top", path, "--json")
    assert "residuals of a logistic regression on single features, for class 1." in (
        capsys.readouterr().err
    )


def test_numbers_are_scored_by_residuals_of_a_linear_regression(data, capsys):
    path = data(np.round(NUMBERS, 2))
    y = np.round(NUMBERS, 2)
    residuals = y - PolynomialRidge(degree=1).fit(X, y).predict(X)
    assert found(capsys, path, "-k", 5) == columns_of(top_of(residuals, 5))
    raw = found(capsys, path, "-k", 5, "--model", "none")
    assert raw == columns_of(top_of(y, 5))


def test_counts_are_scored_by_residuals_of_a_poisson_regression(data, capsys):
    counts = np.floor(2 * np.abs(NUMBERS))
    residuals = counts - PolynomialPoissonRegressor(1 / 120, degree=1).fit(X, counts).predict(X)
    table = found(capsys, data(counts), "--model", "poisson")
    assert table == columns_of(top_of(residuals))


def test_several_classes_each_have_scores(data, capsys):
    path = data(Y)
    model = PolynomialLogisticRegression(degree=1).fit(X, Y)
    residuals = (Y[:, None] == [-1, 0, 1]) - model.predict_proba(X)
    target = pd.DataFrame(residuals, columns=["-1", "0", "1"])
    table = found(capsys, path, "--model", "logistic")
    expected = columns_of(top_of(target, 20))
    np.testing.assert_allclose(table.pop("score"), expected.pop("score"), rtol=1e-9)
    assert table == expected
    assert set(table["target"]) <= {"-1", "0", "1"}
    numbers = found(capsys, path)
    assert "target" not in numbers


@pytest.mark.parametrize("name", [name for name in INPUTS if name not in ("in.npz", "in.mtx")])
def test_every_format_with_labels_gives_the_same(name, tmp_path, capsys):
    INPUTS[name](tmp_path / name)
    residuals = Y - PolynomialRidge(degree=1).fit(X, Y).predict(X)
    assert found(capsys, tmp_path / name) == columns_of(top_of(residuals, 20))


def test_fields_of_libffm_are_groups(tmp_path, capsys):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (60, 2)) + np.array([0, 3])
    labels = rng.integers(0, 2, 60)
    lines = [f"{y} 0:{a}:1 1:{b}:1" for y, (a, b) in zip(labels, codes, strict=True)]
    (tmp_path / "in.ffm").write_text("\n".join(lines))
    table = found(capsys, tmp_path / "in.ffm", "-k", 100, "--powers", "--min-count", 1)
    pairs = {tuple(sorted((int(a[1:]), int(b[1:])))) for a, b in table["features"]}
    assert {(a // 3, b // 3) for a, b in pairs} == {(0, 1)}
    assert len(pairs) == len(np.unique(codes, axis=0))


def people():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"job": rng.choice(["cook", "pilot"], 800), "age": rng.integers(18, 60, 800)}
    )
    table["town"] = rng.choice(["here", "there", "far"], 800)
    is_high = (table["job"] == "pilot") & (table["town"] == "far")
    table["income"] = np.where(is_high ^ (rng.random(800) < 0.15), "high", "low")
    table["amount"] = is_high + 0.001 * table["age"]
    return table


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_variables_of_tables_are_groups(ending, tmp_path, capsys):
    table, path = people(), tmp_path / f"people.{ending}"
    {"csv": table.to_csv, "parquet": table.to_parquet}.get(ending, table.to_feather)(
        path, **({"index": False} if ending != "arrow" else {})
    )
    top = found(capsys, path, "--target", "income", "--drop", "amount", "-k", 100)
    assert top["name"][0] == "job=pilot town=far"
    assert top["score"][0] < 0  # "low" is the second class
    assert not any(a.split("=")[0] == b.split("=")[0] for a, b in top["features"])
    encoder = TableEncoder()
    features = ["job", "age", "town"]
    encoded = encoder.fit_transform(table[features])
    amounts = table["amount"].to_numpy()
    residuals = amounts - PolynomialRidge(degree=1).fit(encoded, amounts).predict(encoded)
    expected = top_interactions(
        encoded,
        residuals,
        3,
        score="correlation",
        min_count=10,
        groups=encoder.groups_,
        feature_names=encoder.get_feature_names_out(),
    )
    numbers = found(capsys, path, "--target", "amount", "--drop", "income", "-k", 3)
    assert numbers["name"] == expected.names
    np.testing.assert_allclose(numbers["score"], expected.scores, rtol=1e-6)


# ---------------------------------------------------------------------------------- which search


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (["--degree", "3"], {"degree": 3}),
        (["--degree", "1-2"], {"degree": (1, 2)}),
        (["--powers"], {"interaction_only": False}),
        (
            ["--min-count", "12"],
            {"min_count": 12},
        ),
        (["--score", "dot"], {"score": "dot"}),
        (["--score", "normalized", "--jobs", "2"], {"score": "normalized"}),
        (["--groups", "3,3,3"], {"groups": {"g0": 3, "g1": 3, "g2": 3}}),
        (["--among", "1,4", "--hierarchy", "weak"], {"among": [1, 4], "hierarchy": "weak"}),
    ],
)
def test_options_are_the_parameters_of_the_function(options, parameters, data, capsys):
    path = data(Y)
    top = top_of(Y, 9, **parameters)
    assert found(capsys, path, "--model", "none", "-k", 9, *options) == columns_of(top)


def test_names_of_features(data, tmp_path, capsys):
    (tmp_path / "names").write_text("\n".join("abcdefghi"))
    path = data(Y)
    options = ["--feature-names", tmp_path / "names", "--among", "b,4", "--hierarchy", "strong"]
    table = found(capsys, path, *options)
    assert table["features"] == [["b", "e"]]
    run("top", path, "--feature-names", tmp_path / "names")
    assert "x0 is column 1" not in capsys.readouterr().err


# ------------------------------------------------------------------------------------- p-values


def test_a_test_is_that_of_the_function(data, capsys):
    y = np.round(NUMBERS, 2)
    path = data(y)
    table = found(capsys, path, "--test", 19, "-k", 4, "--degree", 3)
    assert table == columns_of(interaction_test(X, y, 4, degree=3, n_null=19, random_state=0))
    assert list(table)[:5] == ["name", "score", "rows", "bonferroni", "p"]
    assert (table["name"][0], table["p"][0]) == ("x2 x5", 0.05)
    table = found(capsys, path, "--test", 9, "--seed", 7, "--min-count", 15)
    how = {"n_null": 9, "random_state": 7, "min_count": 15}
    assert table == columns_of(interaction_test(X, y, 20, **how))


def test_classes_of_a_table_are_tested(tmp_path, capsys):
    people().to_csv(tmp_path / "people.csv", index=False)
    options = ["--target", "income", "--drop", "amount,age", "--test", 19, "-k", 2]
    run("top", tmp_path / "people.csv", *options)
    printed = capsys.readouterr()
    assert re.search(r"note: scores are for class \S+\.$", printed.err, re.MULTILINE)
    lines = printed.out.splitlines()
    assert re.match(r"job=\w+ town=far .* 0\.05$", lines[1])
    assert "logistic main effects; p is adjusted for all of them, in steps of 0.05" in lines[-1]


def test_more_than_two_classes_are_not_tested(data, capsys):
    error = refused(capsys, 1, "top", data(Y), "--model", "logistic", "--test", 9, "--quiet")
    assert "has 3 classes, and --test is for numbers or two classes" in error


# --------------------------------------------------------------------------------------- outputs


def test_the_table_is_printed(data, capsys):
    run("top", data(Y), "--model", "none", "-k", 4)
    printed = capsys.readouterr()
    assert printed.out == f"{top_of(Y, 4)}\n"
    assert "note: scores are against the labels." in printed.err
    assert "note: x0 is column 1 of the svmlight text." in printed.err


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "feather"])
def test_the_table_is_written(ending, data, tmp_path, capsys):
    path, out = data(Y), tmp_path / f"top.{ending}"
    run("top", path, "--model", "none", "-k", 6, "--degree", 3, "-o", out, "--quiet")
    assert capsys.readouterr() == ("", "")
    read_csv = partial(pd.read_csv, converters={"score": float})
    read = {"csv": read_csv, "parquet": pd.read_parquet}.get(ending, pd.read_feather)
    table, top = read(out), top_of(Y, 6, degree=3)
    assert list(table) == ["name", "score", "rows", "column", "feature1", "feature2", "feature3"]
    assert table["name"].tolist() == top.names
    assert table["score"].tolist() == top.scores.tolist()
    assert table["column"].tolist() == top.columns.tolist()
    members = table[["feature1", "feature2", "feature3"]].to_numpy()
    assert [tuple(each[~pd.isna(each)]) for each in members] == top.features
    assert pd.isna(members).any()


def test_names_with_commas_are_quoted(data, tmp_path):
    (tmp_path / "names").write_text("\n".join(f'"{c}", or so' for c in "abcdefghi"))
    out = tmp_path / "top.csv"
    run("top", data(Y), "--feature-names", tmp_path / "names", "-o", out, "--quiet", "-k", 1)
    _, row = csv.reader(out.read_text().splitlines())
    assert re.fullmatch(r'"[a-i]", or so', row[-1])


def test_nothing_found(data, tmp_path, capsys):
    path = data(Y)
    run("top", path, "--degree", "9-9")
    printed = capsys.readouterr()
    assert printed.out.split() == ["name", "score", "rows"]
    assert "no interaction occurs in at least 10 rows: lower --min-count" in printed.err
    run("top", path, "--degree", "9-9", "-o", tmp_path / "top.csv")
    assert (tmp_path / "top.csv").read_text() == "name,score,rows,column\n"


def test_it_is_drawn(data, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    run("top", data(Y), "--plot", tmp_path / "top.svg", "--quiet")
    assert (tmp_path / "top.svg").read_bytes().startswith(b"<?xml")


# --------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--degree", "1"], "--degree 1 has nothing to score"),
        (["--degree", "0-2"], "--degree 0-2 has nothing to score"),
        (["--degree", "3-2"], "--degree 3-2 has nothing to score"),
        (["--hierarchy", "weak"], "--among and --hierarchy only apply together"),
        (["--among", "1"], "--among and --hierarchy only apply together"),
        (["--seed", "1"], "--seed only applies with --test"),
        (["--test", "9", "--score", "dot"], "of its own, for all interactions: leave out --score"),
        (["--test", "9", "--model", "none"], "leave out --model none"),
        (["--test", "9", "--degree", "1-2"], "--test is for interactions of 2 to 5 features"),
        (["--groups", "3,3"], "groups have 6 features in all, but there are 9"),
        (["-o", "top.xls"], "unknown ending. Known are .csv, .parquet, .arrow and .feather"),
        (["--plot", "top.xls"], "unknown ending. Known are .png"),
        (["-o", "top.csv", "--json"], "--json prints the table, and --output writes it"),
        (["--target", "y"], "--target only applies to tables"),
    ],
)
def test_misuse(options, message, data, tmp_path, capsys, monkeypatch):
    path = data(Y)
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, 2, "top", path, "--quiet", *options)
    assert names_in(tmp_path) == ["in.svmlight"]


def test_files_that_cannot_be_searched(data, tmp_path, capsys):
    error = refused(capsys, 1, "top", data(np.ones(120)), "--quiet")
    assert "are the same: there is nothing to explain" in error
    sample_files.INPUTS["in.npz"](tmp_path / "in.npz")
    error = refused(capsys, 1, "top", tmp_path / "in.npz", "--quiet")
    assert "has no labels to score interactions against" in error
    (tmp_path / "empty.svmlight").write_text("")
    error = refused(capsys, 1, "top", tmp_path / "empty.svmlight", "--quiet")
    assert "has no rows to score interactions against" in error
    people().to_csv(tmp_path / "people.csv", index=False)
    error = refused(capsys, 2, "top", tmp_path / "people.csv", "--quiet")
    assert "give the column with its labels, --target NAME" in error
    options = ["--target", "income", "--model", "linear", "--quiet"]
    error = refused(capsys, 1, "top", tmp_path / "people.csv", *options)
    assert "labels are classes such as 'high', but --model linear is for numbers" in error


def test_features_of_among_that_do_not_exist(data, capsys):
    options = ["--among", "b", "--hierarchy", "weak", "--quiet"]
    assert "among has 'b', which is not a feature" in refused(capsys, 1, "top", data(Y), *options)


def test_existing_files_are_kept(data, tmp_path, capsys):
    (tmp_path / "top.csv").write_text("mine")
    path = data(Y)
    assert "already exists" in refused(capsys, 2, "top", path, "-o", tmp_path / "top.csv")
    assert (tmp_path / "top.csv").read_text() == "mine"
    run("top", path, "-o", tmp_path / "top.csv", "--force", "--quiet")
    assert (tmp_path / "top.csv").read_text().startswith("name,score")


def test_a_limit_of_memory(data, capsys, monkeypatch):
    path = data(Y)
    error = refused(capsys, 1, "top", path, "--quiet", "--max-memory", "1kB")
    assert re.search(r"and a search of its \d+ values would need --max-memory=\d+", error)
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, 1000)
    error = refused(capsys, 1, "top", path, "--quiet")
    assert re.search(r"and a search of its \d+ values", error)


def test_warnings_are_notes(data, capsys, monkeypatch):
    monkeypatch.setattr("polysparse.search.progress.FIRST_ESTIMATE", 0.0)
    monkeypatch.setattr("polysparse.search.progress.LONG", 0.0)
    monkeypatch.setattr(
        polysparse.cli.top, "search", lambda *a, progress, **k: _warned(progress, *a, **k)
    )
    run("top", data(Y))
    assert "note: The search may take about" in capsys.readouterr().err


def _warned(progress, *arguments, **parameters):
    from polysparse.search.functions import search
    from polysparse.search.progress import LongSearch

    LongSearch(progress)(0.5)
    return search(*arguments, **parameters)
