"""Groups and terms are refused on a GPU, by every function, before any kernel runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# The stand-in for CuPy holds X. Only a fit inspects X before it knows its columns, so that it is
# given an X that was inspected.
PROGRAM = """
import json, sys
import numpy as np
import polysparse
from gpu_matrices import as_cupy
from polysparse import *
from polysparse.gpu import handler, refusals, row_store
from scipy import sparse
from types import SimpleNamespace

here = sparse.csr_matrix(np.eye(4))
X = as_cupy(here)
row_store.read_finite = lambda *_: SimpleNamespace(shape=X.shape, get=None)
given, statements = json.loads(sys.argv[1])
errors = []
for statement in statements:
    try:
        exec(statement)
        errors.append("")
    except Exception as error:
        errors.append(f"{type(error).__name__}: {error}")
print(json.dumps(errors))
"""
GIVEN = {
    "groups": {"groups": [3, 1]},
    "interleaved groups": {"groups": ["a", "b", "a", "b"]},
    "terms": {"terms": ["x0:x1"]},
}
STATEMENTS = [
    "polysparse.expand(X, **given)",
    "polysparse.expand(X, columns='observed', **given)",
    "polysparse.expand(X, columns='hashed', **given)",
    "polysparse.iter_expand(X, **given)",
    "polysparse.plan(X, **given)",
    "PolynomialOperator(X, **given)",
    "PolynomialOperator(X, columns=PolynomialFeatures(**given).fit(here))",
    "PolynomialFeatures(**given).fit(here).transform(X)",
    "HashedPolynomialFeatures(**given).transform(X)",
    "ObservedPolynomialFeatures(**given).fit(here).transform(X)",
    "handler.count(ObservedPolynomialFeatures(), X, MonomialBasis(4, **given))",
    "PolynomialRidge(**given).fit(X, [1, 2, 3, 4])",
    "PolynomialLogisticRegression(columns='observed', **given).fit(X, [0, 1, 0, 1])",
    "PolynomialRidge(**given).fit(here, [1, 2, 3, 4]).predict(X)",
]


@pytest.mark.parametrize("given", GIVEN)
def test_groups_are_refused(given):
    what = "terms" if given == "terms" else "groups"
    message = (
        f"ValueError: X is on a GPU, where {what} are not supported: compute in memory, with "
        "X.get(), or X.cpu() for a tensor."
    )
    errors = errors_of(STATEMENTS, GIVEN[given])
    assert dict(zip(STATEMENTS, errors, strict=True)) == dict.fromkeys(STATEMENTS, message)


def test_groups_of_one_feature_exclude_nothing():
    statement = "refusals.require_no_groups(MonomialBasis(4, **given))"
    assert errors_of([statement], {"groups": ["a", "b", "c", "d"]}) == [""]


def errors_of(statements, given):
    """The errors of statements, where the stand-in for CuPy is on the path."""
    folder = Path(__file__).parent
    paths = [str(folder / "emulator"), str(folder.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-c", PROGRAM, json.dumps([given, statements])]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
