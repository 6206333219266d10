"""Reading files: pipes, damaged files, and what is said about a file."""

import gzip
import io
import os
import random
import signal
import subprocess
import sys
import threading
import zipfile
from contextlib import closing

import numpy as np
import pytest
from scipy import sparse

from polysparse.files.errors import FileFault, UnknownExtension, faults_of
from polysparse.files.npy import npy_header
from polysparse.files.opening import open_source
from polysparse.files.source import OPEN_FILES
from source_files import DENSE, TEXT, contents, parquet, read, written


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "name", ["in.svm", "in.svm.gz", "in.npz", "in.mtx", "in.mtx.gz", "in.parquet"]
)
def test_a_pipe_is_read_as_a_file_is(name, tmp_path):
    if name == "in.parquet":
        pytest.importorskip("pyarrow")
    content = contents()[name]
    os.mkfifo(tmp_path / name)
    writer = threading.Thread(target=(tmp_path / name).write_bytes, args=(content,))
    writer.start()
    dense, _ = read(tmp_path / name)
    writer.join()
    np.testing.assert_array_equal(dense, DENSE)


@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="needs /dev/stdin")
@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_may_be_a_pipe(name):
    command = [sys.executable, "-m", "polysparse", "plan", name, "--json"]
    done = subprocess.run(command, input=TEXT, capture_output=True, check=True)
    assert b'"shape": [2, 10]' in done.stdout


def test_a_fault_in_a_stream_is_called_by_the_name_that_was_given(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"1 1:1\n1 x:1\n")))
    with pytest.raises(FileFault, match=r"^standard input: line 2: index x"):
        read("-")
    packed = gzip.compress(TEXT)[:-4]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(packed)))
    with pytest.raises(FileFault, match=r"^standard input: ends in the middle"):
        read("-")


def test_a_copy_that_has_a_name_is_not_open_while_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("polysparse.files.source.OPEN_FILES", tmp_path / "no")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    source = open_source("-")
    (folder,) = tmp_path.iterdir()
    (copy,) = folder.iterdir()
    assert copy.read_bytes() == TEXT
    if OPEN_FILES.is_dir():
        assert not any(copy == path.resolve() for path in OPEN_FILES.iterdir())
    assert source.summary.n_rows == 2
    source.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("has_name", [False, True])
def test_a_stream_that_fails_leaves_no_copy_and_nowhere_to_read(has_name, tmp_path, monkeypatch):
    class Broken(io.BytesIO):
        def read(self, *_):
            raise OSError("broken")

    if has_name:
        monkeypatch.setattr("polysparse.files.source.OPEN_FILES", tmp_path / "no")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "in.svm").touch()
    source = open_source(str(tmp_path / "in.svm"))
    with pytest.raises(OSError, match="broken"):
        source.spool(Broken())
    assert source.place == tmp_path / "in.svm"
    assert source.can_be_read_again
    assert list(tmp_path.iterdir()) == [tmp_path / "in.svm"]


def test_standard_input_may_be_closed(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(FileFault, match="standard input is closed"):
        open_source("-")


@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the copy has a name")
def test_a_terminated_process_leaves_no_copy(tmp_path):
    program = (
        "import signal; from polysparse.files.opening import open_source; "
        "print(open_source('-').summary.n_rows, flush=True); signal.pause()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    process.stdin.write(TEXT)
    process.stdin.close()
    assert process.stdout.readline() == b"2\n"
    assert list(tmp_path.iterdir()) == []
    process.send_signal(signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM
    process.stdout.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["in.npz", "in.mtx.gz", "in.svm.gz", "in.parquet"])
def test_flipped_bits_are_a_fault_of_the_file_or_a_matrix(name, tmp_path):
    if name == "in.parquet":
        pytest.importorskip("pyarrow")
    content = contents()[name]
    chance, faults = random.Random(0), []
    for _ in range(100):
        damaged = bytearray(content)
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        path = written(tmp_path, name, damaged)
        try:
            with closing(open_source(str(path), n_jobs=1)) as source:
                if source.summary.n_rows < 1000:
                    for X, _ in source.blocks(0, 2**16):
                        assert X.shape[1] == source.summary.n_features
                        assert X.indptr[-1] == len(X.indices) == len(X.data)
        except (FileFault, OSError, MemoryError) as error:
            faults.append(error)
    assert len(faults) > 20
    assert all(str(path) in str(error) for error in faults if isinstance(error, FileFault))


def renamed(save, *arguments):
    buffer = io.BytesIO()
    save(buffer, *arguments)
    return buffer.getvalue()


def encrypted():
    """An archive that says of its members that they are encrypted."""
    archive = bytearray(contents()["in.npz"])
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := archive.find(mark, at + 1)) >= 0:
            archive[at + flags] |= 1
    return bytes(archive)


def npz_with(**declared):
    """An archive of a sparse matrix, of which some arrays are nothing but a header."""
    with zipfile.ZipFile(io.BytesIO(contents()["in.npz"])) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for name, (dtype, shape) in declared.items():
        members[f"{name}.npy"] = npy_header(np.dtype(dtype), shape)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


DAMAGED = {
    "numbers.npz": (lambda: npz_with(data=("<f8", (10**12,))), "data has 128 bytes, but is float"),
    "texts.npz": (lambda: npz_with(format=("<U262144", (10**9,))), "format has 128 bytes, but is"),
    "array.npz": (lambda: renamed(np.save, np.ones(3)), "not in the format of its ending"),
    "dok.npz": (lambda: renamed(lambda f: np.savez(f, format=b"dok")), "format dok"),
    "encrypted.npz": (encrypted, "encrypted"),
    "text.npz": (lambda: TEXT, "text.npz: "),
    "three.npz": (
        lambda: renamed(lambda f: np.savez(f, format=b"coo", shape=[1, 1, 1])),
        "three.npz: ",
    ),
    "text.mtx.gz": (lambda: TEXT, "[Nn]ot a gzipped file"),
    "text.parquet": (lambda: TEXT, "text.parquet: "),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_that_is_something_else_is_a_fault_in_one_sentence(name, tmp_path):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    content, message = DAMAGED[name]
    with pytest.raises(FileFault, match=message) as raised:
        read(written(tmp_path, name, content()))
    assert str(raised.value).startswith(str(tmp_path / name))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["in.svm", "in.parquet"])
def test_the_largest_column_is_below_the_largest_number_of_columns(name, tmp_path):
    def content(index):
        if name == "in.svm":
            return f"1 {index}:1\n".encode()
        pa = pytest.importorskip("pyarrow")
        return parquet(indices=pa.array([[index]]), values=pa.array([[1.0]]))

    written(tmp_path, name, content(2**63 - 1))
    source = open_source(str(tmp_path / name), zero_based=True)
    with pytest.raises(
        FileFault, match=rf"{name} would have {2**63} features; at most 2\*\*63 - 1"
    ):
        _ = source.summary
    source.close()
    written(tmp_path, name, content(2**63 - 2))
    source = open_source(str(tmp_path / name), zero_based=True)
    assert source.summary.n_features == 2**63 - 1
    source.close()


@pytest.mark.parametrize(("before", "base"), [(None, 1), (False, 1), (True, 0)])
def test_a_file_without_indices_has_the_base_of_the_training_data(before, base, tmp_path):
    path = written(tmp_path, "in.svm", b"1\n0\n")
    source = open_source(str(path), was_zero_based=before)
    assert (source.base, source.reason_for_base, source.notes) == (base, "", [])


def test_an_npz_of_one_dimension_is_refused(tmp_path):
    flat = sparse.coo_array([1.0, 0.0, 2.0])
    if flat.ndim == 2:
        pytest.skip("this SciPy has two dimensions only")
    sparse.save_npz(tmp_path / "in.npz", flat)
    with pytest.raises(FileFault, match="holds an array of 1 dimensions; two are needed"):
        read(tmp_path / "in.npz")


def test_rows_that_an_archive_only_states_count_as_memory(tmp_path, monkeypatch):
    """COO has no offsets of rows: a few bytes may state any number of them."""
    sparse.save_npz(tmp_path / "in.npz", sparse.coo_array((10**7, 2)))
    with pytest.raises(MemoryError, match=r"which needs max_memory=2400\d{5} \(240\.\d MB\)"):
        read(tmp_path / "in.npz", max_memory=10**8)


def test_labels_that_are_not_there_are_not_read(tmp_path):
    dense, labels = read(written(tmp_path, "in.npz", npz_with(labels=("<f8", (10**12,)))))
    np.testing.assert_array_equal(dense, DENSE)
    assert labels is None


@pytest.mark.parametrize("end", [b"", b" "])
def test_a_last_line_that_does_not_end_is_read(end, tmp_path):
    path = written(tmp_path, "in.mtx", contents()["in.mtx"].rstrip() + end)
    np.testing.assert_array_equal(read(path)[0], DENSE)


@pytest.mark.no_sanitizer
def test_a_damaged_last_line_does_not_crash_the_reader(tmp_path):
    path = written(tmp_path, "in.mtx", contents()["in.mtx"].rstrip() + b"x")
    command = [sys.executable, "-m", "polysparse", "plan", path]
    assert subprocess.run(command, capture_output=True, check=False).returncode in (0, 1)


def test_errors_of_the_system_and_of_memory_stay_what_they_are(tmp_path):
    for error in (PermissionError(13, "no"), MemoryError(), KeyboardInterrupt()):
        with pytest.raises(type(error)), faults_of(tmp_path):
            raise error
    with pytest.raises(FileFault, match=r"ZeroDivisionError: by zero"), faults_of(tmp_path):
        raise ZeroDivisionError("by zero")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([3, -1]), [3, -1]),
        (np.array([3.5, np.nan], np.float32), [3.5, np.nan]),
        (np.array([1.0]), None),
        (np.array(["a", "b"]), None),
        (np.array([{}, {}]), None),
    ],
    ids=["integers", "floats", "too few", "strings", "objects"],
)
def test_labels_beside_the_arrays_of_an_npz(labels, expected, tmp_path):
    path = written(tmp_path, "in.npz", contents()["in.npz"])
    with zipfile.ZipFile(path, "a") as archive, archive.open("labels.npy", "w") as member:
        np.lib.format.write_array(member, labels)
    assert open_source(str(path)).summary.has_labels == (expected is not None)
    dense, found = read(path)
    np.testing.assert_array_equal(dense, DENSE)
    if expected is None:
        assert found is None
    else:
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(read(path, skip_rows=1)[1], expected[1:])


def test_a_whole_matrix_is_not_copied_to_be_handed_on(tmp_path):
    source = open_source(str(written(tmp_path, "in.npz", contents()["in.npz"])))
    ((first, _),), ((second, _),) = source.blocks(0, 1), source.blocks(0, 1)
    assert first.data is second.data


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        (TEXT, []),
        (b"1 qid:3 1:1\n", ["in.svm: qid is not kept."]),
        (b"", ["in.svm has no rows."]),
        (b"# qid:1\n\n", ["in.svm has no rows."]),
    ],
)
def test_notes(text, notes, tmp_path):
    source = open_source(str(written(tmp_path, "in.svm", text)), zero_based=False)
    assert source.notes == [f"{tmp_path}/{note}" for note in notes]


def test_whether_the_plan_is_an_upper_bound(tmp_path):
    names = {"in.svm": True, "in.parquet": True, "in.npz": False, "in.mtx": False}
    for name, content in contents().items():
        if name in names:
            source = open_source(str(written(tmp_path, name, content)))
            assert source.is_upper_bound == names[name]


def test_n_features_may_leave_out_columns_that_do_not_occur(tmp_path):
    sparse.save_npz(tmp_path / "in.npz", sparse.csr_array([[2.0, 0, 4, 0], [0, 0.5, 0, 0]]))
    np.testing.assert_array_equal(read(tmp_path / "in.npz", n_features=3)[0], DENSE)
    assert read(tmp_path / "in.npz", n_features=9)[0].shape == (2, 9)
    with pytest.raises(FileFault, match="column 2 occurs, but n_features=2"):
        read(tmp_path / "in.npz", n_features=2)


@pytest.mark.parametrize("name", ["in.npz.gz", "in.parquet.gz", "in.xls"])
def test_unknown_endings(name):
    with pytest.raises(UnknownExtension, match=f"{name}: unknown ending"):
        open_source(name)


@pytest.mark.parametrize("name", ["a9a", "a9a.t", "in.txt", "in.libsvm", "in.svm", "in.svmlight"])
def test_names_of_svmlight_text(name, tmp_path):
    assert read(written(tmp_path, name, contents()["in.svm"]))[0].tolist() == DENSE
