"""Plans are exact, readable, and refuse in time."""

from math import comb

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import DEGREES
from csr_zoo import ZOO, random_dense, raw_csr
from inside import lower, set_available_memory
from looping import loop_over


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@loop_over("build", ZOO)
def test_a_plan_is_what_expand_returns(build, degree, interaction_only):
    X, _ = build()
    plan = polysparse.plan(X, degree, interaction_only=interaction_only)
    result = polysparse.expand(X, degree, interaction_only=interaction_only)
    assert plan.shape == result.shape
    assert plan.nnz == result.nnz
    assert plan.dtype == result.dtype
    assert plan.index_dtype == result.indices.dtype
    assert plan.nbytes == result.data.nbytes + result.indices.nbytes + result.indptr.nbytes
    basis = plan.basis
    for d, stored in plan.nnz_by_degree.items():
        columns = basis.degree_slices[d]
        inside = (result.indices >= columns.start) & (result.indices < columns.stop)
        assert stored == inside.sum()
    assert str(plan).startswith("degree")


def test_a_dense_plan_is_what_expand_returns():
    X = random_dense(7, 5, 0.5)
    plan, result = polysparse.plan(X, 3), polysparse.expand(X, 3)
    assert isinstance(result, np.ndarray)
    assert (plan.shape, plan.nbytes, plan.dtype) == (result.shape, result.nbytes, result.dtype)
    assert str(plan).endswith("dense, 7 x 56, float64 values")


def test_a_plan_prints_as_a_table():
    X = raw_csr(np.ones(6000), np.tile([5, 17, 999_999], 2000), range(0, 6001, 3), (2000, 10**6))
    assert str(polysparse.plan(X, 2)).splitlines() == [
        "degree          columns  stored values     bytes",
        "0                     1          2,000   32.0 kB",
        "1             1,000,000          6,000   96.0 kB",
        "2       500,000,500,000         12,000  192.0 kB",
        "all     500,001,500,001         20,000  336.0 kB",
        "CSR, 2,000 x 500,001,500,001, float64 values, int64 indices",
    ]


def test_a_plan_of_the_impossible_is_still_exact():
    """A row of 50,000 values at degree 12 has 10^48 outputs, beyond any fixed width."""
    X = raw_csr(np.ones(50_000), np.arange(50_000), [0, 50_000], (1, 50_000))
    plan = polysparse.plan(X, 12)
    assert plan.nnz == plan.shape[1] == comb(50_012, 12)
    assert plan.index_dtype == np.int64
    with pytest.raises(ValueError, match=r"columns; at most 2\*\*63 - 1 can be indexed"):
        polysparse.expand(X, 12)
    with pytest.raises(ValueError, match=r"columns; at most 2\*\*63 - 1 can be indexed"):
        polysparse.iter_expand(X, 12)


def test_stored_values_alone_can_force_int64():
    """Two rows of 60,000 values have 3.6e9 pairs among 1.8e9 columns: only the offsets need it."""
    X = raw_csr(np.ones(60_000), np.arange(60_000), [0, 60_000], (1, 60_000))
    plan = polysparse.plan(X, 2)
    assert plan.shape[1] <= 2**31 - 1
    assert plan.index_dtype == np.int32
    stacked = raw_csr(
        np.ones(120_000), np.tile(np.arange(60_000), 2), [0, 60_000, 120_000], (2, 60_000)
    )
    plan = polysparse.plan(stacked, 2)
    assert plan.shape[1] <= 2**31 - 1 < plan.nnz
    assert plan.index_dtype == np.int64


def test_a_plan_beyond_reading_still_prints():
    X = sparse.csr_array((1, 100_000))
    assert "about 10^" in str(polysparse.plan(X, 2500))
    with pytest.raises(ValueError, match=r"would have about 10\^\d+ columns"):
        polysparse.expand(X, 2500)


class TestRefusal:
    X = sparse.csr_array(random_dense(100, 30, 0.5))

    def test_max_bytes_is_respected_to_the_byte(self):
        n = polysparse.plan(self.X, 3).nbytes
        assert polysparse.expand(self.X, 3, max_bytes=n).nnz
        with pytest.raises(MemoryError, match=rf"allowed \(max_bytes={n - 1}\)"):
            polysparse.expand(self.X, 3, max_bytes=n - 1)

    def test_what_fits_instead_is_named(self):
        limit = polysparse.plan(self.X, 3, interaction_only=True).nbytes
        with pytest.raises(MemoryError, match=r"interaction_only=True would need .*iter_expand"):
            polysparse.expand(self.X, 3, max_bytes=limit)
        with pytest.raises(MemoryError, match="degree=2 would need"):
            polysparse.expand(self.X, 3, max_bytes=polysparse.plan(self.X, 2).nbytes)
        single = polysparse.plan(self.X.astype(np.float32), 3).nbytes
        with pytest.raises(MemoryError, match="float32 values would need"):
            polysparse.expand(self.X, 3, max_bytes=single)

    def test_more_than_can_be_counted_is_refused_even_without_a_limit(self):
        wide = raw_csr(
            np.ones(12_000), np.tile(np.arange(3000), 4), range(0, 12_001, 3000), (4, 3000)
        )
        with pytest.raises(MemoryError, match="more than can be counted"):
            polysparse.expand(wide, 6, max_bytes=None)

    def test_dense_input_is_refused_too(self):
        with pytest.raises(MemoryError, match="fewer rows at a time"):
            polysparse.expand(self.X.toarray(), 1, max_bytes=10)

    def test_more_than_the_memory_at_hand_is_refused_before_anything_is_allocated(
        self, monkeypatch
    ):
        wide = raw_csr(np.ones(10**5), np.arange(10**5), [0, 10**5], (1, 10**5))
        monkeypatch.setattr("polysparse.matrix.output.allocate", None)
        set_available_memory(monkeypatch, 10**9)
        message = r"80\.\d GB; 1\.0 GB are available"
        with pytest.raises(MemoryError, match=message):
            polysparse.expand(wide, 2)
        with pytest.raises(MemoryError, match=message):
            polysparse.PolynomialFeatures(2).fit_transform(wide)

    @pytest.mark.parametrize("max_bytes", [0, -5, 1.5, "1GB", True])
    def test_a_limit_that_is_none_is_refused(self, max_bytes):
        with pytest.raises(ValueError, match="max_bytes must be a positive number of bytes"):
            polysparse.expand(self.X, max_bytes=max_bytes)

    def test_none_is_no_limit(self, monkeypatch):
        set_available_memory(monkeypatch, 0)
        lower(monkeypatch, ALWAYS_GRANTED=0)
        assert polysparse.expand(self.X, max_bytes=None).nnz
        with pytest.raises(MemoryError):
            polysparse.expand(self.X)
