"""The transformers on dask arrays: what they learn and give is that of the whole matrix."""

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from csr_zoo import FITTABLE, FORMATS, random_dense, raw_csr
from dask_blocks import everything, from_blocks, lazily
from inside import set_available_memory
from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
)

X = sparse.csr_array(random_dense(60, 7, 0.4))
SIZES = [[60], [23, 37], [1] * 60, [0, 1, 0, 40, 18, 0, 1, 0]]
TRANSFORMERS = {
    "all": PolynomialFeatures(3),
    "interactions": PolynomialFeatures((2, 3), interaction_only=True, include_bias=False),
    "observed": ObservedPolynomialFeatures(3),
    "frequent": ObservedPolynomialFeatures(2, min_count=9, max_columns=20),
    "observed, dense": ObservedPolynomialFeatures(2, min_count=9, sparse_output=False),
    "hashed": HashedPolynomialFeatures(3, n_columns=50),
    "hashed, dense": HashedPolynomialFeatures(2, n_columns=50, sparse_output=False),
}
every_transformer = pytest.mark.parametrize("kind", TRANSFORMERS)


def state(transformer):
    """What a fitted transformer has learned."""
    names = ("n_features_in_", "n_output_features_", "columns_", "counts_", "basis_")
    return {name: np.array(getattr(transformer, name, None)).tolist() for name in names}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("sizes", SIZES, ids=len)
@every_transformer
def test_fit_and_transform_are_those_of_the_whole_matrix(kind, sizes, known):
    here, away = clone(TRANSFORMERS[kind]), clone(TRANSFORMERS[kind])
    whole, rows = here.fit_transform(X), lazily(X, sizes, known)
    result = away.fit(rows).transform(rows)
    assert state(away) == state(here)
    assert isinstance(result, da.Array)
    assert result.dtype == whole.dtype
    assert result.chunks[1] == whole.shape[1:]
    assert type(result._meta) is type(whole)
    assert everything(result.compute(scheduler="threads")) == everything(whole)
    # Each takes what the other was fitted to.
    assert everything(away.transform(X)) == everything(whole)
    assert everything(here.transform(rows).compute()) == everything(whole)


@every_transformer
def test_fit_transform_and_other_processes(kind, client):
    rows, transformer = lazily(X, [20, 0, 40]), clone(TRANSFORMERS[kind])
    with client.as_current():
        result = transformer.fit_transform(rows).compute()
    whole = clone(TRANSFORMERS[kind]).fit_transform(X)
    assert everything(result) == everything(whole)


@pytest.mark.parametrize("build", [b for b in FITTABLE if b not in FORMATS])
@every_transformer
def test_awkward_blocks(kind, build):
    block, dense = build()
    rows = from_blocks([block, block], meta=type(block)((0, 0), dtype=dense.dtype))
    away, here = clone(TRANSFORMERS[kind]), clone(TRANSFORMERS[kind])
    both = np.vstack([dense, dense])
    if kind in ("observed, dense", "frequent"):
        here, away = (t.set_params(min_count=1) for t in (here, away))
    whole = here.fit_transform(type(block)(both))
    assert everything(away.fit_transform(rows).compute()) == everything(whole)
    assert state(away) == state(here)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, int])
@every_transformer
def test_dense_blocks(kind, dtype):
    dense = (10 * X.toarray()).astype(dtype)
    rows = da.from_array(dense, chunks=(25, 3))
    away, here = clone(TRANSFORMERS[kind]), clone(TRANSFORMERS[kind])
    result, whole = away.fit_transform(rows), here.fit_transform(dense)
    assert result.dtype == whole.dtype
    assert everything(result.compute()) == everything(whole)


@pytest.mark.parametrize("family", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
@every_transformer
def test_containers(kind, family):
    rows = lazily(family(X), [30, 30])
    whole = clone(TRANSFORMERS[kind]).fit_transform(family(X))
    result = clone(TRANSFORMERS[kind]).fit_transform(rows)
    assert type(result._meta) is type(whole)
    computed = result.compute()
    assert type(computed) is type(whole)
    np.testing.assert_array_equal(
        *(a if isinstance(a, np.ndarray) else a.toarray() for a in (computed, whole))
    )


@every_transformer
def test_transform_touches_no_data(kind):
    transformer = clone(TRANSFORMERS[kind]).fit(X)

    def touch():
        raise AssertionError("data were touched")

    rows = da.map_blocks(touch, chunks=((3, 3), (7,)), dtype=float, meta=X[:0, :0])
    result = transformer.transform(rows)
    assert transformer.transform(rows).name == result.name
    if not isinstance(transformer, ObservedPolynomialFeatures):
        clone(transformer).fit(rows)
    with pytest.raises(AssertionError, match="data were touched"):
        result.compute()


def test_other_columns_have_another_name():
    rows = lazily(X, [60])
    names = {t.fit(X).transform(rows).name for t in map(clone, TRANSFORMERS.values())}
    assert len(names) == len(TRANSFORMERS)


def test_more_rows_can_be_learned_later():
    whole = ObservedPolynomialFeatures(3, min_count=5).fit(X)
    away = ObservedPolynomialFeatures(3, min_count=5)
    for rows in (lazily(X[:20], [7, 13]), X[20:30], lazily(X[30:], [30]), lazily(X[:0], [0])):
        away.partial_fit(rows)
    assert state(away) == state(whole)
    assert HashedPolynomialFeatures().partial_fit(lazily(X, [60])).n_features_in_ == 7


def test_chosen_columns_are_counted():
    poly = ObservedPolynomialFeatures(3, columns=[2, 9, 30, 77], min_count=5)
    assert state(clone(poly).fit(lazily(X, [23, 37]))) == state(poly.fit(X))


def test_only_what_transform_needs_goes_to_the_workers():
    rows = lazily(X, [30, 30])
    away = ObservedPolynomialFeatures(3, min_count=30, n_jobs=2).fit(rows)
    graph = away.transform(rows).__dask_graph__()
    (layer,) = [layer for name, layer in graph.layers.items() if name.endswith("-same")]
    (node,) = layer.values()
    sent = node()
    assert sent.n_jobs == 2
    assert len(sent.columns_) == len(away.columns_)
    with pytest.raises(ValueError, match="are gone"):
        sent.partial_fit(X)
    away.partial_fit(X)  # which needs the counts of all columns


def test_a_pipeline_of_two():
    steps = [PolynomialFeatures(2, include_bias=False), ObservedPolynomialFeatures(2, min_count=3)]
    away, here = (make_pipeline(*map(clone, steps)) for _ in range(2))
    result = away.fit_transform(lazily(X, [20, 40]))
    assert everything(result.compute()) == everything(here.fit_transform(X))


def test_the_configuration_of_scikit_learn_reaches_the_tasks(client):
    if "sparse_interface" not in sklearn.get_config():
        pytest.skip("this scikit-learn has no sparse_interface")
    for interface, family in (("sparray", sparse.csr_array), ("spmatrix", sparse.csr_matrix)):
        with sklearn.config_context(sparse_interface=interface):
            result = HashedPolynomialFeatures(n_columns=9).fit_transform(lazily(X, [20, 40]))
        assert type(result._meta) is family
        assert type(result.compute(scheduler="threads")) is family
        assert type(client.compute(result).result()) is family


# ----------------------------------------------------------------------------------------- errors


@every_transformer
def test_another_number_of_features_is_refused_at_once(kind):
    transformer = clone(TRANSFORMERS[kind]).fit(X)
    for wrong in (X[:, :5], sparse.csr_array((3, 9))):
        with pytest.raises(ValueError, match=f"X has {wrong.shape[1]} features, but .* 7 feat"):
            transformer.transform(lazily(wrong, [wrong.shape[0]]))


@every_transformer
def test_no_rows_are_refused_as_by_scikit_learn(kind):
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        clone(TRANSFORMERS[kind]).fit(lazily(X[:0], [0]))


@pytest.mark.parametrize("known", [True, False])
def test_nothing_to_learn_is_said(known):
    with pytest.raises(ValueError, match=r"No column occurs|0 sample\(s\)"):
        ObservedPolynomialFeatures().fit(lazily(X[:0], [0, 0], known))


@pytest.mark.parametrize("method", ["fit", "transform"])
def test_a_block_with_infinity_is_named(method):
    wrong = raw_csr([np.inf], [2], [0, 1], (1, 7), sparse.csr_array)
    rows = from_blocks([X, wrong], meta=X[:0, :0])
    with pytest.raises(ValueError, match="Input X contains infinity") as refused:
        dask.compute(getattr(ObservedPolynomialFeatures().fit(X), method)(rows))
    assert "X.blocks[1]" in refused.value.__notes__[0]


def test_a_malformed_block_is_named():
    wrong = raw_csr([1.0], [7], [0, 1], (1, 7), sparse.csr_array)
    rows = from_blocks([X, wrong], meta=X[:0, :0])
    with pytest.raises(ValueError, match=r"X.indices\[0\] is 7") as refused:
        ObservedPolynomialFeatures().fit(rows)
    assert "X.blocks[1]" in refused.value.__notes__[0]


def test_a_block_of_another_width_is_refused():
    rows = from_blocks([X, X], meta=X[:0, :0]).map_blocks(lambda b: b[:, :5], meta=X[:0, :0])
    with pytest.raises(ValueError, match="X has 5 features"):
        ObservedPolynomialFeatures().fit(rows)
    with pytest.raises(ValueError, match="X has 5 features"):
        PolynomialFeatures().fit(X).transform(rows).compute()


def test_names_of_features_are_missed_once():
    """Blocks have no names, as a sparse matrix has none; scikit-learn says so."""
    transformer = PolynomialFeatures().fit(pd.DataFrame(X.toarray(), columns=list("abcdefg")))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        result = transformer.transform(lazily(X, [20, 40]))
    assert everything(result.compute()) == everything(PolynomialFeatures().fit_transform(X))


@pytest.mark.parametrize("method", ["collisions", "candidates"])
def test_what_needs_the_rows_here_says_so(method):
    arguments = [[0]] if method == "candidates" else []
    with pytest.raises(TypeError, match="X is a Dask array; this function needs it in memory"):
        getattr(HashedPolynomialFeatures(), method)(lazily(X, [60]), *arguments)


def test_a_transformer_that_is_not_fitted_is_refused():
    with pytest.raises(sklearn.exceptions.NotFittedError):
        PolynomialFeatures().transform(lazily(X, [60]))


@every_transformer
def test_frames_of_all_rows_are_refused(kind):
    transformer, rows = clone(TRANSFORMERS[kind]).fit(X), lazily(X, [23, 37])
    transformer.set_output(transform="pandas")
    if "dense" in kind:
        message = r'set_output\(transform="pandas"\) would compute all of a dask array'
        with pytest.raises(TypeError, match=message):
            transformer.transform(rows)
    else:
        with pytest.raises(ValueError, match="outputs a scipy sparse matrix"):
            transformer.transform(rows)
    with sklearn.config_context(transform_output="pandas"), pytest.raises((TypeError, ValueError)):
        clone(TRANSFORMERS[kind]).fit(X).transform(rows)
    assert isinstance(transformer.set_output(transform="default").transform(rows), da.Array)


def test_no_row_is_made_where_the_result_is_described(monkeypatch):
    """One row of this would take 36 GB."""
    set_available_memory(monkeypatch, 2**24)
    rows = da.zeros((100, 3000), chunks=(10, 3000))
    result = PolynomialFeatures(3).fit(rows).transform(rows)
    assert result.shape == (100, 4_509_005_501)
