"""What polysparse writes, it reads: as IN of plan and expand, and for the names of its columns."""

import json

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import bits, names_in
from inside import lower
from polysparse import ObservedPolynomialFeatures
from polysparse.basis.names import as_printable
from polysparse.files.opening import open_source
from sample_files import OUTPUTS, X, Y, refused, run, write_svmlight

DESCRIBED = ["out", "out.npz", "out.parquet"]


@pytest.fixture
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_svmlight(tmp_path / "in.svmlight")
    return tmp_path


# ------------------------------------------------------------------------------------- as input


@pytest.mark.parametrize("max_memory", ["1GiB", "40kB"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_can_be_an_input(output, max_memory, inside, capsys):
    run("expand", "in.svmlight", output)
    run("expand", output, "again", "--degree", "2-2", "--no-bias", "--max-memory", max_memory)
    first = polysparse.expand(X)
    expected = polysparse.expand(first, (2, 2), include_bias=False)
    result, labels = polysparse.load("again", labels=True)
    assert bits(result) == bits(expected)
    np.testing.assert_array_equal(labels, Y)
    capsys.readouterr()
    run("plan", output, "--degree", "2-2", "--no-bias", "--json")
    plan = json.loads(capsys.readouterr().out)
    assert (tuple(plan["shape"]), plan["nnz"]) == (expected.shape, expected.nnz)


class TestStoreAsInput:
    @pytest.fixture
    def store(self, inside, monkeypatch):
        lower(monkeypatch, PART_BYTES=3_000)
        run("expand", "in.svmlight", "store", "--quiet")
        return inside / "store"

    @pytest.mark.parametrize("block_bytes", [1, 500, 2**20])
    @pytest.mark.parametrize("skip_rows", [0, 1, 50, 119, 120])
    def test_blocks_are_its_rows(self, block_bytes, skip_rows, store):
        source = open_source(str(store))
        blocks = list(source.blocks(skip_rows, block_bytes))
        expected = polysparse.expand(X)[skip_rows:]
        found = sparse.vstack([expected[:0], *(block for block, _ in blocks)], format="csr")
        assert (found != expected).nnz == 0
        labels = np.concatenate([[], *(labels for _, labels in blocks)])
        np.testing.assert_array_equal(labels, Y[skip_rows:])
        assert max((b.nnz for b, _ in blocks), default=0) <= max(55, block_bytes // 12)

    def test_blocks_are_no_longer_mapped(self, store):
        """Pages of a mapping stay in memory as long as it does."""
        ((block, labels),) = open_source(str(store)).blocks(0, 2**20)
        for array in (block.indptr, block.indices, block.data, labels):
            assert not isinstance(array, np.memmap)

    def test_n_features_as_for_any_file(self, store, capsys):
        run("plan", "store", "--n-features", 60, "--degree", 1, "--json")
        assert json.loads(capsys.readouterr().out)["shape"] == [120, 61]
        error = refused(capsys, 1, "plan", "store", "--n-features", 54)
        assert "column 54 occurs, but --n-features=54 allows only those below" in error

    def test_without_rows(self, inside, capsys):
        sparse.save_npz("empty.npz", sparse.csr_array((0, 4)))
        run("expand", "empty.npz", "empty")
        run("expand", "empty", "out")
        assert polysparse.load("out").shape == (0, 136)
        assert "note: empty has no rows." in capsys.readouterr().err

    def test_a_folder_of_another_kind_is_refused(self, inside, capsys):
        (inside / "folder").mkdir()
        error = refused(capsys, 1, "expand", "folder", "out")
        assert error == (
            "polysparse: folder is not a directory of polysparse expand: it has no manifest.json.\n"
        )

    @pytest.mark.parametrize(
        ("name", "where", "value", "message"),
        [
            ("indices", 5, 55, "store/indices.npy is damaged in rows 0 to"),
            ("indptr", 7, 10**6, "store/indptr.npy is damaged in rows 0 to"),
            ("data", 7, 3.5, "store/data.npy is damaged in rows 0 to"),
        ],
    )
    def test_damage_is_named(self, name, where, value, message, store, capsys):
        array = np.lib.format.open_memmap(store / f"{name}.npy", mode="r+")
        array[where] = value
        array.flush()
        assert message in refused(capsys, 1, "expand", "store", "out", "--degree", 1)
        assert names_in(store.parent) == ["in.svmlight", "store"]

    def test_it_is_not_written_over(self, store, capsys):
        error = refused(capsys, 2, "expand", "store", "store", "--force")
        assert "is or contains the input" in error

    def test_an_interrupted_run_goes_on(self, store, monkeypatch):
        from inside import fail_at

        with monkeypatch.context() as patch:
            fail_at(patch, "replace", KeyboardInterrupt())
            run("expand", "store", "out", code=130)
        run("expand", "store", "out", "--resume")
        assert polysparse.load("out").shape[0] == 120


# ---------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("output", DESCRIBED)
def test_names_of_every_output_that_says_what_it_is(output, inside, capsys):
    run("expand", "in.svmlight", output, "--quiet")
    run("names", output, "--columns", "0,10", "--json")
    assert json.loads(capsys.readouterr().out) == [
        {"column": 0, "tuple": [], "name": "1", "svmlight": []},
        {"column": 10, "tuple": [0, 0], "name": "x0^2", "svmlight": [1, 1]},
    ]


@pytest.mark.parametrize("output", DESCRIBED)
def test_names_of_observed_columns(output, inside, capsys):
    run("expand", "in.svmlight", output, "--observed", "--min-count", 25, "--quiet")
    run("names", output, "--json")
    rows = json.loads(capsys.readouterr().out)
    expected = ObservedPolynomialFeatures(min_count=25).fit(X).get_feature_names_out()
    assert [row["name"] for row in rows] == expected.tolist()
    run("expand", "in.svmlight", f"hashed-{output}", "--hashed", 9, "--quiet")
    error = refused(capsys, 1, "names", f"hashed-{output}")
    assert "has hashed columns: terms share them" in error


def test_names_of_all_columns_stand_under_a_heading(inside, capsys):
    sparse.save_npz("in.npz", X[:, :2])
    run("expand", "in.npz", "out", "--quiet")
    run("names", "out")
    assert capsys.readouterr().out.splitlines() == [
        "column\ttuple\tname",
        "0\t\t1",
        "1\t0\tx0",
        "2\t1\tx1",
        "3\t0,0\tx0^2",
        "4\t0,1\tx0 x1",
        "5\t1,1\tx1^2",
    ]
    run("names", "--n-features", 2, "--degree", 1, "--no-bias")
    assert capsys.readouterr().out.splitlines() == ["column\ttuple\tname", "0\t0\tx0", "1\t1\tx1"]


def test_indices_of_the_file_stand_beside_where_they_count_from_one(inside, capsys):
    run("expand", "in.svmlight", "out", "--observed", "--quiet")
    for where in (["out"], ["--vocabulary", "out.vocabulary"]):
        run("names", *where)
        heading, *rows = capsys.readouterr().out.splitlines()
        assert heading == "column\ttuple\tname\tsvmlight"
        assert rows[11] == "11\t0,1\tx0 x1\t1,2"
    write_svmlight(inside / "zero.svmlight", zero_based=True)
    run("expand", "zero.svmlight", "zero", "--quiet")
    run("names", "zero", "--columns", 11)
    assert capsys.readouterr().out == "11\t0,1\tx0 x1\n"


def test_many_columns_are_named_a_few_at_a_time(monkeypatch, inside, capsys):
    monkeypatch.setattr("polysparse.cli.names.AT_A_TIME", 7)
    run("names", "--n-features", 9, "--degree", 3)
    rows = capsys.readouterr().out.splitlines()[1:]
    assert [row.split("\t")[2] for row in rows] == polysparse.MonomialBasis(9, 3).names().tolist()
    run("names", "--n-features", 9, "--degree", 3, "--json")
    assert [row["column"] for row in json.loads(capsys.readouterr().out)] == list(range(220))


def test_feature_names_from_a_file(inside, capsys):
    (inside / "features.txt").write_text("alter\nDosis\nGröße\n", encoding="utf-8")
    command = ["names", "--n-features", 3, "--feature-names", "features.txt", "--columns"]
    run(*command, "1,3,6")
    assert capsys.readouterr().out == "1\t0\talter\n3\t2\tGröße\n6\t0,2\talter Größe\n"
    (inside / "features.txt").write_text("alter\nDosis\n")
    error = refused(capsys, 1, *command, "1")
    assert "features.txt has 2 lines, but there are 3 input columns" in error
    (inside / "features.txt").write_bytes(b"\xff\xfe\n")
    assert "features.txt is not UTF-8 text" in refused(capsys, 1, *command, "1")
    assert "nowhere" in refused(capsys, 1, *command[:-2], "nowhere", "--columns", "1")


def test_feature_names_win_over_those_of_the_vocabulary(inside, capsys):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.0, 2.0], "dose": [3.0, 0.0]})
    ObservedPolynomialFeatures(1, include_bias=False).fit(frame).save("saved")
    (inside / "features.txt").write_text("a\nb\n")
    run("names", "--vocabulary", "saved", "--feature-names", "features.txt", "--columns", "0,1")
    assert capsys.readouterr().out == "0\t0\ta\n1\t1\tb\n"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("Größe 1", "Größe 1"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\tb\r", "a\\tb\\r"),
        ("a\u202eb\x9b", "a\\u202eb\\x9b"),
    ],
)
def test_names_are_escaped_for_a_terminal(text, printed):
    assert as_printable(text) == printed


def test_escapes_reach_what_is_printed(inside, capsys):
    (inside / "features.txt").write_bytes(b"\x1b]0;title\x07\n")
    run("names", "--n-features", 1, "--feature-names", "features.txt", "--columns", "1")
    assert capsys.readouterr().out == "1\t0\t\\x1b]0;title\\x07\n"


def test_a_file_that_does_not_say_what_it_is(inside, capsys):
    sparse.save_npz("in.npz", X)
    for name in ("in.npz", "in.svmlight"):
        error = refused(capsys, 1, "names", name, "--columns", 1)
        assert f"{name}: has no description of its columns" in error
    assert "gone.npz: no such file" in refused(capsys, 1, "names", "gone.npz")
    (inside / "out.xls").write_text("a\n")
    error = refused(capsys, 2, "names", "out.xls")
    assert error.count("out.xls") == 1
    assert "unknown ending" in error


# ----------------------------------------------------------------------------------------- rank


def test_rank_looks_into_a_vocabulary(inside, capsys):
    run("expand", "in.svmlight", "out", "--observed", "--min-count", 25, "--quiet")
    run("names", "out", "--json")
    rows = [row for row in json.loads(capsys.readouterr().out) if row["tuple"]]
    tuples = [",".join(map(str, row["tuple"])) for row in rows]
    run("rank", "--vocabulary", "out.vocabulary", *tuples, "--json")
    found = json.loads(capsys.readouterr().out)
    assert [row["column"] for row in found] == [row["column"] for row in rows]


def test_rank_of_a_product_after_all_that_were_kept(tmp_path, capsys):
    first = ObservedPolynomialFeatures(include_bias=False).fit(np.array([[1.0, 0], [2, 0]]))
    first.save(tmp_path / "saved")
    run("rank", "--vocabulary", tmp_path / "saved", "0", "1", "0,0", "1,1")
    assert capsys.readouterr().out == "0\t0\n1\t-\n0,0\t1\n1,1\t-\n"


def test_rank_of_a_product_that_was_not_kept(tmp_path, capsys):
    ObservedPolynomialFeatures(include_bias=False).fit(np.array([[1.0, 0], [0, 1]])).save(
        tmp_path / "saved"
    )
    command = ["rank", "--vocabulary", tmp_path / "saved"]
    run(*command, "1", "0,1", "1,1")
    assert capsys.readouterr().out == "1\t1\n0,1\t-\n1,1\t3\n"
    run(*command, "0,1", "--json")
    assert json.loads(capsys.readouterr().out) == [{"tuple": [0, 1], "column": None}]
    assert "its degree is not in [1, 2]" in refused(capsys, 2, *command, "0,0,0")
    assert "saved has a basis" in refused(capsys, 2, *command, "0", "--degree", 2)
