"""The options --groups and --terms, which mean what `groups` and `terms` mean in Python."""

import json

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import bits
from polysparse import (
    HashedPolynomialFeatures,
    MonomialBasis,
    ObservedPolynomialFeatures,
    PolynomialRidge,
    load_model,
)
from polysparse.cli.groups import parse_groups
from sample_files import INPUTS, X, Y, refused, run

SIZES = {"a": 4, "b": 3, "c": 2}
TEXT = "a=4,b=3,c=2"
LABELS = ["a", "b", "a", None, "c", "b", "a", None, "c"]  # not contiguous


@pytest.fixture
def labels(tmp_path):
    """A file with a label for each column of the matrix."""
    path = tmp_path / "labels.txt"
    path.write_text("".join(f"{label or ''}\n" for label in LABELS))
    return path


def printed(capsys, *arguments):
    capsys.readouterr()
    run(*arguments)
    return capsys.readouterr().out


# ------------------------------------------------------------------------------------ the options


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("10,20,5", {"g0": 10, "g1": 20, "g2": 5}),
        ("7", {"g0": 7}),
        ("1, 1", {"g0": 1, "g1": 1}),
        ("user=1000,item=500", {"user": 1000, "item": 500}),
        ("a b = 3, c=d=4", {"a b": 3, "c=d": 4}),
    ],
)
def test_sizes_and_labels_with_sizes(text, groups):
    assert parse_groups(text) == groups


def test_a_file_of_labels(labels):
    assert parse_groups(str(labels)) == LABELS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user=10,item", "'user=10,item' is not a file; give sizes like 10,20,5, labels with"),
        ("10,-3", "'10,-3' has '-3', but sizes must be at least 0; give sizes like"),
        ("u=-3,i=10", "'u=-3,i=10' has 'u=-3', but sizes must be at least 0; give sizes like"),
        ("a=2,b=3,a=4", "has the label 'a' twice"),
        (".", "Is a directory"),
    ],
)
def test_groups_that_cannot_be_read(text, message, capsys):
    with pytest.raises(SystemExit) as raised:
        run("plan", "in.npz", "--groups", text)
    assert raised.value.code == 2
    assert message in capsys.readouterr().err


def test_labels_that_are_not_text(tmp_path, capsys):
    (tmp_path / "labels").write_bytes(b"\xff\xfe\n")
    with pytest.raises(SystemExit):
        run("plan", "in.npz", "--groups", tmp_path / "labels")
    assert "is not UTF-8 text" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["plan", "expand", "fit"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--groups", "4,3"], "groups have 7 features in all, but there are 9"),
        (["--groups", TEXT, "--terms", "a:d"], "terms names 'd', which is not a group"),
        (["--groups", TEXT, "--terms", "a:a"], "the term 'a:a' names the group 'a' twice"),
        (["--groups", TEXT, "--terms", "a:b", "b:a"], "terms has 'b:a' twice"),
        (["--groups", TEXT, "--terms", "a:"], "is not a formula: a label is missing"),
        (["--terms", "x0:x9"], "terms names 'x9', which is not a group"),
        (["--terms", "x0:x1", "--degree", 3], "degree=3 contradicts terms"),
    ],
)
def test_misuse(command, options, message, tmp_path, capsys):
    name = "in.parquet" if command == "fit" else "in.npz"
    INPUTS[name](tmp_path / name)
    given = {"plan": [], "expand": [tmp_path / "out"], "fit": ["-o", tmp_path / "model.npz"]}
    error = refused(capsys, 2, command, tmp_path / name, *given[command], *options)
    assert message in error


@pytest.mark.parametrize("options", [["--groups", "4"], ["--terms", "x0"]], ids=" ".join)
@pytest.mark.parametrize("command", ["plan", "names", "rank"])
def test_a_vocabulary_has_groups_of_its_own(command, options, matrix, vocabulary, capsys):
    first = {"plan": [matrix], "names": [], "rank": ["0,1"]}[command]
    error = refused(capsys, 2, command, *first, "--vocabulary", vocabulary, *options)
    assert "has a basis: leave out --degree, --interaction-only, --no-bias, --groups and" in error


# ------------------------------------------------------------------------------------ the commands


@pytest.mark.parametrize("grouping", ["sizes", "labels"])
@pytest.mark.parametrize(
    "options",
    [[], ["--degree", 3, "--interaction-only", "--no-bias"], ["--terms", "a:b", "c", "a*c"]],
    ids=lambda options: " ".join(map(str, options)) or "none",
)
def test_expand_and_plan(options, grouping, matrix, labels, tmp_path, capsys):
    groups, given = (SIZES, TEXT) if grouping == "sizes" else (LABELS, labels)
    parameters = {"groups": groups}
    if "--degree" in options:
        parameters |= {"degree": 3, "interaction_only": True, "include_bias": False}
    if "--terms" in options:
        parameters["terms"] = ["a:b", "c", "a*c"]
    expected = polysparse.expand(X, **parameters)
    run("expand", matrix, tmp_path / "out", "--groups", given, *options)
    assert bits(polysparse.load(tmp_path / "out")) == bits(expected)
    plan = json.loads(printed(capsys, "plan", matrix, "--json", "--groups", given, *options))
    assert (tuple(plan["shape"]), plan["nnz"]) == (expected.shape, expected.nnz)
    assert not plan["is_upper_bound"]
    wanted = polysparse.plan(X, **parameters).nnz_by_degree
    assert plan["nnz_by_degree"] == {str(d): n for d, n in wanted.items()}


def test_terms_may_be_repeated(matrix, tmp_path):
    run("expand", matrix, tmp_path / "out", "--terms", "x0:x1", "x2", "--terms", "x1:x2 + x3")
    expected = polysparse.expand(X, terms=["x0:x1", "x2", "x1:x2 + x3"])
    assert bits(polysparse.load(tmp_path / "out")) == bits(expected)


def test_groups_tell_the_number_of_columns_of_text(matrix, tmp_path, capsys):
    (tmp_path / "in.svm").write_text("1 1:2 4:3\n0 2:1 5:2\n")
    run("expand", tmp_path / "in.svm", tmp_path / "out", "--groups", "3,4")
    basis = MonomialBasis(7, groups=[3, 4])
    assert polysparse.load(tmp_path / "out").shape == (2, basis.n_columns)
    error = refused(capsys, 2, "plan", matrix, "--groups", "40,3")  # an archive states its own
    assert "groups have 43 features in all, but there are 9" in error


def test_names_and_ranks(labels, tmp_path, capsys):
    basis = MonomialBasis(9, groups=LABELS)
    options = ["--n-features", 9, "--groups", labels]
    rows = json.loads(printed(capsys, "names", "--json", *options))
    assert [row["name"] for row in rows] == basis.names().tolist()
    assert printed(capsys, "rank", "2,5", *options) == f"2,5\t{basis.rank((2, 5))}\n"
    error = refused(capsys, 2, "rank", "2,6", *options)
    assert "(2, 6) is not in the basis: two of its columns are in the same group" in error


def test_ranks_of_terms(capsys):
    terms = ["a:b", "a:b:c"]
    basis = MonomialBasis(9, groups=SIZES, terms=terms)
    options = ["--n-features", 9, "--groups", TEXT, "--terms", *terms]
    assert printed(capsys, "rank", "3,4,8", *options) == f"3,4,8\t{basis.rank((3, 4, 8))}\n"
    assert "no term has its groups" in refused(capsys, 2, "rank", "4,8", *options)


def test_names_of_features_are_labels_of_terms(tmp_path, capsys):
    (tmp_path / "names").write_text("age\nhours\nsex\n")
    options = ["--n-features", 3, "--terms", "age:sex", "--feature-names", tmp_path / "names"]
    assert printed(capsys, "names", "--columns", 1, *options) == "1\t0,2\tage sex\n"


def test_names_of_what_was_written(matrix, labels, tmp_path, capsys):
    run("expand", matrix, tmp_path / "out", "--groups", labels)
    rows = json.loads(printed(capsys, "names", tmp_path / "out", "--json"))
    assert [row["name"] for row in rows] == MonomialBasis(9, groups=LABELS).names().tolist()


# ------------------------------------------------------------------------------------------ libffm


class TestFields:
    """libffm text brings its groups."""

    GROUPS = ("f0", "f0", None, "f2", "f2")

    @pytest.fixture
    def text(self, tmp_path):
        path = tmp_path / "in.ffm"
        path.write_text("1 0:1:1 2:4:0.5\n0 0:2:1 2:4:-2\n1 0:1:2 0:2:1\n0 2:5:3e1 0:1:2\n")
        return path

    @pytest.fixture
    def rows(self, text):
        return sparse.csr_array(
            [[1, 0, 0, 0.5, 0], [0, 1, 0, -2, 0], [2, 1, 0, 0, 0], [2, 0, 0, 0, 30.0]]
        )

    def test_fields_are_groups(self, text, rows, tmp_path, capsys):
        expected = polysparse.expand(rows, groups=self.GROUPS)
        run("expand", text, tmp_path / "out")
        assert bits(polysparse.load(tmp_path / "out")) == bits(expected)
        plan = json.loads(printed(capsys, "plan", text, "--json"))
        assert (tuple(plan["shape"]), plan["nnz"]) == (expected.shape, expected.nnz)

    def test_terms_name_fields(self, text, rows, tmp_path):
        run("expand", text, tmp_path / "out", "--terms", "f0:f2", "--observed")
        expected = polysparse.expand(rows, groups=self.GROUPS, terms=["f0:f2"], columns="observed")
        assert bits(polysparse.load(tmp_path / "out")) == bits(expected)

    def test_given_groups_win(self, text, rows, tmp_path):
        run("expand", text, tmp_path / "out", "--groups", "3,2")
        assert bits(polysparse.load(tmp_path / "out")) == bits(
            polysparse.expand(rows, groups=[3, 2])
        )

    def test_a_model_of_fields(self, text, rows, tmp_path, capsys):
        path = tmp_path / "model.npz"
        run("fit", text, "-o", path, "--model", "ridge", "--quiet")
        expected = PolynomialRidge(groups=self.GROUPS).fit(rows, [1, 0, 1, 0])
        np.testing.assert_array_equal(load_model(path).coef_, expected.coef_)
        (tmp_path / "new.ffm").write_text("1 0:2:1 2:5:0.5\n")  # some features do not occur
        out = printed(capsys, "predict", path, tmp_path / "new.ffm", "--quiet")
        wanted = expected.predict(sparse.csr_array([[0, 1, 0, 0, 0.5]]))
        assert float(out) == pytest.approx(wanted[0])
        assert "f0:f2" in printed(capsys, "terms", path, "--by", "group")

    @pytest.mark.parametrize("more", [[], ["--terms", "f0:f2"], ["--hashed", 50], ["--observed"]])
    def test_predict_refuses_a_feature_in_another_field(self, more, text, tmp_path, capsys):
        path, new = tmp_path / "model.npz", tmp_path / "new.ffm"
        run("fit", text, "-o", path, "--model", "ridge", "--quiet", *more)
        new.write_text("1 7:3:1 2:5:1\n1 2:2:1\n")
        message = refused(capsys, 1, "predict", path, new)
        assert "new.ffm: index 2 is in field 2, but it was in field 0 in the training" in message
        assert "model.npz" in message
        new.write_text("1 7:3:1 2:5:1 9:9:1\n")  # of 3 and 9 no field is known
        run("predict", path, new, "--quiet")

    def test_groups_that_are_not_fields_are_not_compared(self, text, tmp_path):
        path, new = tmp_path / "model.npz", tmp_path / "new.ffm"
        run("fit", text, "-o", path, "--model", "ridge", "--quiet", "--groups", "3,2")
        new.write_text("1 1:5:1 2:2:1\n")
        run("predict", path, new, "--quiet")

    def test_names_of_features_are_not_fields(self, text, tmp_path):
        """Index 3 does not occur in training, so terms may name it."""
        path, new, names = (tmp_path / name for name in ("model.npz", "new.ffm", "names.txt"))
        names.write_text("a\nb\nf7\nd\ne\n")
        terms = ["--terms", "f0:f2", "f7", "--feature-names", names]
        run("fit", text, "-o", path, "--model", "ridge", "--quiet", *terms)
        new.write_text("1 1:3:1 2:5:1\n")
        run("predict", path, new, "--quiet")

    def test_a_vocabulary_and_test_data_are_compared_too(self, text, tmp_path, capsys):
        new = tmp_path / "new.ffm"
        new.write_text("1 2:5:1 1:1:1\n")
        run("expand", text, tmp_path / "out", "--observed", "--quiet")
        vocabulary = ["--vocabulary", tmp_path / "out.vocabulary"]
        wanted = "new.ffm: index 1 is in field 1, but it was in field 0 in the training data of"
        assert wanted in refused(capsys, 1, "expand", new, tmp_path / "other", *vocabulary)
        fit = ["fit", text, "-o", tmp_path / "model.npz", "--model", "ridge"]
        assert wanted in refused(capsys, 1, *fit, "--test", new)


# ------------------------------------------------------------------------------------------ models


@pytest.fixture
def data(tmp_path):
    """The matrix with its labels, which are -1, 0 and 1."""
    INPUTS["in.svmlight"](tmp_path / "in.svmlight")
    return tmp_path / "in.svmlight"


COLUMNS = {
    "all": ([], lambda how: {"columns": "all", **how}),
    "observed": (
        ["--observed", "--min-count", 3],
        lambda how: {"columns": ObservedPolynomialFeatures(min_count=3, **how)},
    ),
    "hashed": (
        ["--hashed", 50],
        lambda how: {"columns": HashedPolynomialFeatures(n_columns=50, **how)},
    ),
}


@pytest.mark.parametrize("terms", [None, ["a:b", "c"]], ids=["groups", "terms"])
@pytest.mark.parametrize("columns", COLUMNS)
def test_fit_and_predict(columns, terms, data, labels, tmp_path):
    options, parameters = COLUMNS[columns]
    options = [*options, *(["--terms", *terms] if terms else [])]
    how = {"groups": LABELS, "terms": terms}
    path = tmp_path / "model.npz"
    run("fit", data, "-o", path, "--model", "ridge", "--quiet", "--groups", labels, *options)
    expected = PolynomialRidge(**parameters(how)).fit(X, Y)
    loaded = load_model(path)
    np.testing.assert_array_equal(loaded.coef_, expected.coef_)
    assert loaded.column_space_ == expected.column_space_
    run("predict", path, data, "-o", tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected.predict(X))


def test_fit_to_a_vocabulary_with_groups(data, labels, tmp_path):
    run("expand", data, tmp_path / "out", "--observed", "--groups", labels, "--quiet")
    options = ["--vocabulary", tmp_path / "out.vocabulary", "--quiet", "--model", "ridge"]
    run("fit", data, "-o", tmp_path / "model.npz", *options)
    expected = PolynomialRidge(columns="observed", groups=LABELS).fit(X, Y)
    loaded = load_model(tmp_path / "model.npz")
    assert loaded.column_space_ == expected.column_space_
    np.testing.assert_array_equal(loaded.coef_, expected.coef_)


@pytest.mark.parametrize("columns", COLUMNS)
def test_terms_of_a_model_may_use_the_names_of_features(columns, data, tmp_path):
    (tmp_path / "names").write_text("\n".join("abcdefghi"))
    path = tmp_path / "model.npz"
    how = ["--feature-names", tmp_path / "names", *COLUMNS[columns][0], "--terms", "a:d", "b"]
    run("fit", data, "-o", path, "--model", "ridge", "--quiet", *how)
    expected = PolynomialRidge(**COLUMNS[columns][1]({"terms": ["x0:x3", "x1"]})).fit(X, Y)
    np.testing.assert_array_equal(load_model(path).coef_, expected.coef_)


class TestTermsByGroup:
    @pytest.fixture
    def model(self, data, labels, tmp_path):
        path = tmp_path / "model.npz"
        run("fit", data, "-o", path, "--model", "ridge", "--quiet", "--groups", labels)
        return path

    def test_importance(self, model, data, capsys):
        expected = load_model(model).importance()
        found = json.loads(printed(capsys, "terms", model, "--by", "group", "--json", "-n", 3))
        assert found["name"] == list(expected["name"])[:3]
        assert found["variance"] == list(expected["variance"])[:3]
        assert found["groups"][0] == list(expected["groups"][0])
        lines = printed(capsys, "terms", model, "--by", "group").splitlines()
        assert lines[0].split() == ["name", "variance", "share"]
        assert lines[1].split()[0] == expected["name"][0]
        own = printed(capsys, "terms", model, "--by", "group", "--json", "--data", data)
        np.testing.assert_allclose(
            json.loads(own)["variance"], expected["variance"][:20], rtol=1e-6
        )

    def test_terms_of_a_tuple(self, model, capsys):
        options = ["--within", "a:b", "--sep", " * ", "--json"]
        found = json.loads(printed(capsys, "terms", model, *options))
        expected = load_model(model).top_terms(within="a:b", sep=" * ")
        assert found["name"] == list(expected["name"])
        error = refused(capsys, 1, "terms", model, "--within", "a:nope")
        assert (
            "--within='a:nope' is not a combination of groups in the model; --by group lists them"
            in error
        )

    def test_a_heat_map(self, model, tmp_path, capsys):
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
        printed(capsys, "terms", model, "--by", "group", "--plot", tmp_path / "a.png")
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")

    def test_misuse(self, model, data, tmp_path, capsys):
        for flag in ("--within", "--sep"):
            error = refused(capsys, 2, "terms", model, "--by", "group", flag, "a")
            assert f"{flag} only applies to terms: leave out --by group" in error
        assert "or with --by group" in refused(capsys, 2, "terms", model, "--data", data)
        plain = tmp_path / "plain.npz"
        run("fit", data, "-o", plain, "--model", "ridge", "--quiet")
        error = refused(capsys, 1, "terms", plain, "--by", "group")
        assert "needs a model fitted with --groups or --terms" in error
        assert "give --data IN" in error
        assert "x0" in printed(capsys, "terms", plain, "--by", "group", "--data", data)

    @pytest.mark.parametrize("flags", [["--by", "group"], ["--within", "a"]])
    def test_hashed_columns(self, data, labels, tmp_path, capsys, flags):
        path = tmp_path / "hashed.npz"
        how = ["--groups", labels, "--hashed", 64]
        run("fit", data, "-o", path, "--model", "ridge", "--quiet", *how)
        error = refused(capsys, 1, "terms", path, *flags)
        assert "hashed.npz has hashed columns" in error
        assert "fit the model without --hashed" in error
        assert "columns=" not in error
