"""Observed columns in files: whole, the same on every machine, and suspicious of what they read."""

import errno
import io
import json
import os
import zipfile

import numpy as np
import pytest
from scipy import sparse

from checks import bits
from csr_zoo import random_dense
from polysparse import ObservedPolynomialFeatures

X = sparse.csr_array(random_dense(40, 6, 0.4))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "words.npz"


@pytest.fixture
def saved(path):
    """A good file."""
    ObservedPolynomialFeatures(min_count=3).fit(X).save(path)
    return path


def rewrite(path, **changes):
    """Write the file anew with other arrays, or with a changed description."""
    with np.load(path) as archive:
        arrays = dict(archive)
    description = json.loads(arrays["description"].tobytes())
    for name, value in changes.items():
        if name in arrays:
            arrays[name] = value
        else:
            description[name] = value
    if "description" not in changes:
        arrays["description"] = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def assert_refused(path, match=None):
    """A clear error that says which file."""
    with pytest.raises(ValueError, match=match) as refused:
        ObservedPolynomialFeatures.load(path)
    assert str(path) in str(refused.value)


# ----------------------------------------------------------------------------------- round trip


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"degree": (2, 3), "interaction_only": True, "include_bias": False},
        {"min_count": 4, "max_columns": 7},
        {"degree": np.int64(3), "max_columns": np.int32(9), "interaction_only": np.True_},
        {"degree": 0},
        {"degree": (1, 1)},
    ],
    ids=str,
)
def test_what_is_saved_is_loaded(path, parameters):
    poly = ObservedPolynomialFeatures(**parameters).fit(X)
    poly.save(path)
    loaded = ObservedPolynomialFeatures.load(path)
    np.testing.assert_array_equal(loaded.columns_, poly.columns_)
    np.testing.assert_array_equal(loaded.counts_, poly.counts_)
    assert loaded.basis_ == poly.basis_
    assert loaded.n_features_in_ == 6
    assert not hasattr(loaded, "feature_names_in_")
    assert bits(loaded.transform(X)) == bits(poly.transform(X))
    assert loaded.get_feature_names_out().tolist() == poly.get_feature_names_out().tolist()
    ours = {**poly.get_params(), "n_jobs": None}
    assert loaded.get_params() == ours or isinstance(ours["degree"], tuple)


def test_names_of_features_are_saved(path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.eye(3), columns=["Größe", "b'\"\n", "c" * 300])
    poly = ObservedPolynomialFeatures().fit(frame)
    poly.save(path)
    loaded = ObservedPolynomialFeatures.load(path)
    assert loaded.feature_names_in_.tolist() == frame.columns.tolist()
    assert loaded.feature_names_in_.dtype == object
    assert loaded.get_feature_names_out().tolist() == poly.get_feature_names_out().tolist()
    assert loaded.transform(frame).shape == (3, 7)


def test_paths_may_be_strings_and_need_no_suffix(tmp_path):
    poly = ObservedPolynomialFeatures().fit(X)
    poly.save(str(tmp_path / "words"))
    assert [p.name for p in tmp_path.iterdir()] == ["words"]
    assert ObservedPolynomialFeatures.load(str(tmp_path / "words")).basis_ == poly.basis_


def test_what_was_all_can_learn_more_after_loading(path):
    ObservedPolynomialFeatures().fit(X[:20]).save(path)
    loaded = ObservedPolynomialFeatures.load(path).partial_fit(X[20:])
    whole = ObservedPolynomialFeatures().fit(X)
    np.testing.assert_array_equal(loaded.columns_, whole.columns_)
    np.testing.assert_array_equal(loaded.counts_, whole.counts_)


def test_what_was_pruned_cannot_learn_more_after_loading(path):
    poly = ObservedPolynomialFeatures(max_columns=5).fit(X)
    poly.save(path)
    loaded = ObservedPolynomialFeatures.load(path)
    for _ in range(2):  # it stays so
        with pytest.raises(ValueError, match=r"are gone, .* Call fit to start"):
            loaded.partial_fit(X)
        with pytest.raises(ValueError, match="are gone"):
            loaded.merge(poly)
        with pytest.raises(ValueError, match="are gone"):
            ObservedPolynomialFeatures().merge(loaded)
    assert bits(loaded.transform(X)) == bits(poly.transform(X))
    np.testing.assert_array_equal(loaded.fit(X).columns_, poly.columns_)


def test_a_loaded_one_can_be_saved_again(saved, tmp_path):
    ObservedPolynomialFeatures.load(saved).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()


def test_a_subclass_loads_as_itself(saved):
    class Own(ObservedPolynomialFeatures):
        pass

    assert type(Own.load(saved)) is Own


# ------------------------------------------------------------------------------------- the file


def test_the_same_columns_are_the_same_bytes(tmp_path):
    for name, n_jobs in (("a", 1), ("b", 2)):
        ObservedPolynomialFeatures(3, n_jobs=n_jobs).fit(X).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_file_is_plain_arrays(saved):
    with np.load(saved, allow_pickle=False) as archive:
        assert set(archive) == {"description", "columns", "counts"}
        assert archive["columns"].dtype == archive["counts"].dtype == np.dtype("<i8")
        description = json.loads(archive["description"].tobytes())
    assert description["format"] == "polysparse.vocabulary"
    assert description["version"] == 1
    assert description["basis"]["n_features"] == 6


def test_a_file_that_was_compressed_meanwhile_is_read(saved):
    with np.load(saved) as archive:
        np.savez_compressed(saved, **archive)
    assert ObservedPolynomialFeatures.load(saved).n_features_in_ == 6


# ------------------------------------------------------------------------- damaged and foreign


def test_another_version_is_refused(saved):
    rewrite(saved, version=2)
    assert_refused(saved, "it has version 2, and this polysparse reads 1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "its format is not polysparse.vocabulary"),
        (
            {"description": np.frombuffer(b"[1]", np.uint8)},
            "its format is not polysparse.vocabulary",
        ),
        ({"description": np.frombuffer(b"{nonsense", np.uint8)}, "not a vocabulary"),
        ({"description": np.frombuffer(b"\xff\xfe", np.uint8)}, "not a vocabulary"),
        ({"description": None}, "description"),
        ({"columns": None}, "columns"),
        ({"counts": None}, "counts"),
        ({"columns": np.arange(3)}, "it should have"),
        ({"columns": np.arange(6.0)}, "columns is float64"),
        ({"columns": np.arange(6).astype(">i8")}, "columns is >i8"),
        ({"counts": np.ones((6, 1), dtype=np.int64)}, r"counts is int64 of shape \(6, 1\)"),
        ({"n_columns": 5}, "it should have 5 columns"),
        ({"basis": None}, "damaged"),
        ({"basis": {"n_features": 6, "colour": "red"}}, "damaged"),
        ({"basis": {"n_features": -6}}, "n_features must be"),
        ({"basis": {"n_features": 6, "degree": [3, 2]}}, "min_degree <= max_degree"),
        ({"basis": {"n_features": 2**63, "degree": [0, 3]}}, "columns"),
        ({"basis": {"n_features": 1, "degree": [0, 2]}}, "is not in the basis"),
        ({"min_count": "many"}, "min_count"),
        ({"max_columns": -3}, "max_columns"),
        ({"feature_names_in": ["a"]}, "1 feature names for"),
        ({"feature_names_in": 5}, "damaged"),
        ({"feature_names_in": [1, 2, 3, 4, 5, 6]}, "damaged"),
        ({"feature_names_in": [["a"]] * 6}, "damaged"),
    ],
    ids=lambda case: " ".join(case) if isinstance(case, dict) else case,
)
def test_what_does_not_fit_together_is_refused(saved, change, message):
    rewrite(saved, **change)
    assert_refused(saved, message)


@pytest.mark.parametrize("name", ["columns", "counts"])
def test_pickled_arrays_are_refused(saved, name):
    class Trap:
        def __reduce__(self):
            return os._exit, (77,)

    rewrite(saved, **{name: np.array([Trap()], dtype=object)})
    assert_refused(saved, "not a vocabulary")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda columns, counts: (columns[::-1], counts), "columns must increase"),
        (lambda columns, counts: (np.append(columns[:-1], columns[-2]), counts), "must increase"),
        (lambda columns, counts: (np.append(-1, columns[1:]), counts), "is not in the basis"),
        (lambda columns, counts: (np.append(columns[:-1], 28), counts), "is not in the basis"),
        (lambda columns, counts: (columns, np.append(counts[:-1], 0)), "not positive"),
        (lambda columns, counts: (columns, -counts), "not positive"),
    ],
    ids=["unsorted", "repeated", "below", "above", "zero", "negative"],
)
def test_columns_and_counts_that_cannot_be_are_refused(saved, change, message):
    with np.load(saved) as archive:
        columns, counts = change(archive["columns"], archive["counts"])
    rewrite(saved, columns=columns, counts=counts)
    assert_refused(saved, message)


def test_a_file_cut_short_anywhere_is_refused(saved):
    whole = saved.read_bytes()
    for n in range(0, len(whole), 13):
        saved.write_bytes(whole[:n])
        assert_refused(saved)


def test_a_flipped_bit_anywhere_is_refused_or_does_not_matter(saved):
    """A zip archive repeats some of what it says, and has fields that nobody reads."""
    whole = saved.read_bytes()
    wanted = bits(ObservedPolynomialFeatures.load(saved).transform(X))
    directory = whole.index(b"PK\x01\x02")
    flips = [(place, place % 8) for place in range(0, directory, 3)]
    flips += [(place, bit) for place in range(directory, len(whole)) for bit in range(8)]
    outcomes = {}
    for place, bit in flips:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << bit
        saved.write_bytes(damaged)
        try:
            same = bits(ObservedPolynomialFeatures.load(saved).transform(X)) == wanted
            outcome = "the same" if same else "other columns"
        except ValueError as error:
            outcome = "refused" if str(saved) in str(error) else f"without the path: {error}"
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        outcomes.setdefault(outcome, (place, bit))
    assert set(outcomes) == {"the same", "refused"}, outcomes


def archive_of(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def npy_of(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz_of(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 1000,
        b"1 3:4 7:1\n",
        b"PK\x03\x04",
        b"\x93NUMPY",
        b"\x80\x04\x95K\x00.",
        npy_of(np.arange(3)),
        npy_of(np.zeros(())),
        npz_of(),
        npz_of(data=np.arange(3)),
        npz_of(description=np.arange(3), columns=np.arange(3), counts=np.arange(3)),
        npz_of(description=np.array("text"), columns=np.arange(3), counts=np.arange(3)),
        archive_of(readme="hello"),
        archive_of(description="hello", columns="hello", counts="hello"),
        archive_of(**{"description.npy": "hello", "columns.npy": "", "counts.npy": ""}),
    ],
    ids=[
        *("empty", "zeros", "text", "zip magic", "npy magic", "pickle", "npy", "npy scalar"),
        *("npz empty", "npz", "npz alike", "npz text", "zip", "zip alike", "zip of no arrays"),
    ],
)
def test_foreign_files_are_refused(path, content):
    path.write_bytes(content)
    assert_refused(path, "not a vocabulary of polysparse, or is damaged")


def test_a_scipy_matrix_is_refused(path):
    sparse.save_npz(path, X)
    assert_refused(path, "not a vocabulary of polysparse")


def test_a_header_that_promises_too_much_is_refused(saved):
    """A shape of petabytes in an archive that is otherwise sound."""
    with np.load(saved) as archive:
        arrays = dict(archive)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<i8", "fortran_order": False, "shape": (2**55,)}
    )
    members = {f"{name}.npy": npy_of(array) for name, array in arrays.items()}
    saved.write_bytes(archive_of(**{**members, "counts.npy": header.getvalue() + b"\0" * 80}))
    assert_refused(saved)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ObservedPolynomialFeatures.load(tmp_path / "nowhere")
    with pytest.raises(IsADirectoryError):
        ObservedPolynomialFeatures.load(tmp_path)


# -------------------------------------------------------------------------------------- writing


def test_a_full_disk_leaves_the_old_file_and_nothing_else(saved, monkeypatch):
    before = saved.read_bytes()

    def write_array(member, array, **options):
        member.write(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", write_array)
    with pytest.raises(OSError, match="No space left"):
        ObservedPolynomialFeatures().fit(X).save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_ctrl_c_while_writing_leaves_nothing(path, monkeypatch):
    def write_array(member, array, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(np.lib.format, "write_array", write_array)
    with pytest.raises(KeyboardInterrupt):
        ObservedPolynomialFeatures().fit(X).save(path)
    assert list(path.parent.iterdir()) == []


def test_a_disk_that_is_full_only_when_the_file_is_synchronised(path, monkeypatch):
    """Errors may come as late as that."""

    def fsync(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    poly = ObservedPolynomialFeatures().fit(X)
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="No space left"):
        poly.save(path)
    assert list(path.parent.iterdir()) == []


def test_a_directory_is_not_replaced(tmp_path):
    with pytest.raises(OSError):
        ObservedPolynomialFeatures().fit(X).save(tmp_path)
    assert tmp_path.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ObservedPolynomialFeatures().fit(X).save(tmp_path / "nowhere" / "words.npz")


def test_saving_changes_nothing(path):
    poly = ObservedPolynomialFeatures(min_count=3).fit(X)
    counts = poly.counts_
    poly.save(path)
    np.testing.assert_array_equal(poly.counts_, counts)
    assert poly.partial_fit(X).counts_[0] == 80
