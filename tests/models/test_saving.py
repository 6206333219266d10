"""Models in files: what is saved is loaded, and what is damaged is refused."""

import errno
import io
import json
import os
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
from scipy import sparse

from checks import names_in
from inside import lower, set_available_memory
from polysparse import (
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialLogisticRegression,
    PolynomialRidge,
    load_model,
)
from polysparse.files.model_file import ModelFile, digest_of
from small_models import COLUMNS, TARGETS, X, fitted, outputs


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


@pytest.fixture
def saved(path):
    """A good file."""
    poly = ObservedPolynomialFeatures(max_columns=12, include_bias=False)
    fitted("three", poly.fit(X)).save(path)
    return path


def members_of(path):
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def rewrite(path, *, digest=True, **changes):
    """Write the file anew with other arrays, or with a changed description.

    The digest is made to fit, so that what it protects is met by other checks.
    """
    arrays = members_of(path)
    description = json.loads(arrays.pop("description").tobytes())
    for name, value in changes.items():
        (arrays if isinstance(value, np.ndarray) else description)[name] = value
    if digest:
        description["sha256"] = digest_of(arrays)
    text = np.frombuffer(json.dumps(description).encode(), np.uint8)
    np.savez(path, description=text, **arrays)


def assert_refused(path, match=None):
    """A clear error that says which file."""
    with pytest.raises(ValueError, match=match) as refused:
        load_model(path)
    assert str(path) in str(refused.value)


# ----------------------------------------------------------------------------------- round trip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_what_is_saved_is_loaded(path, target, columns):
    model = fitted(target, columns)
    model.save(path)
    loaded = load_model(path)
    assert type(loaded) is type(model)
    assert outputs(loaded) == outputs(model)
    assert loaded.column_space_ == model.column_space_
    for name in ("coef_", "intercept_", "classes_", "n_iter_", "column_counts_", "objective_"):
        if not hasattr(model, name):
            assert not hasattr(loaded, name)
            continue
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
        assert type(getattr(loaded, name)) is type(getattr(model, name)), name
        assert getattr(getattr(loaded, name), "dtype", 0) == getattr(
            getattr(model, name), "dtype", 0
        )
    assert loaded.n_features_in_ == 5
    assert not hasattr(loaded, "feature_names_in_")


@pytest.mark.parametrize(
    "parameters",
    [
        {"degree": 3, "interaction_only": True},
        {"degree": (2, 3), "fit_intercept": False},
        {"C": np.float64(0.5), "columns": "observed"},
        {"C": 7, "class_weight": {1: 2.0, -1: np.float32(0.5)}, "columns": "hashed"},
        {"class_weight": "balanced", "tol": 1e-3, "max_iter": 33, "warm_start": True},
    ],
    ids=str,
)
def test_parameters_are_saved(path, parameters):
    model = PolynomialLogisticRegression(**parameters, n_jobs=2).fit(X, TARGETS["binary"])
    model.save(path)
    loaded = load_model(path)
    assert loaded.get_params() == {**model.get_params(), "n_jobs": None}
    assert outputs(loaded) == outputs(model)


def test_an_infinite_parameter_is_saved(path):
    model = fitted("binary")
    model.C = np.inf
    model.save(path)
    assert np.inf == load_model(path).C


def test_a_parameter_that_is_not_plain_is_refused(path):
    model = fitted("ridge")
    model.alpha = object()
    with pytest.raises(ValueError, match=r"alpha=<object .* cannot be saved without pickle"):
        model.save(path)
    assert names_in(path.parent) == []


@pytest.mark.parametrize("columns", ["transformer", "vocabulary", "hashed", "buckets"])
def test_a_transformer_is_saved_as_it_would_be_cloned(path, columns):
    model = fitted("ridge", columns)
    model.save(path)
    loaded = load_model(path)
    found, wanted = loaded.get_params(), model.get_params()
    assert type(found.pop("columns")) is type(wanted.pop("columns"))
    assert found == wanted
    again = loaded.fit(X, TARGETS["ridge"])
    assert again.column_space_ == model.column_space_
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_a_transformer_of_a_subclass_is_saved_as_ours(path):
    class Own(PolynomialFeatures):
        pass

    fitted("ridge", Own(3)).save(path)
    columns = load_model(path).columns
    assert type(columns) is PolynomialFeatures
    assert columns.degree == 3


def test_names_of_features_are_saved(path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X.toarray(), columns=["Größe", "b'\"\n", "c" * 300, "d", "e"])
    model = fitted("ridge", data=frame)
    model.save(path)
    loaded = load_model(path)
    assert loaded.feature_names_in_.tolist() == frame.columns.tolist()
    assert loaded.feature_names_in_.dtype == object
    assert list(loaded.top_terms()["name"]) == list(model.top_terms()["name"])
    assert outputs(loaded, frame) == outputs(model, frame)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([False, True]),
        np.array([1.0, 2.0], np.float32),
        np.array([3, 200], np.uint8),
        np.array(["no", "yes"]),
        np.array(["ä", "ö"], dtype=object),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_classes_of_any_plain_dtype_are_saved(path, labels):
    model = PolynomialLogisticRegression().fit(X, labels[(TARGETS["ridge"] > 0).astype(int)])
    model.save(path)
    loaded = load_model(path)
    assert loaded.classes_.dtype == labels.dtype
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


def test_paths_may_be_strings_and_need_no_ending(tmp_path):
    fitted("ridge").save(str(tmp_path / "model"))
    assert names_in(tmp_path) == ["model"]
    assert isinstance(load_model(str(tmp_path / "model")), PolynomialRidge)


def test_a_loaded_model_can_be_saved_again(path, tmp_path):
    fitted("three", "observed").save(path)
    load_model(path).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_models_are_pickled(target, columns):
    model = fitted(target, columns)
    assert outputs(pickle.loads(pickle.dumps(model))) == outputs(model)


@pytest.mark.parametrize("columns", COLUMNS)
def test_models_are_saved_by_skops(columns):
    io_of_skops = pytest.importorskip("skops.io", reason="skops is not installed")
    model = fitted("three", columns)
    data = io_of_skops.dumps(model)
    types = io_of_skops.get_untrusted_types(data=data)
    assert all(name.startswith("polysparse.") for name in types)
    assert outputs(io_of_skops.loads(data, trusted=types)) == outputs(model)


# ------------------------------------------------------------------------------------- the file


def test_the_file_is_plain_arrays(saved):
    members = members_of(saved)
    assert set(members) == {"description", "coefficients", "intercept", "columns", "counts"}
    description = json.loads(members["description"].tobytes())
    assert description["format"] == "polysparse.model"
    assert description["version"] == 1
    assert description["kind"] == "logistic"


def test_the_same_model_is_the_same_bytes(tmp_path):
    for name in "ab":
        fitted("three").save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_that_was_compressed_meanwhile_is_read(saved):
    np.savez_compressed(saved, **members_of(saved))
    assert load_model(saved).n_features_in_ == 5


# ------------------------------------------------------------------------- damaged and foreign


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "it has version 2, and this polysparse reads 1"),
        ({"format": "polysparse.vocabulary"}, "its format is not polysparse.model"),
        ({"kind": "forest"}, "its kind must be logistic, ridge, .*; it is 'forest'"),
        ({"kind": ["ridge"]}, "damaged"),
        ({"kind": "ridge"}, "damaged"),
        ({"basis": None}, "damaged"),
        ({"basis": {"n_features": 5, "degree": [3, 2]}}, "min_degree <= max_degree"),
        ({"basis": {"n_features": 5, "degree": [0, 2]}}, "its basis has a bias"),
        ({"basis": {"n_features": 1, "include_bias": False}}, "is not in the basis"),
        ({"columns": {"kind": "some"}}, "their kind must be"),
        ({"columns": {"kind": "all"}}, "coefficients have the wrong shape"),
        (
            {"columns": {"kind": "chosen", "n_columns": 3, "sha256": "0"}},
            "do not match their digest",
        ),
        ({"columns": np.arange(12)[::-1].copy()}, "columns must increase"),
        ({"columns": np.arange(12)}, "do not match their digest"),
        ({"columns": np.arange(12.0)}, "columns is float64"),
        ({"coefficients": np.zeros(12)}, "damaged"),
        ({"coefficients": np.zeros((3, 11))}, r"coefficients have the wrong shape, \(3, 11\)"),
        ({"coefficients": np.zeros((2, 12))}, "intercept has the wrong shape"),
        ({"coefficients": np.zeros((3, 12), np.float32)}, "coefficients is float32"),
        ({"coefficients": np.full((3, 12), np.nan)}, "coefficients is not finite"),
        ({"intercept": np.array([1.0, np.inf, 0.0])}, "intercept is not finite"),
        ({"intercept": np.zeros((3, 1))}, r"intercept is float64 of shape \(3, 1\)"),
        ({"counts": np.zeros(11, np.int64)}, "counts must be a nonnegative integer"),
        ({"counts": np.full(12, -1)}, "counts must be a nonnegative integer"),
        ({"feature_names_in": ["a"]}, "1 feature names for"),
        ({"feature_names_in": 5}, "not a list of strings"),
        ({"parameters": None}, "damaged"),
        ({"parameters": {"colour": "red"}}, "colour"),
        ({"parameters": {"feature_names": ["a"]}}, "feature_names has length 1"),
        ({"parameters": {"feature_names": 5}}, "feature_names must be a list of strings"),
        ({"parameters": {"C": {"pickle": "x"}}}, "is not a plain value"),
        ({"parameters": {"C": {"items": 5}}}, "damaged"),
        ({"parameters": {"columns": {"transformer": "forest"}}}, "forest"),
        ({"parameters": {"columns": {"transformer": "all", "colour": "red"}}}, "colour"),
        ({"attributes": {}}, "two classes or more"),
        ({"attributes": {"predict": 5}}, "no attribute 'predict'"),
        ({"attributes": {"n_iter_": "many"}}, "n_iter_ is not a number: 'many'"),
        ({"attributes": {"objective_": [[1.5]]}}, "objective_ is not a number"),
        ({"attributes": {"classes_": 5}}, "two classes or more"),
        ({"attributes": {"classes_": {"array": [0, 1], "dtype": "<i8"}}}, "for 2 classes"),
        ({"attributes": {"classes_": {"array": [2, 1, 0], "dtype": "<i8"}}}, "are not sorted"),
        ({"attributes": {"classes_": {"array": [[1], [2], [3]], "dtype": "<i8"}}}, "dimensions"),
        ({"attributes": {"classes_": {"array": [1, 2, 3], "dtype": "|O"}}}, "not the dtype"),
        ({"attributes": {"classes_": {"array": [1, 2, 3], "dtype": "<M8[s]"}}}, "not the dtype"),
        ({"attributes": {"classes_": {"array": ["a"], "dtype": "nonsense"}}}, "damaged"),
        (
            {"attributes": {"classes_": {"array": ["aa", "b", "c"], "dtype": "<U1"}}},
            "not values of",
        ),
        ({"attributes": {"classes_": {"array": [0.5, 1, 2], "dtype": "<i8"}}}, "not values of"),
        ({"attributes": {"classes_": {"array": ["a"], "dtype": "<U99999999"}}}, "two classes"),
        ({"attributes": {"classes_": {"array": [0, 1, 2], "dtype": "<U1"}}}, "not the dtype"),
        ({"parameters": {"n_jobs": 10_000}}, "it sets n_jobs"),
        ({"parameters": {"columns": {"transformer": "all", "n_jobs": 2}}}, "it sets n_jobs"),
    ],
    ids=lambda case: " ".join(case) if isinstance(case, dict) else case,
)
def test_what_does_not_fit_together_is_refused(saved, change, message):
    assert members_of(saved)["columns"].shape == (12,)
    rewrite(saved, **change)
    assert_refused(saved, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_columns": 0}, "hash function"),
        ({"alternate_sign": 1}, "hash function"),
        ({"seed": -1}, "seed of its hash function"),
        ({"seed": 2.5}, "seed of its hash function"),
        ({"n_columns": 2**40}, "their number"),
        ({"n_columns": 49}, "coefficients have the wrong shape"),
    ],
    ids=str,
)
def test_hash_functions_that_cannot_be_are_refused(path, change, message):
    model = fitted("ridge", "buckets")
    model.save(path)
    rewrite(path, columns=model.column_space_.describe() | change)
    assert_refused(path, message)


@pytest.mark.parametrize("parameters", [{}, {"columns": "observed"}, {"terms": ["a:b", "a", "c"]}])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda old: old[:, :-1], "not one for each tuple"),
        (lambda old: np.hstack([old, old]), "not one for each tuple"),
        (lambda old: np.vstack([old, old]), "a row for each class"),
        (lambda old: old + np.inf, "nonnegative and finite"),
        (lambda old: old * np.nan, "nonnegative and finite"),
        (lambda old: -1 - old, "nonnegative and finite"),
    ],
)
def test_group_variances_that_cannot_be_are_refused(path, parameters, change, message):
    model = PolynomialRidge(groups=list("aabbc"), **parameters).fit(X, TARGETS["ridge"])
    model.save(path)
    assert load_model(path).importance()["name"][0] == model.importance()["name"][0]
    rewrite(path, group_variances=change(model._group_variances_))
    assert_refused(path, message)


@pytest.mark.parametrize("columns", ["all", "hashed"])
def test_group_variances_without_groups_are_refused(path, columns):
    fitted("ridge", columns).save(path)
    rewrite(path, group_variances=np.ones((1, 5)))
    assert_refused(path, "no groups of columns")


@pytest.mark.parametrize("name", ["coefficients", "intercept", "columns", "counts", "description"])
def test_a_missing_array_is_refused(saved, name):
    members = members_of(saved)
    del members[name]
    np.savez(saved, **members)
    assert_refused(saved)


@pytest.mark.parametrize("name", ["sha256", "kind", "basis", "parameters", "attributes"])
def test_a_missing_entry_is_refused(saved, name):
    members = members_of(saved)
    description = json.loads(members["description"].tobytes())
    del description[name]
    members["description"] = np.frombuffer(json.dumps(description).encode(), np.uint8)
    np.savez(saved, **members)
    assert_refused(saved, f"its description has no '{name}'")


@pytest.mark.parametrize("depth", [60, 200, 400, 900, 90_000])
def test_a_value_that_is_nested_too_deeply_is_refused(saved, depth):
    members = members_of(saved)
    description = json.loads(members["description"].tobytes())
    description["attributes"]["n_iter_"] = "here"
    text = json.dumps(description).replace('"here"', "[" * depth + "5" + "]" * depth)
    np.savez(saved, **{**members, "description": np.frombuffer(text.encode(), np.uint8)})
    assert_refused(saved)


def test_arrays_of_another_model_are_refused(saved):
    """Sound by themselves, and of the right shape."""
    coefficients = members_of(saved)["coefficients"]
    rewrite(saved, digest=False, coefficients=coefficients[::-1].copy())
    assert_refused(saved, "its arrays do not match their digest")


@pytest.mark.parametrize("name", ["coefficients", "counts"])
def test_pickled_arrays_are_refused(saved, name):
    class Trap:
        def __reduce__(self):
            return os._exit, (77,)

    members = members_of(saved)
    np.savez(saved, **{**members, name: np.array([Trap()], dtype=object)})
    assert_refused(saved, "not a model of polysparse, or is damaged")


def test_a_file_cut_short_anywhere_is_refused(saved):
    whole = saved.read_bytes()
    for n in range(0, len(whole), 29):
        saved.write_bytes(whole[:n])
        assert_refused(saved)


@pytest.mark.parametrize("columns", ["observed", "buckets"])
def test_a_flipped_bit_anywhere_is_refused_or_does_not_matter(path, columns):
    """A zip archive repeats some of what it says, and has fields that nobody reads."""
    fitted("binary", columns).save(path)
    whole, wanted = path.read_bytes(), outputs(load_model(path))
    directory = whole.index(b"PK\x01\x02")
    flips = [(place, place % 8) for place in range(0, directory, 11)]
    flips += [(place, place % 7) for place in range(directory, len(whole))]
    outcomes = {}
    for place, bit in flips:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            outcome = "the same" if outputs(load_model(path)) == wanted else "another model"
        except ValueError as error:
            outcome = "refused" if str(path) in str(error) else f"without the path: {error}"
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


@pytest.mark.parametrize(
    "content",
    [b"", b"1 3:4 7:1\n", b"PK\x03\x04", pickle.dumps({}), archive_of(readme="hello")],
    ids=["empty", "text", "zip magic", "pickle", "zip"],
)
def test_foreign_files_are_refused(path, content):
    path.write_bytes(content)
    assert_refused(path, "not a model of polysparse, or is damaged")


def test_matrices_and_vocabularies_are_refused(path):
    sparse.save_npz(path, X)
    assert_refused(path, "not a model of polysparse")
    ObservedPolynomialFeatures().fit(X).save(path)
    assert_refused(path, "its format is not polysparse.model")
    fitted("ridge").save(path)
    with pytest.raises(ValueError, match="not a vocabulary of polysparse"):
        ObservedPolynomialFeatures.load(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere: no such model"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(IsADirectoryError):
        load_model(tmp_path)


def test_a_file_that_does_not_fit_in_memory_is_refused_before_it_is_read(saved, monkeypatch):
    with pytest.raises(MemoryError, match=r"more than max_memory=100: give more, or fit a model"):
        ModelFile.read(saved, 100)
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, 100)
    with pytest.raises(MemoryError, match="Fit a model with fewer columns"):
        load_model(saved)


LONG_TEXTS = {
    "a wide dtype": ([f"c{i:05}" for i in range(3_000)], "<U262144"),
    "one long string": ([*(f"c{i:05}" for i in range(2_999)), "d" * 100_000], "<U100000"),
}


@pytest.mark.parametrize("case", LONG_TEXTS)
def test_classes_take_little_more_memory_than_their_text(saved, case):
    """Whatever the dtype that a file states: 3,000 strings of 2^20 bytes would be 3 GB."""
    classes, dtype = LONG_TEXTS[case]
    rewrite(
        saved,
        attributes={"classes_": {"array": classes, "dtype": dtype}},
        coefficients=np.zeros((3_000, 12)),
        intercept=np.arange(3_000.0),
    )
    tracemalloc.start()
    try:
        model = load_model(saved)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()
    assert model.classes_.tolist() == classes
    assert model.predict(X[:2]).tolist() == [classes[-1]] * 2


def test_a_wide_dtype_of_few_classes_is_kept(path):
    model = PolynomialLogisticRegression().fit(X, TARGETS["texts"].astype("U1000"))
    model.save(path)
    assert load_model(path).classes_.dtype == "U1000"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("read", [load_model, ObservedPolynomialFeatures.load])
def test_a_pipe_or_a_device_is_refused(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ValueError, match=rf"{path} is a pipe or a device: copy .* into a file"):
            read(path)


# -------------------------------------------------------------------------------------- writing


def test_a_full_disk_leaves_the_old_file_and_nothing_else(saved, monkeypatch):
    before = saved.read_bytes()

    def write_array(member, array, **options):
        member.write(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", write_array)
    with pytest.raises(OSError, match="No space left"):
        fitted("ridge").save(saved)
    assert saved.read_bytes() == before
    assert names_in(saved.parent) == [saved.name]
