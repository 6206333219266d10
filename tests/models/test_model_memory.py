"""The memory that a fit takes: coefficients a few times, and never the expansion."""

import sys

import pytest

from programs import run


@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize(
    ("model", "n_vectors", "rows"),
    [
        ("PolynomialRidge(tol=1e-3)", 8, (1000, 40)),
        ("PolynomialLogisticRegression(tol=1e-3)", 8, (1000, 40)),
        ("PolynomialLasso(1e-6, max_iter=2)", 4, (100, 1500)),
        ("PolynomialElasticNet(1e-6, max_iter=2)", 4, (100, 1500)),
    ],
)
def test_a_fit_takes_a_few_vectors_of_coefficients(model, n_vectors, rows):
    """4.5 million coefficients; rows take little, and their outputs reach a few columns, or all."""
    done = run(
        f"""
        def status(key):
            lines = open("/proc/self/status").read().splitlines()
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
        y = rng.integers(0, 2, n)
        import warnings
        warnings.simplefilter("ignore")
        model = polysparse.{model}
        model.fit(X[:20, :50], y[:20])
        open("/proc/self/clear_refs", "w").write("5")
        before = status("VmRSS")
        model.fit(X, y)
        print(status("VmHWM") - before, model.coef_.nbytes)
        """,
        rows=rows[0],
        stored=rows[1],
        features=3000,
    )
    assert done.returncode == 0, done.stderr
    peak, coefficients = map(int, done.stdout.split())
    assert coefficients > 36e6
    assert peak < n_vectors * coefficients + 2**20
