"""Tests marked `gpu` skip where there is no GPU. Outputs begin poisoned on the card, too."""

import numpy as np
import pytest

from inside import wrap


def reason_to_skip():
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed"
    try:
        return None if cupy.cuda.runtime.getDeviceCount() else "there is no GPU"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"there is no GPU: {error}"


REASON = reason_to_skip()


@pytest.fixture(autouse=True)
def poisoned_gpu_outputs(request, monkeypatch):
    """Outputs begin as NaN, and as an index that no matrix has: a slot left out shows."""
    if request.node.get_closest_marker("gpu") is None:
        return
    if REASON is not None:
        pytest.skip(REASON)

    def poisoning(plain):
        def allocate(n, dtype):
            out = plain(n, dtype)
            out.fill(np.nan if out.dtype.kind == "f" else -7)
            return out

        return allocate

    wrap(monkeypatch, "allocate on a GPU", poisoning)
