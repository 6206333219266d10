"""Groups and terms from file to file: every format, resumed runs, vocabularies, memory."""

import json

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import bits
from inside import fail_at, lower, set_free_space
from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures
from sample_files import INPUTS, OUTPUTS, X, read, refused, run

LABELS = ["a", "b", "a", None, "c", "b", "a", None, "c"]  # not contiguous
KINDS = {
    "all": [],
    "observed": ["--observed", "--min-count", 3],
    "hashed": ["--hashed", 40, "--seed", 5],
}
GROUPED = {
    "groups": ([], {"groups": LABELS}),
    "terms": (["--terms", "a:b", "c"], {"groups": LABELS, "terms": ["a:b", "c"]}),
}


@pytest.fixture
def labels(tmp_path_factory):
    """A file with a label for each column of the matrix."""
    path = tmp_path_factory.mktemp("labels") / "labels.txt"
    path.write_text("".join(f"{label or ''}\n" for label in LABELS))
    return path


def expected(kind, how):
    """The expansion in Python."""
    if kind == "all":
        return polysparse.expand(X, **how)
    if kind == "observed":
        return ObservedPolynomialFeatures(min_count=3, **how).fit_transform(X)
    return HashedPolynomialFeatures(n_columns=40, seed=5, **how).fit_transform(X)


@pytest.mark.parametrize("max_memory", ["1GiB", "60kB"])
@pytest.mark.parametrize("grouping", GROUPED)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "output"), [*zip(INPUTS, OUTPUTS, strict=False), ("in.parquet", "out")]
)
def test_formats(name, output, kind, grouping, max_memory, labels, tmp_path):
    INPUTS[name](tmp_path / name)
    options, how = GROUPED[grouping]
    given = [*KINDS[kind], "--groups", labels, *options, "--max-memory", max_memory]
    run("expand", tmp_path / name, tmp_path / output, *given)
    wanted = expected(kind, how)
    result, _ = read(tmp_path / output, wanted.shape[1])
    for array in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(result, array), getattr(wanted, array))


@pytest.mark.parametrize("grouping", GROUPED)
def test_a_vocabulary_brings_its_groups(grouping, matrix, labels, tmp_path, capsys):
    options, how = GROUPED[grouping]
    run("expand", matrix, tmp_path / "train", "--observed", "--groups", labels, *options)
    fitted = ObservedPolynomialFeatures(**how).fit(X)
    saved = tmp_path / "train.vocabulary"
    loaded = ObservedPolynomialFeatures.load(saved)
    assert loaded.basis_ == fitted.basis_
    sparse.save_npz(tmp_path / "test.npz", X[:50])
    run("expand", tmp_path / "test.npz", tmp_path / "test", "--vocabulary", saved)
    assert bits(polysparse.load(tmp_path / "test")) == bits(fitted.transform(X[:50]))
    capsys.readouterr()
    run("names", tmp_path / "train", "--json")
    names = [row["name"] for row in json.loads(capsys.readouterr().out)]
    assert names == fitted.get_feature_names_out().tolist()


def test_a_run_with_other_groups_is_not_resumed(matrix, labels, tmp_path, capsys):
    command = ["expand", matrix, tmp_path / "out", "--resume"]
    run(*command, "--groups", labels)
    before = bits(polysparse.load(tmp_path / "out"))
    capsys.readouterr()
    run(*command, "--groups", labels)
    assert "already complete, nothing to do" in capsys.readouterr().err
    others = [["--groups", "4,5"], [], ["--groups", labels, "--terms", "a:b"]]
    others.append(["--groups", "a=4,b=5"])
    for other in others:
        assert "already exists" in refused(capsys, 2, *command, *other)
    assert bits(polysparse.load(tmp_path / "out")) == before


@pytest.mark.usefixtures("small_parts")
def test_an_interrupted_run_is_resumed_only_with_its_groups(
    matrix, labels, tmp_path, capsys, monkeypatch
):
    lower(monkeypatch, CACHE_PER_THREAD=4_000)
    command = ["expand", matrix, tmp_path / "out"]
    with monkeypatch.context() as patch:
        fail_at(patch, "seal", KeyboardInterrupt())
        run(*command, "--groups", labels, code=130)
    error = refused(capsys, 1, *command, "--resume", "--groups", "4,5")
    assert "was started with other parameters" in error
    run(*command, "--resume", "--groups", labels)
    assert bits(polysparse.load(tmp_path / "out")) == bits(polysparse.expand(X, groups=LABELS))


class TestLongRows:
    """Rows of 400 values, whose expansion is far smaller than their length allows."""

    TERMS = ("--groups", "many=399,one=1", "--terms", "many:one")

    @pytest.fixture
    def rows(self, tmp_path):
        sparse.save_npz(tmp_path / "in.npz", sparse.csr_array(np.ones((5, 400))))
        return tmp_path / "in.npz"

    def test_they_are_counted_before_they_are_refused(self, rows, tmp_path, capsys):
        limit = ["--max-memory", "200kB"]
        run("expand", rows, tmp_path / "out", *limit, *self.TERMS)
        assert polysparse.load(tmp_path / "out").nnz == 5 * 400
        error = refused(capsys, 1, "expand", rows, tmp_path / "other", *limit)
        assert "the longest row" in error

    def test_so_are_observed_columns(self, rows, tmp_path):
        limit = ["--max-memory", "300kB"]
        run("expand", rows, tmp_path / "out", *limit, *self.TERMS, "--observed")
        assert polysparse.load(tmp_path / "out").shape == (5, 400)

    def test_so_is_the_space_on_disk(self, rows, tmp_path, monkeypatch):
        set_free_space(monkeypatch, 10**5)  # all pairs would take more
        run("expand", rows, tmp_path / "out", *self.TERMS)
        assert polysparse.load(tmp_path / "out").nnz == 5 * 400
