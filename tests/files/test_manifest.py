"""Manifests of stores: which columns they say, today's and older ones."""

import json
import zipfile

import pytest
from scipy import sparse

import polysparse
from checks import bits
from inside import forbid_expansion, lower
from polysparse import MonomialBasis, ObservedPolynomialFeatures
from polysparse.files.description import fits_description
from sample_files import X, files_in, run


def test_manifests_say_which_columns(matrix, tmp_path):
    def columns_of(*options):
        run("expand", matrix, tmp_path / "out", *options, "--force")
        return json.loads((tmp_path / "out" / "manifest.json").read_text())["columns"]

    assert columns_of() == {"kind": "all"}
    observed = columns_of("--observed")
    assert {**observed, "sha256": ""} == {"kind": "chosen", "n_columns": 55, "sha256": ""}
    assert columns_of("--vocabulary", tmp_path / "out.vocabulary") == observed
    assert columns_of("--observed", "--max-columns", 50)["sha256"] != observed["sha256"]
    assert columns_of("--hashed", "2^4", "--seed", 3) == {
        "kind": "hashed",
        "n_columns": 16,
        "alternate_sign": True,
        "seed": 3,
    }


@pytest.mark.parametrize(("part_bytes", "rows"), [(144, 4), (145, 5)])
@pytest.mark.parametrize("label", ["1 ", ""])
def test_a_part_ends_with_the_row_that_fills_it(label, part_bytes, rows, tmp_path, monkeypatch):
    """A row here takes 2 values of 12 bytes, and 4 for its offset; 8 more if it has a label."""
    lower(monkeypatch, PART_BYTES=part_bytes if label else part_bytes - 4 * 8)
    (tmp_path / "in.svm").write_text(f"{label}1:1 2:1\n" * 20)
    run("expand", tmp_path / "in.svm", tmp_path / "out", "--degree", "1", "--no-bias")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["part_ends"] == [[n, 2 * n] for n in range(rows, 21, rows)]


def test_a_store_of_before_there_were_other_columns(matrix, tmp_path, monkeypatch):
    run("expand", matrix, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    del manifest["columns"]
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    assert bits(polysparse.load(tmp_path / "out")) == bits(polysparse.expand(X))
    forbid_expansion(monkeypatch)
    run("expand", matrix, tmp_path / "out", "--resume")  # it is what would be written


@pytest.mark.parametrize("output", ["out", "out.npz"])
def test_a_store_that_calls_its_columns_observed(output, matrix, tmp_path, monkeypatch):
    """Version 0.1 wrote that for chosen ones. It is what --resume would write today."""
    path = tmp_path / output
    command = ["expand", matrix, path, "--observed", "--min-count", 30, "--resume"]
    run(*command)
    if output == "out":
        description = json.loads((path / "manifest.json").read_text())
    else:
        with zipfile.ZipFile(path) as archive:
            description = json.loads(archive.comment)
    description["columns"]["kind"] = "observed"
    if output == "out":
        (path / "manifest.json").write_text(json.dumps(description))
        expected = ObservedPolynomialFeatures(min_count=30).fit_transform(X)
        assert bits(polysparse.load(path)) == bits(expected)
        parts = [part for _, part, _ in polysparse.iter_load(path)]
        assert (sparse.vstack(parts) != expected).nnz == 0
    else:
        with zipfile.ZipFile(path, "a") as archive:
            archive.comment = json.dumps(description).encode()
    before = files_in(path)
    forbid_expansion(monkeypatch)
    run(*command)
    assert files_in(path) == before
    run(*command[:-1], "--max-columns", 5, "--resume", code=2)  # other columns are not taken for it


@pytest.mark.parametrize(
    "columns",
    [
        None,
        "all",
        {},
        {"kind": "other"},
        {"kind": "hashed"},
        {"kind": "hashed", "n_columns": "9"},
        {"kind": "hashed", "n_columns": 2**31},
        {"kind": "chosen", "n_columns": 55},
    ],
    ids=str,
)
def test_a_manifest_with_columns_that_cannot_be(columns, matrix, tmp_path):
    run("expand", matrix, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    (tmp_path / "out" / "manifest.json").write_text(json.dumps({**manifest, "columns": columns}))
    for open_store in (polysparse.load, polysparse.iter_load):
        with pytest.raises(ValueError, match=r"manifest.json is damaged: columns: "):
            open_store(tmp_path / "out")


def test_groups_in_another_order_are_another_expansion():
    first, other = ({"a": 2, "b": 2}, {"b": 2, "a": 2})
    described = [{"basis": MonomialBasis(4, groups=each).as_dict()} for each in (first, other)]
    assert fits_description(described[0], described[0])
    assert not fits_description(described[1], described[0])
