"""The formats of tables: CSV and Arrow. Parquet is either a table or sparse rows, by its schema."""

from __future__ import annotations

from polysparse.files.arrow_sources import ArrowSource
from polysparse.files.csv_source import CsvSource
from polysparse.files.format import Format


class CsvFormat(Format):
    """Text with a row for each line, whose first row has the names of columns."""

    noun = "CSV"
    source = CsvSource
    endings = ".csv", ".tsv"
    may_be_gzipped = True


class ArrowFormat(Format):
    """Arrow's own format, also known as Feather."""

    noun = "Arrow"
    source = ArrowSource
    endings = ".arrow", ".feather"
