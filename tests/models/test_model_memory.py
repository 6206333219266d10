"""The memory that a fit takes: coefficients a few times, and never the expansion."""

import sys

import pytest

from programs import run


@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize("model", ["PolynomialRidge", "PolynomialLogisticRegression"])
def test_a_fit_takes_at_most_eight_vectors_of_coefficients(model):
    """4.5 million coefficients, of which a thousand outputs a row reach few; rows take little."""
    done = run(
        f"""
        def status(key):
            lines = open("/proc/self/status").read().splitlines()
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
        y = rng.integers(0, 2, n)
        model = polysparse.{model}(tol=1e-3)
        model.fit(X[:20, :50], y[:20])
        open("/proc/self/clear_refs", "w").write("5")
        before = status("VmRSS")
        model.fit(X, y)
        print(status("VmHWM") - before, model.coef_.nbytes)
        """,
        rows=1000,
        stored=40,
        features=3000,
    )
    assert done.returncode == 0, done.stderr
    peak, coefficients = map(int, done.stdout.split())
    assert coefficients > 36e6
    assert peak < 8 * coefficients + 2**20
