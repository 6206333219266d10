"""Integrity of a store: what was changed on the disk is noticed, and said by our own error."""

import json
import shutil
import warnings

import numpy as np
import pytest
from scipy import sparse

import polysparse
from inside import fail_at, lower
from sample_files import X, run, write_svmlight

ARRAYS = ["indptr", "indices", "data", "labels"]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store of several parts, with labels."""
    lower(monkeypatch, PART_BYTES=5_000)
    write_svmlight(tmp_path / "in.svm")
    run("expand", tmp_path / "in.svm", tmp_path / "out", "--quiet")
    return tmp_path / "out"


def without_checksums(store):
    """What polysparse 0.1.0 wrote."""
    manifest = json.loads((store / "manifest.json").read_text())
    del manifest["checksums"]
    (store / "manifest.json").write_text(json.dumps(manifest))


def change_a_byte(file, place):
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


def read_all(store, **options):
    return list(polysparse.iter_load(store, **options))


def test_every_part_has_checksums(store):
    manifest = json.loads((store / "manifest.json").read_text())
    assert len(manifest["checksums"]) == len(manifest["part_ends"]) > 3
    assert {len(part) for part in manifest["checksums"]} == {4}


@pytest.mark.parametrize("place", [-1, -5_001, 130])
@pytest.mark.parametrize("name", ARRAYS)
def test_a_changed_byte_is_noticed_anywhere(store, name, place):
    if name in ("indptr", "labels") and place == -5_001:
        place = -501
    change_a_byte(store / f"{name}.npy", place)
    with pytest.raises(ValueError, match=r"out.* is damaged|indptr.npy goes from"):
        read_all(store)
    with pytest.raises(ValueError, match=r"out.* is damaged|indptr.npy goes from"):
        polysparse.load(store)


def test_the_error_names_file_and_rows(store):
    change_a_byte(store / "data.npy", -1)
    last = json.loads((store / "manifest.json").read_text())["part_ends"][-2][0]
    with pytest.raises(ValueError, match=rf"out/data.npy is damaged in rows {last} to 119: its ch"):
        read_all(store)


def test_parts_before_the_changed_one_are_read(store):
    change_a_byte(store / "labels.npy", -1)
    parts = polysparse.iter_load(store)
    assert next(parts)[0].start == 0
    with pytest.raises(ValueError, match=r"labels.npy is damaged"):
        list(parts)


def test_without_verifying_a_changed_value_is_not_noticed(store):
    """The choice that is stated: nothing crashes, but values are as they are on the disk."""
    change_a_byte(store / "data.npy", -1)
    read_all(store, verify=False)
    polysparse.load(store, verify=False)


def test_without_verifying_an_index_is_still_in_range(store):
    indices = np.lib.format.open_memmap(store / "indices.npy", mode="r+")
    indices[5] = 10**6
    indices.flush()
    with pytest.raises(ValueError, match=r"out is damaged.*X.indices\[5\] is 1000000"):
        read_all(store, verify=False)


@pytest.mark.parametrize("row", [1, 69, 70, 71, 119])
def test_load_checks_offsets_without_being_asked(store, row, monkeypatch):
    monkeypatch.setattr("polysparse.files.store.ROWS_TOGETHER", 7)
    indptr = np.lib.format.open_memmap(store / "indptr.npy", mode="r+")
    before, indptr[row] = int(indptr[row]), 10**6
    indptr.flush()
    with pytest.raises(
        ValueError, match=rf"indptr.npy .* decreases from 1000000 to .* in row {row}\."
    ):
        polysparse.load(store)
    indptr[row] = before
    indptr.flush()
    polysparse.load(store)


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_that_has_more_than_it_says_is_refused(store, name):
    with open(store / f"{name}.npy", "ab") as file:
        file.write(b"more")
    with pytest.raises(ValueError, match=rf"{name}.npy is damaged: it has .* bytes, but should"):
        polysparse.load(store)


def test_a_whole_store_verifies(store):
    expected = polysparse.expand(X)
    assert (polysparse.load(store, verify=True) != expected).nnz == 0
    joined = sparse.vstack([part for _, part, _ in read_all(store)])
    assert (joined != expected).nnz == 0


def test_a_store_without_checksums_is_read_and_its_structure_verified(store):
    without_checksums(store)
    assert (polysparse.load(store, verify=True) != polysparse.expand(X)).nnz == 0
    change_a_byte(store / "data.npy", -1)
    read_all(store)  # nothing to compare with
    indices = np.lib.format.open_memmap(store / "indices.npy", mode="r+")
    indices[1] = 0
    indices.flush()
    with pytest.raises(ValueError, match="the columns of a row do not increase"):
        polysparse.load(store, verify=True)


@pytest.mark.parametrize(
    "checksums", ["x", [], [[1, 2, 3]], [[1, 2, "3", 4]], {}, [[True] * 4], 7], ids=str
)
def test_checksums_that_cannot_be(store, checksums):
    manifest = json.loads((store / "manifest.json").read_text())
    (store / "manifest.json").write_text(json.dumps({**manifest, "checksums": checksums}))
    with pytest.raises(ValueError, match=r"manifest.json is damaged: checksums must be 4 integers"):
        polysparse.load(store)


# ----------------------------------------------------------------------- damaged in the worst way

HUGE = "9" * 4_000
DAMAGED_MANIFESTS = {
    "nested lists": lambda text: "[" * 100_000,
    "nested objects": lambda text: '{"a":' * 100_000,
    "nested in an entry": lambda text: text.replace(
        '"part_ends": [', '"part_ends": ' + "[" * 10**5
    ),
    "NaN": lambda text: text.replace('"nnz": ', '"nnz": NaN, "n": '),
    "infinite": lambda text: text.replace('"version": 1', '"version": Infinity'),
    "more digits than Python reads": lambda text: text.replace('"nnz": ', '"nnz": ' + "9" * 5_000),
    "a huge number of values": lambda text: text.replace('"nnz": ', f'"nnz": {HUGE}'),
    "a huge number of features": lambda text: text.replace(
        '"n_features": ', f'"n_features": {HUGE}'
    ),
    "a huge degree": lambda text: text.replace('"degree": [0, 2]', f'"degree": [0, {HUGE}]'),
    "a huge degree of many": lambda text: text.replace(
        '"degree": [0, 2]', '"degree": [0, 999999999]'
    ).replace('"n_features": ', '"n_features": 99999999'),
    "a dtype of many": lambda text: text.replace('"dtype": "', '"dtype": "' + "f8," * 10**5),
    "a dtype in a list": lambda text: text.replace('"dtype": "<f8"', '"dtype": [["a", "<f8"]]'),
    "a dtype that is code": lambda text: text.replace('"<f8"', '"(2,)f"'),
    "no text": lambda text: "\udcff\udcfe",
}


@pytest.mark.parametrize("change", DAMAGED_MANIFESTS.values(), ids=DAMAGED_MANIFESTS)
def test_a_damaged_manifest_gives_our_error(store, change):
    text = (store / "manifest.json").read_text()
    damaged = change(text)
    assert damaged != text
    (store / "manifest.json").write_bytes(damaged.encode(errors="surrogateescape"))
    for open_store in (polysparse.load, polysparse.iter_load):
        with pytest.raises(ValueError, match=r"manifest.json is damaged"):
            open_store(store)


def header_of(text):
    """A .npy header of any text."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + b"\0" * 64


DAMAGED_HEADERS = {
    "open bracket": header_of("{'descr': '<f8', 'fortran_order': False, 'shape': (3,"),
    "nested": header_of("(" * 9_000),
    "nested unary": header_of("-" * 9_000 + "1"),
    "too long": header_of("[" * 60_000),
    "no Python": header_of("\x00\x01\x02"),
    "indented": header_of("  {'descr': '<f8'}\n a"),
    "text": header_of("'''"),
    "code": header_of("__import__('os').abort()"),
    "no dictionary": header_of("[1, 2]"),
    "negative": header_of("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }"),
    "huge": header_of("{'descr': '<f8', 'fortran_order': False, 'shape': (10**99,), }"),
    "enormous": header_of(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({HUGE},), }}"),
    "odd dtype": header_of("{'descr': '<f8,', 'fortran_order': False, 'shape': (3,), }"),
    "dtype nested": header_of(
        "{'descr': %s, 'fortran_order': False, 'shape': (3,), }" % ("[" * 90 + "]" * 90)
    ),
    "version": b"\x93NUMPY\x09\x00" + b"\0" * 64,
}


@pytest.mark.parametrize("content", DAMAGED_HEADERS.values(), ids=DAMAGED_HEADERS)
@pytest.mark.parametrize("name", ["indptr", "data"])
def test_a_damaged_header_gives_our_error(store, name, content):
    (store / f"{name}.npy").write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the parser of Python
        with pytest.raises(ValueError, match=rf"{name}.npy (is damaged|holds)"):
            polysparse.load(store)


# ------------------------------------------------------------------------------------- resuming


@pytest.fixture
def begun(store, tmp_path, monkeypatch):
    """What a run leaves that is interrupted after all parts were written."""
    command = ["expand", tmp_path / "in.svm", tmp_path / "next", "--quiet", "--resume"]
    with monkeypatch.context() as patch:
        fail_at(patch, "seal", KeyboardInterrupt())
        run(*command, code=130)
    return tmp_path / ".next.polysparse-partial", command


@pytest.mark.parametrize("name", ARRAYS)
def test_pages_that_never_reached_the_disk_are_not_taken_over(begun, name, capsys):
    folder, command = begun
    file = folder / f"{name}.npy"
    content = file.read_bytes()
    file.write_bytes(content[:200] + bytes(100) + content[300:])
    capsys.readouterr()
    run(*command, code=1)
    error = capsys.readouterr().err
    assert f"{name}.npy is damaged in rows 0 to" in error
    assert "Give --force in place of --resume to start over" in error


def test_a_sealed_run_is_verified_too(store, tmp_path, monkeypatch, capsys):
    command = ["expand", tmp_path / "in.svm", tmp_path / "next", "--quiet", "--resume"]
    with monkeypatch.context() as patch:
        fail_at(patch, "replace", KeyboardInterrupt())
        run(*command, code=130)
    kept = tmp_path / "kept"
    shutil.copytree(tmp_path / ".next.polysparse-partial", kept)
    change_a_byte(tmp_path / ".next.polysparse-partial" / "data.npy", -1)
    capsys.readouterr()
    run(*command, code=1)
    assert "data.npy is damaged in rows" in capsys.readouterr().err
    shutil.rmtree(tmp_path / ".next.polysparse-partial")
    kept.rename(tmp_path / ".next.polysparse-partial")
    run(*command)
    assert (polysparse.load(tmp_path / "next", verify=True) != polysparse.expand(X)).nnz == 0


def test_a_run_without_checksums_is_not_resumed(begun, capsys):
    folder, command = begun
    progress = json.loads((folder / "progress.json").read_text())
    del progress["checksums"]
    (folder / "progress.json").write_text(json.dumps(progress))
    run(*command, code=1)
    error = capsys.readouterr().err
    assert "was started by an earlier version of polysparse, without checksums" in error
    assert "Give --force in place of --resume to start over" in error


def test_a_deeply_nested_progress_is_damage(begun, capsys):
    folder, command = begun
    (folder / "progress.json").write_text("[" * 100_000)
    run(*command, code=1)
    assert (
        "is damaged: it is nested too deeply. Give --force in place of --resume"
        in capsys.readouterr().err
    )


def test_load_says_what_reads_a_model_or_a_vocabulary(tmp_path):
    write_svmlight(tmp_path / "in.svm")
    run("fit", tmp_path / "in.svm", "-o", tmp_path / "model.npz", "--quiet")
    run("expand", tmp_path / "in.svm", tmp_path / "out", "--observed", "--quiet")
    sparse.save_npz(tmp_path / "matrix.npz", X)
    for name, message in (
        ("model.npz", "is a file, not a directory of polysparse expand: use polysparse.load_model"),
        ("out.vocabulary", "is a file, .*: use ObservedPolynomialFeatures.load"),
        ("matrix.npz", r"is a file, not a directory of polysparse expand\.$"),
    ):
        for read in (polysparse.load, polysparse.iter_load):
            with pytest.raises(ValueError, match=f"{name} {message}"):
                read(tmp_path / name)
