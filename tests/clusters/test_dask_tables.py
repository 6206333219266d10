"""Estimators with `categorical_features` on Dask: rows are encoded first, or errors say how."""

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("dask")
pytest.importorskip("pandas")

import dask.array as da
import pandas as pd

import polysparse.dask
from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialLogisticRegression,
    PolynomialRidge,
    TableEncoder,
)
from polysparse.clusters.worker_copies import copy_for_workers

TABLE = pd.DataFrame({"color": ["red", "blue", "red", "grey"] * 5, "size": np.arange(20.0)})
ENCODER = TableEncoder().fit(TABLE)
Y = np.arange(20) % 2.0
TRANSFORMERS = PolynomialFeatures, ObservedPolynomialFeatures, HashedPolynomialFeatures
MODELS = PolynomialRidge, PolynomialLogisticRegression


def dense():
    return da.from_array(ENCODER.transform(TABLE).toarray(), chunks=(6, -1))


def csr():
    return dense().map_blocks(sparse.csr_array)


def of_frame():
    frames = pytest.importorskip("dask.dataframe")
    return frames.from_pandas(TABLE, npartitions=3).map_partitions(ENCODER.transform)


every_array = pytest.mark.parametrize("make", [dense, csr, of_frame])


def assert_same_rows(found, wanted):
    assert (abs(sparse.csr_array(found) - sparse.csr_array(wanted)) > 0).nnz == 0


@every_array
@pytest.mark.parametrize("terms", [None, ["color:size", "size"]])
@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_transformers_of_a_table_take_encoded_rows(make, kind, terms):
    fitted = kind(categorical_features="from_dtype", terms=terms).fit(TABLE)
    assert_same_rows(fitted.transform(make()).compute(), fitted.transform(TABLE))


@every_array
@pytest.mark.parametrize("kind", MODELS)
def test_models_of_a_table_take_encoded_rows(make, kind):
    fitted = kind().fit(TABLE, Y)
    np.testing.assert_array_equal(fitted.predict(make()).compute(), fitted.predict(TABLE))


@every_array
@pytest.mark.parametrize("kind", MODELS)
def test_models_are_fitted_to_encoded_rows(make, kind):
    X = make()
    y = da.from_array(Y, chunks=(6 if make is not of_frame else (7, 7, 6),))
    fitted = kind(groups=ENCODER.groups_, tol=1e-10).fit(X, y)
    wanted = kind(tol=1e-10).fit(TABLE, Y)
    np.testing.assert_allclose(fitted.coef_, wanted.coef_, rtol=1e-3, atol=1e-5)
    assert fitted.column_space_.n_columns == wanted.column_space_.n_columns


def test_y_may_be_a_column_of_a_frame():
    frames = pytest.importorskip("dask.dataframe")
    y = frames.from_pandas(pd.Series(Y), npartitions=3)
    wanted = PolynomialRidge(groups=ENCODER.groups_).fit(ENCODER.transform(TABLE), Y)
    found = PolynomialRidge(groups=ENCODER.groups_).fit(of_frame(), y)
    X = dense().compute()
    np.testing.assert_allclose(found.predict(X), wanted.predict(X), rtol=1e-4)


def test_the_table_of_an_earlier_fit_is_forgotten():
    for kind in (PolynomialFeatures, ObservedPolynomialFeatures):
        fitted = kind(categorical_features="from_dtype").fit(TABLE).fit(csr())
        assert fitted.n_features_in_ == 4
        assert not hasattr(fitted, "table_encoder_")
    model = PolynomialRidge().fit(TABLE, Y).fit(csr(), Y)
    assert not hasattr(model, "table_encoder_")


def test_workers_get_no_counts_of_levels():
    for fitted in (
        PolynomialRidge().fit(TABLE, Y),
        PolynomialFeatures(categorical_features="from_dtype").fit(TABLE),
    ):
        light = copy_for_workers(fitted)
        assert light.table_encoder_._counts is None
        assert not hasattr(light, "feature_names_in_")
        assert fitted.table_encoder_._counts is not None
        assert hasattr(fitted, "feature_names_in_")


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize("kind", [*TRANSFORMERS, *MODELS])
def test_columns_that_are_not_in_memory_cannot_be_categorical(kind):
    with pytest.raises(ValueError, match=r"categorical_features needs X in memory.* TableEncoder"):
        kind(categorical_features=[0]).fit(dense(), Y)
    with pytest.raises(ValueError, match="but X is sparse: encode it first"):
        kind(categorical_features=[0]).fit(csr(), Y)
    with pytest.raises(ValueError, match='categorical_features must be "from_dtype"'):
        kind(categorical_features="some").fit(csr(), Y)


def test_rows_that_are_not_encoded():
    raw = da.ones((6, 2), chunks=(3, 2))
    message = r"X has 2 features and is not a table.* became 4 features: pass .*table_encoder_"
    with pytest.raises(ValueError, match=message):
        PolynomialRidge().fit(TABLE, Y).predict(raw)
    with pytest.raises(ValueError, match=message):
        PolynomialFeatures(categorical_features="from_dtype").fit(TABLE).transform(raw)


def test_frames_of_dask_are_refused_with_a_way_out():
    frames = pytest.importorskip("dask.dataframe")
    frame = frames.from_pandas(TABLE, npartitions=2)
    model = PolynomialRidge().fit(TABLE, Y)
    poly = PolynomialFeatures(categorical_features="from_dtype")
    for call in (
        lambda: PolynomialRidge().fit(frame, Y),
        lambda: model.predict(frame),
        lambda: poly.fit(frame),
        lambda: poly.fit(TABLE).transform(frame),
        lambda: polysparse.expand(frame),
        lambda: TableEncoder().fit(frame),
        lambda: TableEncoder().partial_fit(frame),
        lambda: ENCODER.transform(frame),
    ):
        with pytest.raises(TypeError, match=r"X.map_partitions\(encoder.transform\)"):
            call()


def test_arrays_of_dask_are_refused_by_an_encoder():
    with pytest.raises(TypeError, match=r"dask Array, .* X.map_blocks\(encoder.transform\)"):
        TableEncoder().fit(dense())
    with pytest.raises(TypeError, match=r"needs it in memory. Call X.compute\(\)"):
        ENCODER.inverse_transform(dense())


def test_read_refuses_a_table():
    with pytest.raises(TypeError, match="paths must be files, but it is a table"):
        polysparse.dask.read(TABLE)
