"""Parquet files: every kind of list and number, and what is refused."""

from decimal import Decimal

import numpy as np
import pytest

from inside import lower
from polysparse.files.errors import FileFault
from polysparse.files.opening import open_source
from polysparse.files.parquet_source import rows_within
from polysparse.matrix.row_profile import RowProfile
from source_files import parquet, read, written


def list_types():
    pa = pytest.importorskip("pyarrow")
    makers = (pa.list_, pa.large_list, getattr(pa, "list_view", None))
    makers += (getattr(pa, "large_list_view", None), lambda value: pa.list_(value, 2))
    return [make for make in makers if make is not None]


def test_parquet_of_every_kind_of_list_and_number(tmp_path):
    pa = pytest.importorskip("pyarrow")
    rows = [[0, 2], [1, 2], [2, 0]]
    expected = np.array([[1, 0, 0], [0, 0, 1], [1, 0, 1.0]])
    integers = [pa.int8(), pa.uint16(), pa.int32(), pa.uint64()]
    numbers = [pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_()]
    casts = {pa.bool_(): bool, pa.float16(): np.float16, pa.decimal128(9, 2): Decimal}
    for make in list_types():
        for number in [*numbers, pa.decimal128(9, 2)]:
            index = integers[len(str(number)) % len(integers)]
            cast = casts.get(number, int)
            values = [[cast(v) for v in row] for row in ([1, 0], [0, 1], [1, 1])]
            columns = {
                "indices": pa.array(rows, make(index)),
                "values": pa.array(values, make(number)),
            }
            try:
                path = written(tmp_path, "in.parquet", parquet(**columns))
            except pa.ArrowNotImplementedError:  # an older pyarrow has list views in memory only
                assert "view" in str(columns["indices"].type)
                continue
            np.testing.assert_array_equal(read(path)[0], expected, err_msg=str((make, number)))
            np.testing.assert_array_equal(read(path, block_bytes=1, skip_rows=1)[0], expected[1:])


def test_float32_stays_float32(tmp_path):
    pa = pytest.importorskip("pyarrow")
    values = pa.array([[1.5]], pa.list_(pa.float32()))
    path = written(tmp_path, "in.parquet", parquet(indices=pa.array([[0]]), values=values))
    ((X, _),) = open_source(str(path)).blocks(0, 100)
    assert X.dtype == np.float32


def wrong_columns():
    pa = pytest.importorskip("pyarrow")
    good = {"indices": pa.array([[0, 1], [2]]), "values": pa.array([[1.0, 2.0], [3.0]])}
    structs = pa.array([{"a": 1}, {"a": 2}])
    maps = pa.array([[(0, 1)], [(2, 1)]], pa.map_(pa.int64(), pa.int64()))
    huge = pa.array([[0, 2**63], [2]], pa.list_(pa.uint64()))
    times = good["indices"].cast(pa.list_(pa.timestamp("s")))
    for change, message in [
        ({"indices": good["values"]}, r"'indices' is list<.*double>: lists of integers are needed"),
        ({"indices": pa.array([[True, False], [True]])}, "lists of integers are needed"),
        ({"indices": times}, "lists of integers are needed"),
        ({"indices": pa.array([["0", "1"], ["2"]])}, "lists of integers are needed"),
        ({"indices": structs}, "has no list column 'indices'"),
        ({"indices": maps}, "has no list column 'indices'"),
        ({"values": maps}, "has no list column 'values'"),
        ({"values": times}, "'values' is .*: lists of numbers are needed"),
        ({"indices": pa.array([[0, None], [2]])}, "column 'indices': a number is null"),
        ({"values": pa.array([[0.5, None], [2.0]])}, "column 'values': a number is null"),
        ({"values": pa.array([None, [2.0]])}, "column 'values': a row is null"),
        ({"indices": huge}, "'indices': Integer value 9223372036854775808"),
        ({"values": pa.array([[0, 2**53 + 1], [2]])}, "'values': Integer value 9007199254740993"),
        ({"label": pa.array(["a", "b"])}, "column 'label' is string: numbers are needed"),
        ({"label": pa.array([1.0, None])}, "column 'label': a number is null"),
        ({"metadata": {"polysparse:n_features": "x"}}, "metadata polysparse:n_features is 'x'"),
        ({"metadata": {"polysparse:n_features": "2"}}, "metadata polysparse:n_features is '2'"),
        ({"metadata": {"polysparse:n_features": "-9"}}, "metadata polysparse:n_features is '-9'"),
    ]:
        yield {**good, **change}, message


def test_parquet_that_does_not_say_which_numbers_are_meant_is_refused(tmp_path):
    for columns, message in wrong_columns():
        path = written(tmp_path, "in.parquet", parquet(**columns))
        with pytest.raises(FileFault, match=message) as raised:
            read(path)
        assert str(raised.value).startswith(f"{path}: ")


def test_parquet_with_two_columns_of_one_name_is_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    lists = pa.array([[0]])
    table = pa.Table.from_arrays([lists] * 3, names=["indices", "values", "values"])
    pq.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(FileFault, match="has several columns 'values'"):
        read(tmp_path / "in.parquet")


def test_parquet_is_read_in_blocks_of_the_size_that_was_asked_for(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    lower(monkeypatch, SCAN_BYTES=1000)
    dense = np.arange(1, 101.0)[:, None] * np.ones(20)
    columns = {"indices": pa.array([list(range(20))] * 100), "values": pa.array(dense.tolist())}
    path = written(tmp_path, "in.parquet", parquet(**columns, label=pa.array(range(100))))
    source = open_source(str(path))
    assert source._rows_to_scan() == 5
    sizes = [X.shape[0] for X, _ in source.blocks(0, 10 * 20 * 16)]
    assert max(sizes) == 9
    assert sum(sizes) == 100
    np.testing.assert_array_equal(read(path, block_bytes=1)[0], dense)
    rest, labels = read(path, block_bytes=5000, skip_rows=37)
    np.testing.assert_array_equal(rest, dense[37:])
    np.testing.assert_array_equal(labels, np.arange(37, 100))


def test_so_many_rows_fit_whichever_they_are():
    assert rows_within(0, RowProfile(((10, 5),))) == 1
    assert rows_within(2**30, RowProfile()) == 1
    assert rows_within(3 * 176, RowProfile(((10, 5),))) == 3
    assert rows_within(176 + 16 * 7, RowProfile(((0, 100), (10, 1)))) == 8
    assert rows_within(2**40, RowProfile(((0, 100), (10, 1)))) == 101
