"""read: tables as dask arrays. Rows, names and messages are those of a file that is read whole."""

import gzip

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("dask")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

from pyarrow import feather, ipc  # noqa: E402
from pyarrow import parquet as pq  # noqa: E402

import polysparse  # noqa: E402
from polysparse import (  # noqa: E402
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialLogisticRegression,
    PolynomialRidge,
    TableEncoder,
)
from polysparse.dask import read  # noqa: E402
from polysparse.files.errors import FileFault  # noqa: E402
from polysparse.files.opening import open_source  # noqa: E402
from polysparse.files.table_reading import TableReading  # noqa: E402

FRAME = pd.DataFrame(
    {
        "color": ["red", "blue", None, "red", 'a "b", c', "two\nlines"] * 5 + ["last"],
        "size": [1.5, 0.0, -2.0, 3.0, 4.0, 1e-3] * 5 + [7.0],
        "is_new": [True, False, True, True, False, True] * 5 + [False],
        "y": ["low", "high", "low", "low", "high", "low"] * 5 + ["high"],
    }
)
X_FRAME = FRAME.drop(columns="y")
NAMES = ["t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.arrow", "t.feather", "stream.arrow"]
SIZES = [1, 7, 64, 300, 10**6]


def write(path, frame=FRAME):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if ".csv" in path.name or ".tsv" in path.name:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    elif path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=4)
    elif path.name == "stream.arrow":
        with ipc.new_stream(path, table.schema) as out:
            out.write_table(table, max_chunksize=4)
    else:
        is_plain = path.suffix == ".arrow"
        compression = "uncompressed" if is_plain else "lz4"
        feather.write_feather(table, path, compression=compression, chunksize=4)
    return path


def text(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


def whole(path, how):
    """The rows and names of a file that is read as a whole; the message if that fails."""
    try:
        source = open_source(str(path), table=how)
        blocks = [block.toarray() for block, _ in source.blocks(0, 2**20)]
        rows = np.vstack([np.empty((0, source.table.n_features)), *blocks])
    except ValueError as error:
        return str(error)
    return rows.tolist(), source.table.feature_names


def in_pieces(path, block_bytes, **arguments):
    """The same as `whole`, by `read`."""
    try:
        X, *_, encoder = read(path, block_bytes=block_bytes, **arguments)
        rows = X.compute(scheduler="synchronous")
    except ValueError as error:
        return str(error)
    return rows.toarray().tolist(), encoder.get_feature_names_out().tolist()


# ------------------------------------------------------------------------------------------ formats


@pytest.mark.parametrize("block_bytes", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_every_format_has_the_rows_of_a_table_encoder(tmp_path, name, block_bytes):
    X, y, encoder = read(write(tmp_path / name), target="y", block_bytes=block_bytes)
    wanted = TableEncoder().fit(X_FRAME)
    assert encoder.get_feature_names_out().tolist() == wanted.get_feature_names_out().tolist()
    blocks = [block.compute(scheduler="synchronous") for block in X.to_delayed().ravel()]
    for block, n_rows in zip(blocks, X.chunks[0], strict=True):
        assert type(block) is sparse.csr_array
        assert block.shape == (n_rows, X.shape[1])
        assert block.dtype == X.dtype == np.float64
        assert block.indices.dtype == np.int32
        assert block.has_canonical_format
    found = sparse.vstack(blocks).toarray()
    np.testing.assert_array_equal(found, wanted.transform(X_FRAME).toarray())
    assert y.chunks[0] == X.chunks[0]
    assert y.compute(scheduler="synchronous").tolist() == FRAME["y"].tolist()


@pytest.mark.parametrize("name", NAMES)
def test_files_are_cut_unless_they_cannot_be(tmp_path, name):
    X, _ = read(write(tmp_path / name), drop="y", block_bytes=1)
    is_whole = name in ("t.csv.gz", "stream.arrow")
    assert X.numblocks[0] == (1 if is_whole else 31 if "sv" in name else 8)


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [(["b", "a", "b"], object), ([True, False, True], bool), ([1.5, 0.0, 2.0], np.float64)],
)
@pytest.mark.parametrize("name", NAMES)
def test_labels_stay_what_they_are(tmp_path, name, labels, dtype):
    path = write(tmp_path / name, pd.DataFrame({"x": ["p", "q", "p"], "y": labels}))
    _, y, _ = read(path, target="y", block_bytes=8)
    found = y.compute(scheduler="synchronous")
    assert y.dtype == found.dtype == dtype
    assert found.tolist() == labels


def test_what_is_returned(tmp_path):
    path = write(tmp_path / "t.csv")
    X, encoder = read(path)
    assert X.shape[1] == encoder.transform(FRAME).shape[1]
    _, _, groups, encoder = read(path, target="y", groups=True)
    assert groups == encoder.groups_ == TableEncoder().fit(X_FRAME).groups_
    assert len(read(path, target="y", labels=True)) == 3


# ---------------------------------------------------------------------------------------------- CSV

HEAD = b"a,b,y\n"
QUOTED = {
    "newlines": HEAD + b'1,"p\nq",0\n2,"\n\n",1\n' * 9,
    "rows in a cell": HEAD + b'1,"p\n1,x,0\n2,y,0\n",0\n' * 9,
    "quotes in cells": HEAD + b'1,5" x,0\n2,"p""\nq",1\n' * 9,
    "text after quotes": HEAD + b'1,"p\n"x"y,0\n2,"",1\n' * 9,
    "CRLF": b'a,b,y\r\n1,"p\r\nq",0\r\n' + b'2,"r\rs",0\r\n\r\n' * 9,
    "CR": b'a,b,y\r1,"p\rq",0\r2,r,0\r',
    "a heading of two lines": b'a,"b\nc",y\n' + b"1,p,0\n2,q,1\n" * 9,
    "semicolons": b"a;b;y\n" + b'1;"p;\nq";0\n2;5,";1\n' * 9,
    "blank lines": b"\n\n" + HEAD + b"\n\n1,p,0\n\n" * 9,
    "BOM": b"\xef\xbb\xbf" + b'"a",b,y\n' + b'1,"p\nq",0\n' * 9,
    "no newline at the end": HEAD + b"1,p,0\n" * 9 + b'1,"q\n",0',
    "a quote that is not closed": HEAD + b'1,"x,0\n' + b"1,x,0\n" * 9,
}


@pytest.mark.parametrize("name", QUOTED)
def test_quotes_and_line_ends(tmp_path, name):
    path = text(tmp_path, QUOTED[name])
    wanted = whole(path, TableReading("y"))
    assert ("but 3 are expected" in wanted) == (name == "a quote that is not closed")
    for block_bytes in (*range(1, 40), 100, 10**6):
        assert in_pieces(path, block_bytes, target="y") == wanted


BAD = {
    "a word": HEAD + b"1,x,0\n" * 50 + b"word,x,0\n" + b"1,x,0\n" * 50 + b"words,x,0\n",
    "a word after quoted lines": HEAD + b'1,"x\n",0\n' * 50 + b"word,x,0\n",
    "few cells": HEAD + b"1,x,0\n" * 50 + b"1,x\n" + b"1,x,0\n" * 5,
    "latin-1": HEAD + b"1,x,0\n" * 50 + b"1,\xe9,0\n",
    "latin-1 names": b"a,\xe9\n1,2\n",
    "empty": b"",
    "heading only": HEAD,
    "heading without a line end": HEAD[:-1],
    "number missing": HEAD + b"1,x,0\n" * 50 + b",x,0\n",
    "target missing": HEAD + b"1,x,0\n" * 50 + b"1,x,\n",
    "infinite": HEAD + b"1,x,0\n" * 50 + b"inf,x,0\n",
    "no target": b"a,b\n1,2\n",
    "date": b"a,y\n2020-01-01,0\n",
    "date as target": b"a,y\n1,2020-01-01\n",
    "two names": b"a,a,y\n1,2,0\n",
}


@pytest.mark.parametrize("name", BAD)
def test_messages_are_those_of_the_whole_file(tmp_path, name):
    """That is, rows have the same numbers, and the first fault is named."""
    path = text(tmp_path, BAD[name])
    numeric = ("a",) if "a word" in name else ()
    wanted = whole(path, TableReading("y", numeric=numeric))
    assert wanted.startswith(f"{path}: ")
    for block_bytes in (1, 6, 50, 10**6):
        assert in_pieces(path, block_bytes, target="y", numeric=numeric) == wanted


def test_a_word_far_below_numbers_is_found_by_column_and_row(tmp_path):
    path = text(tmp_path, b"y,b,a\n" + b"0,x,1\n" * 300_000 + b"0,x,word\n")
    message = r"t\.csv: column 'a', row 300002 \(the heading is row 1\): 'word' is not a number"
    for block_bytes in (10**5, 10**9):
        with pytest.raises(FileFault, match=message):
            read(path, target="y", block_bytes=block_bytes)


def test_types_do_not_depend_on_blocks(tmp_path):
    """Blocks of numbers alone, and of missing values alone, are still text."""
    path = text(tmp_path, b"a,b,c\n" + b"x,,1\n" + b"1,,2\n" * 20 + b"3,z,2.5\n")
    for block_bytes in (1, 20, 10**6):
        _, encoder = read(path, block_bytes=block_bytes)
        names = ["a=1", "a=3", "a=x", "b=z", "b=(missing)", "c"]
        assert encoder.get_feature_names_out().tolist() == names


def test_a_damaged_gzip_file(tmp_path):
    path = text(tmp_path, gzip.compress(HEAD + b"1,x,0\n" * 99)[:-20], "t.csv.gz")
    with pytest.raises(FileFault, match=r"t\.csv\.gz"):
        read(path)


# ------------------------------------------------------------------------------- columns, encoders


def test_columns_can_be_chosen(tmp_path):
    path = write(tmp_path / "t.csv")
    for block_bytes in (50, 10**6):
        found = in_pieces(path, block_bytes, target="y", categorical="size", drop=["is_new"])
        how = TableReading("y", categorical=("size",), drop=("is_new",))
        assert found == whole(path, how)
    *_, encoder = read(path, target="y", categorical="size")
    assert encoder.categorical_features == ["color", "size", "is_new"]


def test_the_options_of_an_encoder(tmp_path):
    path = text(tmp_path, b"a,b,c\nx,1,1\nx,,2\ny,2,1\n")
    given = TableEncoder(min_frequency=2, missing="indicator")
    for block_bytes in (1, 10**6):
        X, encoder = read(path, encoder=given, drop="c", block_bytes=block_bytes)
        names = ["a=x", "a=(other)", "b", "b=(missing)"]
        assert encoder.get_feature_names_out().tolist() == names
        rows = X.compute(scheduler="synchronous").toarray()
        assert rows.tolist() == [[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 2, 0]]
        assert encoder.get_params() == given.get_params()
    assert not given.__sklearn_is_fitted__()


@pytest.mark.parametrize("given", [["c"], [0], [True, False]])
def test_the_categories_of_an_encoder(tmp_path, given):
    path = text(tmp_path, b"c,y,d\n1,0,3\n2,1,4\n")
    _, _, encoder = read(path, target="y", encoder=TableEncoder(given))
    assert encoder.get_feature_names_out().tolist() == ["c=1", "c=2", "d"]
    with pytest.raises(ValueError, match="categorical and numeric only apply if an encoder finds"):
        read(path, encoder=TableEncoder(given), numeric="d")


@pytest.mark.parametrize("block_bytes", [1, 10**6])
@pytest.mark.parametrize("name", NAMES)
def test_test_data_are_encoded_as_the_training_data(tmp_path, name, block_bytes):
    *_, encoder = read(write(tmp_path / "train.csv"), target="y")
    frame = pd.DataFrame(
        {
            "more": [1, 2, 3],
            "is_new": [False, True, True],
            "color": ["red", "unknown", None],
            "size": [1.0, 2.0, 3.0],
            "y": ["high", "low", "unheard of"],
        }
    )
    path = write(tmp_path / name, frame)
    X, y, same = read(path, target="y", encoder=encoder, block_bytes=block_bytes)
    assert same is encoder
    found = X.compute(scheduler="synchronous").toarray()
    np.testing.assert_array_equal(found, encoder.transform(frame).toarray())
    assert y.compute(scheduler="synchronous").tolist() == frame["y"].tolist()
    X, _ = read(write(tmp_path / name, frame.drop(columns="y")), encoder=encoder)
    assert X.compute(scheduler="synchronous").shape == found.shape


def test_booleans_of_test_data_are_spelled_in_any_way(tmp_path):
    *_, encoder = read(text(tmp_path, b"a\ntrue\nfalse\n", "train.csv"))
    assert encoder.get_feature_names_out().tolist() == ["a=False", "a=True"]
    X, _ = read(text(tmp_path, b"a\nTRUE\nFALSE\ntrue\n"), encoder=encoder, block_bytes=1)
    found = X.compute(scheduler="synchronous").toarray()
    assert found.tolist() == [[0, 1], [1, 0], [0, 1]]


def test_unknown_levels_that_are_refused(tmp_path):
    """Nothing is read before, so that rows are numbered from a byte."""
    first = text(tmp_path, b"a\nx\ny\n", "train.csv")
    _, encoder = read(first, encoder=TableEncoder(handle_unknown="error"))
    path = text(tmp_path, b"a\nx\ny\nz\n")
    X, _ = read(path, encoder=encoder)
    with pytest.raises(FileFault, match=r"t\.csv: column 'a' has the level 'z' in row 4 \(the"):
        X.compute()
    X, _ = read(path, encoder=encoder, block_bytes=4)
    assert np.isnan(X.shape[0])
    with pytest.raises(FileFault, match="has the level 'z' in row 1 after byte 6"):
        X.compute()
    X, _ = read(write(tmp_path / "t.arrow", pd.DataFrame({"a": [*"xyxyz"]})), encoder=encoder)
    with pytest.raises(FileFault, match="has the level 'z' in row 4, which"):
        X.compute()


def test_a_word_in_test_data(tmp_path):
    _, encoder = read(text(tmp_path, b"a,b\n1,2\n", "train.csv"))
    X, _ = read(text(tmp_path, b"b,a\n1,1\n1,word\n"), encoder=encoder, block_bytes=4)
    with pytest.raises(FileFault, match="column 'a', row 1 after byte 8: 'word' is not a number"):
        X.compute()


def test_an_encoder_of_read_learns_more_and_is_saved(tmp_path):
    *_, encoder = read(write(tmp_path / "t.csv"), target="y", block_bytes=50)
    encoder.save(tmp_path / "encoder.npz")
    again = TableEncoder.load(tmp_path / "encoder.npz")
    np.testing.assert_array_equal(
        again.transform(X_FRAME).toarray(), encoder.transform(X_FRAME).toarray()
    )
    more = X_FRAME.assign(color="green")
    wanted = TableEncoder().fit(pd.concat([X_FRAME, more]))
    assert encoder.partial_fit(more).categories_[0].tolist() == wanted.categories_[0].tolist()


# ------------------------------------------------------------------------------------ several files


@pytest.mark.parametrize("block_bytes", [1, 50, 10**6])
@pytest.mark.parametrize("names", ["a.csv b.csv", "a.parquet b.arrow", "a.csv b.tsv"])
def test_rows_of_several_files(tmp_path, names, block_bytes):
    """Columns may be in another order."""
    first, second = (tmp_path / name for name in names.split())
    write(first, FRAME[:11])
    write(second, FRAME[11:][["y", "size", "is_new", "color"]])
    X, y, encoder = read([first, str(second)], target="y", block_bytes=block_bytes)
    wanted = TableEncoder().fit(X_FRAME)
    assert encoder.get_feature_names_out().tolist() == wanted.get_feature_names_out().tolist()
    found = X.compute(scheduler="synchronous").toarray()
    np.testing.assert_array_equal(found, wanted.transform(X_FRAME).toarray())
    assert y.compute(scheduler="synchronous").tolist() == FRAME["y"].tolist()


def test_the_first_file_that_has_values_decides_on_types(tmp_path):
    paths = [
        text(tmp_path, b"a,b\n", "0.csv"),
        text(tmp_path, b"a,b\n,x\n", "1.csv"),
        text(tmp_path, b"a,b\n1,2\n", "2.csv"),
        write(tmp_path / "3.parquet", pd.DataFrame({"a": [3], "b": [None]})),
    ]
    X, encoder = read(paths, encoder=TableEncoder(missing="indicator"))
    names = ["a", "a=(missing)", "b=2", "b=x", "b=(missing)"]
    assert encoder.get_feature_names_out().tolist() == names
    rows = X.compute(scheduler="synchronous").toarray()
    assert rows.tolist() == [[0, 1, 0, 1, 0], [1, 0, 1, 0, 0], [3, 0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (b"a\n1\n", r"b\.csv: there is no column 'b', which .*a\.csv has"),
        (b"a,b,c\n1,x,1\n", r"b\.csv: there is a column 'c', which .*a\.csv does not .*drop=\"c\""),
        (b"b,a\nx,1\nx,word\n", r"b\.csv: column 'a', row 3 .*'word' is not a number"),
        (b"a,b\n1,x,1\n", r"b\.csv: row 2 .* has 3 cells, but 2 are expected"),
    ],
)
def test_files_with_other_columns_or_types(tmp_path, second, message):
    """The first file decides on types, so that a word is a fault anywhere in the second one."""
    paths = [text(tmp_path, b"a,b\n1,x\n", "a.csv"), text(tmp_path, second, "b.csv")]
    with pytest.raises(FileFault, match=message):
        read(paths)


def test_a_column_of_some_files_can_be_dropped(tmp_path):
    paths = [text(tmp_path, b"a\n1\n", "a.csv"), text(tmp_path, b"a,b\n2,x\n", "b.csv")]
    X, _ = read(paths, drop="b")
    assert X.compute().toarray().tolist() == [[1], [2]]
    with pytest.raises(FileFault, match=r"a\.csv: there is no column 'c'"):
        read(paths, drop=["b", "c"])


@pytest.mark.parametrize("target", [None, "a"])
def test_types_of_parquet_files_must_agree(tmp_path, target):
    frames = pd.DataFrame({"a": [1], "b": ["x"]}), pd.DataFrame({"a": ["p"], "b": ["x"]})
    paths = [write(tmp_path / f"{i}.parquet", frame) for i, frame in enumerate(frames)]
    with pytest.raises(FileFault, match=r"1\.parquet: column 'a' is text, but number in .*0\.parq"):
        read(paths, target=target)
    X, encoder = read(paths, categorical="a")
    assert encoder.get_feature_names_out().tolist() == ["a=1", "a=p", "b=x"]
    assert X.compute().toarray().tolist() == [[1, 0, 1], [0, 1, 1]]


def test_rows_are_numbered_within_their_file(tmp_path):
    paths = [text(tmp_path, HEAD + b"1,x,0\n" * 9, f"{i}.csv") for i in range(2)]
    text(tmp_path, HEAD + b"1,x,0\n" * 9 + b"word,x,0\n", "1.csv")
    with pytest.raises(FileFault, match=r"1\.csv: column 'a', row 11"):
        read(paths, block_bytes=7)


# ------------------------------------------------------------------------------------------- models


def data(n=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "job": rng.choice(["sales", "craft", "farm"], n),
            "shift": rng.choice(["day", "night"], n),
            "hours": rng.normal(size=n).round(2),
        }
    )
    score = 2 * (frame["job"].eq("sales") & frame["shift"].eq("night")) + frame["hours"]
    return frame.assign(y=np.where(score + rng.logistic(size=n) > 0, "high", "low"))


@pytest.mark.parametrize("columns", ["all", "observed"])
def test_a_model_has_names_and_predicts_tables(tmp_path, columns):
    frame = data()
    X, y, encoder = read(write(tmp_path / "t.csv", frame), target="y", block_bytes=2000)
    assert X.numblocks[0] > 3
    how = {"columns": columns, "tol": 1e-8}
    model = PolynomialLogisticRegression(categorical_features=encoder, **how).fit(X, y)
    wanted = PolynomialLogisticRegression(**how).fit(frame.drop(columns="y"), frame["y"])
    assert model.classes_.tolist() == ["high", "low"]
    np.testing.assert_allclose(model.coef_, wanted.coef_, rtol=1e-3, atol=1e-4)
    assert list(model.importance()["name"]) == list(wanted.importance()["name"])
    assert "job=sales shift=night" in set(model.top_terms(5)["name"])
    model.save(tmp_path / "model.npz")
    for each in (model, polysparse.load_model(tmp_path / "model.npz")):
        assert each.feature_names_in_.tolist() == ["job", "shift", "hours"]
        found = each.predict(frame.sample(frac=1, random_state=0).sort_index())
        assert found.tolist() == wanted.predict(frame).tolist()
        assert each.predict(X).compute().tolist() == found.tolist()


def test_numbers_as_targets(tmp_path):
    frame = data().assign(y=np.arange(400.0))
    X, y, encoder = read(write(tmp_path / "t.parquet", frame), target="y", block_bytes=200)
    model = PolynomialRidge(categorical_features=encoder).fit(X, y)
    wanted = PolynomialRidge().fit(frame.drop(columns="y"), frame["y"])
    np.testing.assert_allclose(model.predict(frame), wanted.predict(frame), rtol=1e-2)


@pytest.mark.parametrize("kind", [PolynomialFeatures, ObservedPolynomialFeatures])
def test_transformers_take_the_encoder(tmp_path, kind):
    X, _, encoder = read(write(tmp_path / "t.csv"), target="y", block_bytes=50)
    poly = kind(categorical_features=encoder).fit(X)
    wanted = kind(categorical_features="from_dtype").fit(X_FRAME)
    assert poly.get_feature_names_out().tolist() == wanted.get_feature_names_out().tolist()
    found = poly.transform(X).compute(scheduler="synchronous")
    assert (found != wanted.transform(X_FRAME)).nnz == 0
    assert (poly.transform(X_FRAME) != found).nnz == 0


def test_an_encoder_of_other_rows_is_refused(tmp_path):
    X, y, _ = read(write(tmp_path / "t.csv"), target="y")
    other = TableEncoder().fit(data())
    for estimator in (PolynomialLogisticRegression, PolynomialFeatures):
        with pytest.raises(ValueError, match=r"X has 9 features and is not a table.* became 8"):
            estimator(categorical_features=other).fit(X, y)


# ------------------------------------------------------------------------------- faults, arguments


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_changes_is_refused(tmp_path, name):
    path = write(tmp_path / name)
    X, _, encoder = read(path, target="y")
    again, _ = read(path, encoder=encoder)
    write(path, FRAME[:20])
    for each in (X, again):
        with pytest.raises(FileFault, match="changed after it was opened: open it again"):
            each.compute()


def test_the_same_call_gives_the_same_name(tmp_path):
    path = write(tmp_path / "t.csv")
    before = [each.name for each in read(path, target="y", block_bytes=50)[:2]]
    assert [each.name for each in read(path, target="y", block_bytes=50)[:2]] == before
    other = read(path, target="y", block_bytes=50, encoder=TableEncoder(min_frequency=3))
    assert other[0].name != before[0]
    write(path, FRAME[:30])
    assert read(path, target="y", block_bytes=50)[0].name != before[0]


def test_in_other_processes(tmp_path, client):
    frame = data()
    path = write(tmp_path / "t.csv", frame)
    with client.as_current():
        X, y, encoder = read(path, target="y", block_bytes=2000)
        np.testing.assert_array_equal(
            X.compute().toarray(), TableEncoder().fit_transform(frame.drop(columns="y")).toarray()
        )
        model = PolynomialLogisticRegression(categorical_features=encoder).fit(X, y)
        assert model.predict(X).compute().tolist() == model.predict(frame).tolist()
        with pytest.raises(FileFault, match=r"row 52 \(the heading is row 1\): 'word'"):
            read(text(tmp_path, BAD["a word"]), numeric="a", block_bytes=20)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_features": 3}, ValueError, "n_features only applies to files of sparse rows, but"),
        ({"zero_based": True}, ValueError, "zero_based only applies"),
        ({"labels": True}, ValueError, "labels=True needs target for a table"),
        ({"encoder": "auto"}, TypeError, "encoder must be a TableEncoder; got str"),
        ({"target": "y", "drop": "y"}, ValueError, "'y' is listed in target and in drop"),
        ({"target": "z"}, FileFault, r"t\.csv: there is no column 'z'. Its columns are 'color'"),
        ({"encoder": TableEncoder(min_frequency=0)}, ValueError, "min_frequency must be"),
        ({"encoder": TableEncoder().fit(X_FRAME), "drop": "y"}, ValueError, r"drop=\['y'\] only"),
        ({"block_bytes": 0}, ValueError, "block_bytes must be at least 1"),
    ],
)
def test_wrong_arguments(tmp_path, arguments, error, message):
    path = write(tmp_path / "t.csv")
    with pytest.raises(error, match=message):
        read(path, **arguments)


def test_arguments_for_tables_need_tables(tmp_path):
    path = text(tmp_path, b"1 1:2\n", "in.svmlight")
    for arguments in ({"target": "y"}, {"drop": "a"}, {"encoder": TableEncoder()}):
        with pytest.raises(ValueError, match=r"only applies to tables, but .*in\.svmlight is not"):
            read(path, **arguments)
    with pytest.raises(ValueError, match=r"t\.csv is a table, but .*in\.svmlight is not: read"):
        read([path, write(tmp_path / "t.csv")])
