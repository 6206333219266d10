"""Tables as files: CSV, Parquet and Arrow, and what is wrong with some of them."""

import gzip
import re

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

from pyarrow import feather, ipc  # noqa: E402
from pyarrow import parquet as pq  # noqa: E402

from polysparse import TableEncoder  # noqa: E402
from polysparse.files.errors import FileFault  # noqa: E402
from polysparse.files.opening import open_source  # noqa: E402
from polysparse.files.table_reading import TableReading  # noqa: E402
from polysparse.tables.learning import EncodingOptions  # noqa: E402
from source_files import read, written  # noqa: E402

FRAME = pd.DataFrame(
    {
        "color": ["red", "blue", None, "red", 'a "b", c'],
        "size": [1.5, 0.0, -2.0, 3.0, 4.0],
        "is_new": [True, False, True, True, False],
        "y": [1, 0, 1, 1, 0],
    }
)


def write(path, frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if ".csv" in path.name or ".tsv" in path.name:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    elif path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=2)
    elif path.name == "stream.arrow":
        with ipc.new_stream(path, table.schema) as out:
            out.write_table(table)
    else:
        feather.write_feather(table, path, compression="uncompressed")
    return path


NAMES = ["t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.arrow", "t.feather", "stream.arrow"]


@pytest.mark.parametrize("name", NAMES)
def test_every_format_has_the_rows_of_a_table_encoder(name, tmp_path):
    X, y = read(write(tmp_path / name, FRAME), table=TableReading("y"))
    np.testing.assert_array_equal(
        X, TableEncoder().fit_transform(FRAME.drop(columns="y")).toarray()
    )
    np.testing.assert_array_equal(y, FRAME["y"])


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.arrow", "stream.arrow"])
def test_rows_after_some_are_the_last_rows(name, tmp_path):
    many = pd.concat([FRAME] * 400, ignore_index=True)
    path = write(tmp_path / name, many)
    whole, y = read(path, table=TableReading("y"))
    for skip_rows in (1, 801, 1999, 2000):
        X, some = read(path, 2**16, skip_rows, table=TableReading("y"))
        np.testing.assert_array_equal(X, whole[skip_rows:])
        assert some is None or np.array_equal(some, y[skip_rows:])


def test_columns_can_be_chosen(tmp_path):
    path = write(tmp_path / "t.csv", FRAME)
    how = TableReading("y", categorical=("size",), drop=("is_new",))
    source = open_source(str(path), table=how)
    assert source.table.feature_names[-5:] == [
        f"size={level}" for level in ("-2", "0", "1.5", "3", "4")
    ]
    assert source.notes == [f"{path}: 2 categorical columns (color, size), 0 numeric."]


def test_the_encoding_of_other_data_is_used(tmp_path):
    encoding = TableEncoder().fit(FRAME.drop(columns="y"))._encoding
    other = tmp_path / "other.csv"
    other.write_text("extra,is_new,size,color\n9,TRUE,7,green\n9,false,0,red\n")
    X, y = read(other, table=TableReading(encoding=encoding))
    # blue, red, the quoted one and missing; then size, False, True
    names = encoding.feature_names
    assert {n for n, x in zip(names, X[0], strict=True) if x} == {"size", "is_new=True"}
    assert {n for n, x in zip(names, X[1], strict=True) if x} == {"color=red", "is_new=False"}
    assert y is None


def test_numbers_that_are_levels_are_found_by_their_value_in_csv(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("price\n1.50\n2\n0.7\n")
    for prices, n_found in ([1.5, 2.0], 2), (["1.5", "2"], 1):
        encoding = TableEncoder(["price"]).fit(pd.DataFrame({"price": prices}))._encoding
        X, _ = read(path, table=TableReading(encoding=encoding))
        assert X.sum() == n_found


def test_rare_levels_and_missing_numbers(tmp_path):
    path = written(tmp_path, "t.csv", b"a,b\nx,1\nx,\ny,2\n")
    how = TableReading(options=EncodingOptions(min_frequency=2, missing="indicator"))
    source = open_source(str(path), table=how)
    assert source.table.feature_names == ["a=x", "a=(other)", "b", "b=(missing)"]
    np.testing.assert_array_equal(
        next(source.blocks(0, 2**20))[0].toarray(), [[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 2, 0]]
    )
    assert source.summary.profile.lengths == ((2, 3),)


HEAD = b"a,b,y\n"
LONG = HEAD + b"1,x,0\n" * 300_000

GOOD = {
    "quotes": HEAD + b'1,"p, ""q""",0\n',
    "newlines": HEAD + b'1,"p\nq",0\n',
    "NUL": HEAD + b"1,p\0q,0\n",
    "BOM": b"\xef\xbb\xbf" + HEAD + b"1,p,0\n",
    "CRLF": b"a,b,y\r\n1,p,0\r\n",
    "no newline at the end": HEAD + b"1,p,0",
    "blank lines": HEAD + b"\n1,p,0\n\n",
}


@pytest.mark.parametrize("name", GOOD)
def test_unusual_csv(name, tmp_path):
    path = written(tmp_path, "t.csv", GOOD[name])
    source = open_source(str(path), table=TableReading("y"))
    (level,) = source.table.variables[1].levels
    expected = {"quotes": 'p, "q"', "newlines": "p\nq", "NUL": "p\0q"}
    assert level == expected.get(name, "p")
    X, y = read(path, table=TableReading("y"))
    assert X.tolist() == [[1, 1]]
    assert y.tolist() == [0]


BAD = {
    "few cells": (HEAD + b"1,x,0\n1,x\n", r"row 3 .* has 2 cells, but 3 are expected: 1,x"),
    "many cells": (HEAD + b"1,x,0\n1,x,0,0\n", r"row 3 .* has 4 cells, but 3 .*Correct the row"),
    "few cells, late": (LONG + b"1,x\n", r"row 300002 .* has 2 cells"),
    "latin-1": (HEAD + b"1,x,0\n1,\xe9,0\n", r"column 'b', row 3 .*: the text is not UTF-8"),
    "latin-1 names": (b"a,\xe9\n1,2\n", "names of its columns are not UTF-8"),
    "empty": (b"", "is empty: its first row must have the names of columns"),
    "heading only": (HEAD, "has a heading, but no rows to learn from"),
    "heading only, without a newline": (HEAD.strip(), "has a heading, but no rows to learn from"),
    "UTF-16": (
        (HEAD + b"1,x,0\n").decode().encode("utf-16"),
        "is UTF-16 text: convert it to UTF-8",
    ),
    "gzipped": (gzip.compress(HEAD + b"1,x,0\n"), r'is gzipped: its name must end in "\.gz"'),
    "a spreadsheet": (b"PK\x03\x04" + bytes(100), "spreadsheet: save it as CSV"),
    "two names": (b"a,a,y\n1,2,0\n", "two columns are named 'a': rename one"),
    "no name": (b",a,y\n1,2,0\n", r'column 1 has no name.* drop=""'),
    "a word": (
        LONG + b"word,x,0\n",
        r"column 'a', row 300002 \(the heading is row 1\): 'word' is not a number: .*"
        r'categorical="a"',
    ),
    "no target": (b"a,b\n1,2\n", r"there is no column 'y'\. Its columns are 'a', 'b'"),
    "target missing": (HEAD + b"1,x,0\n1,x,\n", "column 'y', the target, is missing in row 3"),
    "class missing": (HEAD + b"1,x,p\n1,x,\n", "column 'y', the target, is missing in row 3"),
    "number missing": (HEAD + b"1,x,0\n,x,0\n", "column 'a' is NaN or missing in row 3"),
    "target, a word": (LONG + b"1,x,p\n", "column 'y', row 300002 .*: 'p' is not a number"),
    "date": (b"a,y\n2020-01-01,0\n", r"column 'a' is date32.*categorical=\"a\".*drop=\"a\""),
    "only a target": (b"y\n0\n", "there is no column to learn from"),
    "infinite": (HEAD + b"inf,x,0\n", "column 'a' is inf in row 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_malformed_csv(name, tmp_path):
    content, message = BAD[name]
    path = written(tmp_path, "t.csv", content)
    with pytest.raises(FileFault, match=rf"t\.csv: .*{message}"):
        read(path, table=TableReading("y"))


UNNAMED = {
    "a misspelled name": ("ages,b\n1,2\n", "age", "Did you mean 'ages'"),
    "another delimiter": ("a|y\n1|2\n", "y", "separated by commas, semicolons or tabs"),
    "no heading": ("39,x\n40,x\n", "y", "The first row must have the names of columns"),
}


@pytest.mark.parametrize("name", UNNAMED)
def test_a_column_that_is_missing_has_a_hint(name, tmp_path):
    text, target, hint = UNNAMED[name]
    path = written(tmp_path, "t.csv", text.encode())
    with pytest.raises(FileFault, match=rf"there is no column '{target}'.*{hint}"):
        read(path, table=TableReading(target))


def test_a_target_of_dates(tmp_path):
    path = written(tmp_path, "t.csv", b"a,y\n1,2020-01-01\n")
    with pytest.raises(FileFault, match=r"'y', the target, is date32.*Convert it"):
        read(path, table=TableReading("y"))


DOUBTS = {
    "a word among numbers": (
        [*range(99), "?"],
        r"of values such as '\?'.*categorical=\"a\"",
    ),
    "percents": ([f"{i}%" for i in range(100)], "such as '0%', but most .* look like numbers"),
    "thousands": ([f"{i},000" for i in range(100)], "such as '0,000', but"),
    "names of rows": ([f"user {i}" for i in range(100)], r"100 levels in 100 rows.*drop=\"a\""),
    "words": (["p", "q"] * 50, None),
    "ranges": ([f"{i % 20}-{i % 20 + 1}" for i in range(100)], None),
    "numbers": (range(100), None),
}


@pytest.mark.parametrize("name", DOUBTS)
def test_columns_that_are_perhaps_not_categorical_are_told(name, tmp_path):
    values, note = DOUBTS[name]
    table = pd.DataFrame({"a": list(map(str, values)), "y": 0})
    path = write(tmp_path / "t.csv", table)
    _, *notes = open_source(str(path), table=TableReading("y")).notes
    assert len(notes) == (note is not None)
    assert note is None or re.search(note, notes[0])
    (_,) = open_source(str(path), table=TableReading("y", categorical=("a",))).notes


def test_categories_that_are_numbers_are_not_doubted(tmp_path):
    table = pd.DataFrame({"a": list(map(str, range(30))) * 3, "y": 0})
    write(tmp_path / "t.parquet", table.astype({"a": "category"}))
    (_,) = open_source(str(tmp_path / "t.parquet"), table=TableReading("y")).notes


def test_a_word_in_test_data(tmp_path):
    encoding = open_source(str(written(tmp_path, "a.csv", HEAD + b"1,x,0\n"))).table
    path = written(tmp_path, "t.csv", HEAD + b"word,x,0\n")
    with pytest.raises(FileFault, match=r"'word' is not a number, .* training data .* correct it"):
        read(path, table=TableReading(encoding=encoding))


def test_a_word_after_columns_that_are_not_read(tmp_path):
    path = written(tmp_path, "t.csv", b"y,id,a,b\n" + b"0,p,1,x\n" * 300_000 + b"0,p,word,x\n")
    with pytest.raises(FileFault, match=r"column 'a', row 300002 .*categorical=\"a\""):
        read(path, table=TableReading("y", drop=("id",)))


@pytest.mark.parametrize("name", NAMES)
def test_dates_are_levels_if_they_are_listed(name, tmp_path):
    days = pd.to_datetime(["2020-01-02", "2020-01-01", None, "2020-01-02"]).date
    path = write(tmp_path / name, pd.DataFrame({"day": days, "y": [0, 1, 0, 1]}))
    with pytest.raises(FileFault, match=r"column 'day' is date32.*text with categorical"):
        read(path, table=TableReading("y"))
    source = open_source(str(path), table=TableReading("y", categorical=("day",)))
    names = ["day=2020-01-01", "day=2020-01-02", "day=(missing)"]
    assert source.table.feature_names == names
    again = open_source(str(path), table=TableReading("y", encoding=source.table))
    X, _ = next(iter(again.blocks(0, 2**20)))
    assert X.toarray().argmax(axis=1)[:2].tolist() == [1, 0]


def test_lists_cannot_be_levels(tmp_path):
    pq.write_table(pa.table({"a": [[1], [2]]}), tmp_path / "t.parquet")
    with pytest.raises(
        FileFault, match=r'column \'a\' is list.*cannot be read as text: .*drop="a"'
    ):
        read(tmp_path / "t.parquet", table=TableReading(categorical=("a",)))


@pytest.mark.parametrize("delimiter", [";", "\t", ","])
def test_the_heading_has_the_delimiter(delimiter, tmp_path):
    text = "a,y\n1.5,0\n2,1\n".replace(",", delimiter)
    X, y = read(written(tmp_path, "t.csv", text.encode()), table=TableReading("y"))
    assert X.tolist() == [[1.5], [2.0]]
    assert y.tolist() == [0, 1]


def test_a_quote_that_is_not_closed(tmp_path):
    path = written(tmp_path, "t.csv", HEAD + b'1,"x,0\n' + b"1,x,0\n" * 10)
    with pytest.raises(FileFault, match=r"row 2 .* has 2 cells, but 3"):
        read(path, table=TableReading("y"))


OPEN = [f"{i % 2},{'pqr'[i % 3]},{'uv'[i // 2 % 2]}" if i != 500 else '1,p,"u' for i in range(1000)]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("drop", [(), ("d",)])
@pytest.mark.parametrize("end", ["\n", "", "\r\n", '\n""\n'])
def test_a_quote_in_the_last_column_that_is_not_closed(end, drop, name, tmp_path):
    text = ("y,c,d\n" + "\n".join(OPEN) + end).encode()
    path = written(tmp_path, name, gzip.compress(text) if name.endswith("gz") else text)
    with pytest.raises(FileFault, match=r"column 'd', row 502 \(the heading is row 1\): the quote"):
        read(path, table=TableReading("y", drop=drop))


@pytest.mark.parametrize("cell", ["\n", 'p\n""\n', "p\nq", "\r\n\r\n", '\n""'])
@pytest.mark.parametrize("end", ["\n", "", "\n\n"])
def test_a_last_cell_of_several_lines(end, cell, tmp_path):
    path = written(tmp_path, "t.csv", f'y,c,d\n1,p,"{cell}"{end}'.encode())
    (level,) = open_source(str(path), table=TableReading("y")).table.variables[1].levels
    assert level == cell.replace('""', '"')


def test_a_last_column_that_is_dropped_need_not_be_utf_8(tmp_path):
    path = written(tmp_path, "t.csv", b"y,c,d\n1,p,\xe9\n")
    X, _ = read(path, table=TableReading("y", drop=("d",)))
    assert X.tolist() == [[1]]


def test_a_damaged_gzip_file(tmp_path):
    path = written(tmp_path, "t.csv.gz", gzip.compress(LONG)[:-100])
    with pytest.raises(FileFault, match=r"t\.csv\.gz"):
        read(path, table=TableReading("y"))


def test_a_row_that_is_too_long(tmp_path):
    path = written(tmp_path, "t.csv", HEAD + b"1," + b"x" * 2**21 + b",0\n")
    with pytest.raises(FileFault, match=r"a row is longer than .* bytes, or a quote is not closed"):
        read(path, table=TableReading("y"))


@pytest.mark.parametrize(("late", "kind"), [(b"2.5", "numeric"), (b"word", "categorical")])
def test_a_column_whose_first_values_are_missing(late, kind, tmp_path):
    content = HEAD + b",x,0\n" * 300_000 + late + b",x,0\n"
    options = EncodingOptions(missing="indicator")
    source = open_source(
        str(written(tmp_path, "t.csv", content)), table=TableReading("y", options=options)
    )
    assert source.table.variables[0].as_dict()["kind"] == kind


def test_whole_numbers_may_have_fractions_later(tmp_path):
    X, _ = read(written(tmp_path, "t.csv", LONG + b"2.5,x,0\n"), table=TableReading("y"))
    assert X[-1].tolist() == [2.5, 1.0]


def test_too_many_levels_for_a_memory_limit(tmp_path):
    text = "a,y\n" + "".join(f"id{i},0\n" for i in range(20_000))
    path = written(tmp_path, "t.csv", text.encode())
    with pytest.raises(MemoryError, match=r"column 'a' has 20,000, need .* drop=\"a\""):
        read(path, table=TableReading("y"), max_memory=2**22)


def test_a_table_in_parquet_may_have_a_column_of_values(tmp_path):
    path = write(tmp_path / "t.parquet", pd.DataFrame({"values": [1.0, 2.0]}))
    assert read(path)[0].tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"categorical": ("a",), "numeric": ("a",)}, "'a' is listed in categorical and in numeric"),
        ({"target": "a", "drop": ("a",)}, "'a' is listed in target and in drop"),
        ({"options": EncodingOptions(max_categories=0)}, "max_categories must be"),
    ],
)
def test_options_that_contradict_each_other(how, message):
    with pytest.raises(ValueError, match=message):
        TableReading(**how).require_consistent()
