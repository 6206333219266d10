"""What peers get wrong or leave out, right: one test for each finding.

Some are tested in full elsewhere; those are named in the table at the end.
"""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

import polysparse
from checks import bits
from csr_zoo import random_dense, raw_csr


def test_unsorted_indices_give_the_right_columns():
    X = sparse.csr_array(([2.0, 3.0, 5.0], [2, 0, 1], [0, 3]), shape=(1, 4))
    result = polysparse.expand(X, 2, include_bias=False).toarray()[0]
    assert result.tolist() == [3, 5, 2, 0, 9, 15, 6, 0, 25, 10, 0, 4, 0, 0]


@pytest.mark.parametrize("interaction_only", [False, True])
def test_duplicates_are_summed_first(interaction_only):
    X = raw_csr([1.0, 2.0], [1, 1], [0, 2], (1, 3))
    result = polysparse.expand(X, 2, interaction_only=interaction_only, include_bias=False)
    wanted = [0, 3, 0, 0, 0, 0] if interaction_only else [0, 3, 0, 0, 0, 0, 9, 0, 0]
    assert result.toarray()[0].tolist() == wanted


def test_stored_zeros_do_not_multiply():
    X = raw_csr([0.0, 2.0], [0, 1], [0, 2], (1, 2))
    assert polysparse.expand(X, 2, include_bias=False).nnz == 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_int64_in_is_int32_out_and_models_accept_it():
    X = raw_csr(np.ones(40), np.tile([0, 3], 20), range(0, 41, 2), (20, 5), index_dtype=np.int64)
    result = polysparse.PolynomialFeatures().fit_transform(X)
    assert result.indices.dtype == result.indptr.dtype == np.int32
    for model in (SGDClassifier(random_state=0), LinearSVC(random_state=0)):
        model.fit(result, np.arange(20) % 2)


def test_degrees_of_four_and_more_take_no_step_per_column():
    """200 x 30 at density 0.2, degree 5: 190 s in scikit-learn."""
    result = polysparse.expand(sparse.csr_array(random_dense(200, 30, 0.2)), 5)
    assert result.shape[1] == 324_632


def test_a_single_row_of_many_values_among_short_ones():
    dense = random_dense(300, 3000, 0.001)
    dense[150] = 1.5
    X = sparse.csr_array(dense)
    assert bits(polysparse.expand(X, n_jobs=2)) == bits(polysparse.expand(X, n_jobs=1))


def test_rows_longer_than_a_gpu_block():
    """CuML cannot launch rows of over 2,047 (degree 2) or 231 (degree 3) stored values."""
    dense = np.ones((2, 2500))
    assert polysparse.expand(sparse.csr_array(dense), 2).nnz == 2 * (1 + 2500 + 2500 * 2501 // 2)
    dense = np.ones((1, 240))
    assert polysparse.expand(sparse.csr_array(dense), (3, 3)).nnz == 1 + 240 * 241 * 242 // 6


def test_empty_blocks():
    X = sparse.csr_array(np.ones((3, 2)))
    none = polysparse.expand(X, (3, 3), interaction_only=True, include_bias=False)
    assert none.shape == (3, 0)
    assert none.indptr.tolist() == [0, 0, 0, 0]
    assert polysparse.expand(sparse.csr_array((3, 0)), 2).toarray().tolist() == [[1.0]] * 3
    assert polysparse.expand(sparse.csr_array((0, 3)), 2).shape == (0, 10)
    assert polysparse.expand(X, 0).toarray().tolist() == [[1.0]] * 3


def test_column_order_is_not_that_of_spark():
    assert polysparse.MonomialBasis(2, 2).names(input_features=["x", "y"]).tolist() == [
        "1",
        "x",
        "y",
        "x^2",
        "x y",
        "y^2",
    ]


ELSEWHERE = {
    "read-only arrays": "test_polynomial.py::test_feature_union_in_two_processes_on_many_rows",
    "mixed index dtypes": "csr_zoo.py::mixed_index_dtypes",
    "peak memory": "test_faults.py::test_peak_memory_is_little_more_than_the_output",
    "powers and names, never dense": "test_polynomial.py::test_names_of_two_thousand_features",
    "names that clash": "test_basis.py::test_names_that_clash_are_refused",
    "limits of int32 and int64": "test_basis.py::test_both_sides_of_the_limits_of_the_index_types",
    "intermediate overflow": "test_basis.py::test_intermediate_products_do_not_overflow",
    "offsets that need int64": "test_plan.py::test_stored_values_alone_can_force_int64",
}


@pytest.mark.parametrize("finding", ELSEWHERE)
def test_what_is_tested_elsewhere_is_there(finding):
    file, name = ELSEWHERE[finding].split("::")
    (path,) = Path(__file__).parents[1].rglob(file)
    assert f"def {name}(" in path.read_text()
