"""Observed and hashed columns from file to file: what is written."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import bits, names_in
from inside import set_passes
from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures
from sample_files import DEGREE_3, INPUTS, KINDS, OUTPUTS, X, Y, read, refused, run, write_svmlight

FEW_INPUTS = ["in.svmlight", "in.npz", "in.parquet"]


def assert_written(path, expected, labels):
    """The file holds exactly these bits, as far as its format allows, and these labels."""
    result, own_labels = read(path, expected.shape[1])
    assert result.shape == expected.shape
    if path.suffix in ("", ".npz"):
        assert bits(result) == bits(expected)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(result, name), getattr(expected, name))
    if labels is not None:
        np.testing.assert_array_equal(own_labels, labels)


@pytest.mark.parametrize("max_memory", ["1GiB", "60kB"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("name", FEW_INPUTS)
def test_every_pair_of_formats(name, output, kind, max_memory, tmp_path, vocabulary, monkeypatch):
    monkeypatch.chdir(tmp_path)
    INPUTS[name](tmp_path / name)
    options, columns = KINDS[kind]
    run("expand", name, output, *options, "--max-memory", max_memory)
    expected = polysparse.expand(X, 3, columns=columns())
    assert_written(tmp_path / output, expected, None if name == "in.npz" else Y)
    beside = [f"{output}.vocabulary"] * (kind == "observed")
    assert names_in(tmp_path) == sorted([name, output, "elsewhere", *beside])


def test_options_reach_the_columns(tmp_path):
    write_svmlight(tmp_path / "in.svmlight")
    options = ["--degree", "2-3", "--interaction-only", "--no-bias", "--dtype", "float32"]
    run("expand", tmp_path / "in.svmlight", tmp_path / "out", *options, "--observed")
    run("expand", tmp_path / "in.svmlight", tmp_path / "hashed", *options, "--hashed", "2**5")
    small = X.astype(np.float32)
    basis = {"interaction_only": True, "include_bias": False}
    observed = ObservedPolynomialFeatures((2, 3), **basis).fit(small)
    assert bits(polysparse.load(tmp_path / "out")) == bits(observed.transform(small))
    hashed = HashedPolynomialFeatures((2, 3), n_columns=32, **basis)
    assert bits(polysparse.load(tmp_path / "hashed")) == bits(hashed.transform(small))


def test_what_becomes_zero_in_float32_does_not_occur(tmp_path):
    (tmp_path / "in.svm").write_bytes(b"1 1:1e-60 2:3\n0 2:0 3:1\n1 3:1 3:-1\n")
    run("expand", tmp_path / "in.svm", tmp_path / "out", "--observed", "--dtype", "float32")
    result = polysparse.load(tmp_path / "out")
    assert ObservedPolynomialFeatures.load(tmp_path / "out.vocabulary").inverse().tolist() == [
        [-1, -1],
        [1, -1],
        [2, -1],
        [1, 1],
        [2, 2],
    ]
    assert np.diff(result.indptr).tolist() == [3, 3, 1]


def test_the_vocabulary_is_the_one_that_fit_learns(matrix, tmp_path):
    run("expand", matrix, tmp_path / "out.npz", *DEGREE_3, "--observed", "--min-count", 5)
    loaded = ObservedPolynomialFeatures.load(tmp_path / "out.npz.vocabulary")
    fitted = ObservedPolynomialFeatures(3, min_count=5).fit(X)
    np.testing.assert_array_equal(loaded.columns_, fitted.columns_)
    np.testing.assert_array_equal(loaded.counts_, fitted.counts_)
    assert loaded.get_params() == fitted.get_params()
    with pytest.raises(ValueError, match="columns that were not kept are gone"):
        loaded.partial_fit(X)
    run("expand", matrix, tmp_path / "all", "--observed")
    whole = ObservedPolynomialFeatures.load(tmp_path / "all.vocabulary")
    twice = ObservedPolynomialFeatures().fit(sparse.vstack([X, X]))
    np.testing.assert_array_equal(whole.partial_fit(X).counts_, twice.counts_)


@pytest.mark.no_sanitizer
def test_standard_input_is_read_twice(tmp_path):
    write_svmlight(tmp_path / "in")
    with open(tmp_path / "in", "rb") as file:
        command = [sys.executable, "-m", "polysparse", "expand", "-", tmp_path / "out"]
        subprocess.run([*command, "--observed"], stdin=file, check=True)
    run("expand", tmp_path / "in", tmp_path / "same", "--observed")
    result, labels = polysparse.load(tmp_path / "out", labels=True)
    assert bits(result) == bits(polysparse.load(tmp_path / "same"))
    np.testing.assert_array_equal(labels, Y)


@pytest.mark.usefixtures("small_parts")
def test_parts_of_a_store_have_its_columns(matrix, tmp_path):
    for output, options in (("out", ["--observed"]), ("hashed", ["--hashed", 40])):
        run("expand", matrix, tmp_path / output, *options)
        parts = [part for _, part, _ in polysparse.iter_load(tmp_path / output)]
        assert len(parts) > 1
        assert (sparse.vstack(parts) != polysparse.load(tmp_path / output)).nnz == 0


def test_hashed_columns_of_a_basis_that_cannot_be_numbered(tmp_path, capsys):
    (tmp_path / "in.svm").write_bytes(b"1 1:2 4000000000000000000:3\n")
    command = ["expand", tmp_path / "in.svm", tmp_path / "out", "--observed"]
    error = refused(capsys, 1, *command)
    assert "columns; at most 2**63 - 1" in error
    assert "Or give --hashed N." in error
    run("expand", tmp_path / "in.svm", tmp_path / "out", "--hashed", 1000, *DEGREE_3)
    hashed = HashedPolynomialFeatures(3, n_columns=1000)
    last = 4 * 10**18 - 1
    tuples = [(), (0,), (last,), (0, 0), (0, last), (last, last)]
    tuples += [(0, 0, 0), (0, 0, last), (0, last, last), (last, last, last)]
    columns, signs = hashed.column_of(tuples, return_sign=True)
    row = np.zeros(1000)
    np.add.at(row, columns, signs * [1.0, 2, 3, 4, 6, 9, 8, 12, 18, 27])
    np.testing.assert_array_equal(polysparse.load(tmp_path / "out").toarray()[0], row)


@pytest.mark.parametrize(
    ("options", "passes"),
    [(["--observed"], [X[:50]]), (["--observed"], [X, X[:50]]), (["--hashed", "50"], [X[:50]])],
    ids=["first", "second", "hashed"],
)
def test_an_input_that_changes_while_it_is_read(
    options, passes, matrix, tmp_path, monkeypatch, capsys
):
    set_passes(monkeypatch, *passes)
    error = refused(capsys, 1, "expand", matrix, tmp_path / "out", *options)
    assert "in.npz changed while it was read" in error
    assert names_in(tmp_path) == ["in.npz"]


def test_values_that_were_not_there_when_they_were_counted(matrix, tmp_path, monkeypatch, capsys):
    full = sparse.csr_array(np.ones(X.shape))
    set_passes(monkeypatch, X, full)
    error = refused(capsys, 1, "expand", matrix, tmp_path / "out", "--observed")
    assert "in.npz changed while it was read" in error
    assert names_in(tmp_path) == ["in.npz"]
