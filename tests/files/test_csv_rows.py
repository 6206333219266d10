"""Where rows of CSV begin: text is cut between rows as pyarrow reads them, whatever is quoted."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

from pyarrow import csv  # noqa: E402

from polysparse.files.csv_rows import LineRange, Quoting, row_starts  # noqa: E402
from polysparse.files.opening import open_source  # noqa: E402
from polysparse.files.table_reading import TableReading  # noqa: E402
from source_files import written  # noqa: E402

QUOTING = Quoting(b",")
TOKENS = st.sampled_from([b"a", b" ", b",", b'"', b'""', b"\n", b"\r", b"\r\n", b'"a\n",', b"1"])
TEXTS = st.lists(TOKENS, min_size=1, max_size=30).map(b"".join)


def rows_of(text):
    """The rows that pyarrow finds, with any number of cells; None if there are none."""
    found = []

    def note(row):
        found.append((row.actual_columns, row.text))
        return "skip"

    names = [f"c{i}" for i in range(50)]  # so that every row is noted
    try:
        csv.read_csv(
            pa.BufferReader(text),
            csv.ReadOptions(column_names=names, use_threads=False),
            csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
        )
    except pa.ArrowInvalid:  # without anything but line ends
        return []
    return found


@given(TEXTS, st.integers(1, 20))
@example(b'a"\n"b\nc",\n', 1)
@example(b'"a""\n"b\n"\n', 1)
def test_rows_of_parts_are_those_of_the_text(tmp_path_factory, text, block_bytes):
    path = written(tmp_path_factory.mktemp("csv"), "t.csv", text)
    ranges = [
        LineRange(path, QUOTING, start, min(start + block_bytes, len(text)), start == 0)
        for start in range(0, len(text), block_bytes)
    ]
    starts = row_starts(each.read() for each in ranges)
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    ends = [*starts[1:], len(text)]
    found = [row for a, b in zip(starts, ends, strict=True) for row in rows_of(text[a:b])]
    assert found == rows_of(text)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (b"a,b\n1,2\n", 4),
        (b"\xef\xbb\xbf\r\n\na\n", 8),
        (b'\xef\xbb\xbf"a\n",b\n1', 10),
        (b"a,b\r1,2\r", 4),
        (b"a,b\r\n1,2", 5),
        (b"a,b", 3),
        (b"", 0),
    ],
)
def test_the_end_of_the_heading(text, end):
    assert QUOTING.heading_end(text) == end


def test_a_quote_that_is_never_closed_is_not_read_at_once(tmp_path):
    path = written(tmp_path, "t.csv", b'a,b\n1,2\n1,"2\n' + b"1,2\n" * 100)
    source = open_source(str(path), table=TableReading(), line_bytes=50)
    with pytest.raises(ValueError, match="longer than 50 bytes, or a quote is not closed"):
        source.parts(10, map)
