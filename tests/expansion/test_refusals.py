"""What is said when a result is too large: every number in it, and only ways that are open."""

import re

import numpy as np
import pytest
from scipy import sparse

import polysparse
from csr_zoo import random_dense
from inside import lower, set_available_memory
from polysparse import machine
from polysparse.machine import format_bytes

X = sparse.csr_array(random_dense(100, 30, 0.5))


def refusal(call, *arguments, **options):
    with pytest.raises(MemoryError) as refused:
        call(*arguments, **options)
    return str(refused.value)


def test_a_refusal_in_full():
    needed = polysparse.plan(X, 3).nbytes
    single = polysparse.plan(X.astype(np.float32), 3).nbytes
    distinct = polysparse.plan(X, 3, interaction_only=True).nbytes
    lower_degree = polysparse.plan(X, 2).nbytes
    limit = needed - 1
    assert refusal(polysparse.expand, X, 3, max_bytes=limit) == (
        f"The expansion of shape 100 x 5,456 would need {format_bytes(needed)}; "
        f"{format_bytes(limit)} are allowed (max_bytes={limit}). What fits instead: "
        f"float32 values would need {format_bytes(single)}; "
        f"interaction_only=True would need {format_bytes(distinct)}; "
        f"degree=2 would need {format_bytes(lower_degree)}; "
        "iter_expand yields it in blocks of rows within a limit that you set. "
        "max_bytes=None tries anyway."
    )


def test_a_degree_that_is_refused_keeps_its_bias_and_its_lowest_degree():
    without = {"interaction_only": True, "include_bias": False}
    limit = polysparse.plan(X, (2, 2), **without).nbytes
    message = refusal(polysparse.expand, X, (3, 3), **without, max_bytes=limit)
    assert f"degree=2 would need {format_bytes(limit)}" in message
    assert "interaction_only=True" not in message


def test_the_available_memory_is_named(monkeypatch):
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, 12_345)
    message = refusal(polysparse.expand, X, 3)
    assert f"{format_bytes(polysparse.plan(X, 3).nbytes)}; 12.3 kB are available. What" in message


def test_the_memory_named_is_what_was_available_when_the_room_was_made(monkeypatch):
    """Afterwards there may be more, or less."""
    lower(monkeypatch, ALWAYS_GRANTED=0)
    found = iter([1_000, 10**12, 10**12])
    monkeypatch.setattr(machine, "available_bytes", lambda: next(found))
    message = refusal(polysparse.expand, X, 3, columns=np.arange(5000))
    assert "; 1.0 kB are available." in message


def test_parameters_that_would_not_help_are_not_named():
    message = refusal(polysparse.expand, X, 1, max_bytes=polysparse.plan(X, 0).nbytes)
    assert "degree=" not in message
    message = refusal(polysparse.expand, X, 2, max_bytes=polysparse.plan(X, 1).nbytes)
    assert "degree=1 would need" in message
    chosen = polysparse.expand(X, 3, columns=np.arange(5000))
    limit = chosen.data.nbytes  # less than is needed, more than other parameters would need
    message = refusal(polysparse.expand, X, 3, columns=np.arange(5000), max_bytes=limit)
    assert "degree=" not in message
    assert "interaction_only=" not in message


def test_offsets_alone_that_do_not_fit_are_named():
    """100 rows have 101 offsets of 4 bytes."""
    message = refusal(polysparse.expand, X, columns=[1, 2], max_bytes=403)
    assert "shape 100 x 2 would need at least 404 bytes; 403 bytes are allowed" in message
    message = refusal(polysparse.expand, X, columns=[1, 2], max_bytes=404)
    assert "would need at least 416 bytes; 404 bytes are allowed (max_bytes=404)" in message


def test_the_least_that_is_needed_has_narrow_indices_if_they_could_do(monkeypatch):
    """As planned there are 6 values, too many for int32 here; with fewer, int32 does."""
    lower(monkeypatch, MAX_INT32=4)
    ones = sparse.csr_array(np.ones((3, 2)))
    message = refusal(polysparse.expand, ones, 1, columns=[1, 2], max_bytes=15)
    assert "would need at least 16 bytes; 15 bytes are allowed" in message


def test_what_was_filled_when_the_room_ended_is_named():
    """50 rows of 3 values each, at 12 bytes, and 51 offsets."""
    ones = sparse.csr_array(np.ones((50, 2)))
    message = refusal(polysparse.expand, ones, 1, columns=[0, 1, 2], max_bytes=1203)
    assert "would need at least 1.2 kB; 1.2 kB are allowed (max_bytes=1203)" in message
    assert polysparse.expand(ones, 1, columns=[0, 1, 2], max_bytes=204 + 1800).nnz == 150


@pytest.mark.parametrize("given", [X, X.toarray()], ids=["sparse", "dense"])
def test_the_transformer_of_all_columns_names_the_other_two(given, monkeypatch):
    poly = polysparse.PolynomialFeatures(3).fit(given)
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, 2000)
    message = refusal(poly.transform, given)
    assert "ObservedPolynomialFeatures keeps only the columns that occur" in message
    assert "HashedPolynomialFeatures has n_columns columns" in message
    assert "polysparse.iter_expand" in message


@pytest.mark.parametrize(
    ("estimator", "way_out"),
    [
        (polysparse.PolynomialFeatures, "ObservedPolynomialFeatures"),
        (polysparse.ObservedPolynomialFeatures, "a higher min_count or a lower max_columns in fit"),
        (polysparse.HashedPolynomialFeatures, "a lower n_columns"),
    ],
)
def test_an_estimator_names_no_option_that_it_lacks(estimator, way_out, monkeypatch):
    poly = estimator(3).fit(X)
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, 2000)
    message = refusal(poly.transform, X)
    assert way_out in message
    assert "max_bytes" not in message
    named = set(re.findall(r"(\w+)=", message.replace("(X, columns=...)", "")))
    assert named <= set(poly.get_params())


def test_a_dense_matrix_can_be_expanded_in_blocks_too():
    message = refusal(polysparse.expand, X.toarray(), 1, max_bytes=10)
    assert "What fits instead: fewer rows at a time; iter_expand yields it in blocks" in message


def test_names_that_do_not_fit_are_to_be_had_from_the_basis():
    wide = sparse.csr_array((1, 10**6))
    poly = polysparse.PolynomialFeatures().fit(wide)
    way_out = r"Call basis_\.names\(columns\) for those of interest"
    with pytest.raises(MemoryError, match=way_out):
        poly.get_feature_names_out()
    with pytest.raises(MemoryError, match=way_out):
        poly.get_feature_names_out([f"f{j}" for j in range(10**6)])
    assert poly.basis_.names([10**6]).tolist() == ["x999999"]
