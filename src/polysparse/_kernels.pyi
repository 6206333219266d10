"""Native kernels of polysparse; see src/kernels. Not a public interface."""

from collections.abc import Callable, Sequence
import enum
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


class Crew:
    """Threads that wait from one call to the next."""

    def __init__(self) -> None: ...

    def call(self, function: Callable[..., object], *arguments: object) -> object: ...

    def end(self) -> None: ...

class Basis:
    """The monomials of an expansion, as the kernels see them."""

    def __init__(self, n_features: int, lowest: int, highest: int, interaction_only: bool, include_bias: bool, degree_end: Sequence[int]) -> None: ...

    def rank(self, tuples: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def unrank(self, columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

class CsrFault(enum.Enum):
    """What makes a CSR matrix unusable."""

    none = 0

    first_offset = 1

    falling_offset = 2

    last_offset = 3

    column_range = 4

def inspect(row_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int, n_threads: int) -> tuple[CsrFault, int, bool, int, bool]: ...

def count_row_lengths(row_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)]) -> list[tuple[int, int]]: ...

def fill_row_offsets(basis: Basis, row_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], out_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None: ...

def fill(basis: Basis, row_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int, out_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')], out_columns: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')], out_values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')], n_threads: int, task: int) -> None: ...

def fill_dense(basis: Basis, x: Annotated[NDArray, dict(shape=(None, None), device='cpu', writable=False)], out: Annotated[NDArray, dict(shape=(None, None), device='cpu')], n_threads: int) -> None: ...

class Lookup:
    """Where chosen columns of a basis stand among each other."""

    def __init__(self, basis: Basis, columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

def fill_chosen(basis: Basis, lookup: Lookup, row_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], out_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')], out_columns: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')], out_values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')], n_threads: int, task: int) -> int: ...

def choosing_bytes(basis: Basis, n_columns: int, row_lengths: Sequence[tuple[int, int]], value_size: int, n_threads: int, task: int) -> int: ...

class Hasher:
    """Where monomials go, and with which sign."""

    def __init__(self, n_columns: int, alternate_sign: bool, seed: int) -> None: ...

    def hash(self, tuples: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], buckets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], signs: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

def fill_hashed(basis: Basis, hasher: Hasher, row_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], out_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')], out_columns: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')], out_values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')], n_threads: int, task: int) -> int: ...

def hashing_bytes(basis: Basis, hasher: Hasher, row_lengths: Sequence[tuple[int, int]], value_size: int, n_threads: int, task: int) -> int: ...

class Expansion:
    """An expansion to multiply with."""

    @overload
    def __init__(self, basis: Basis, by: Basis, row_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @overload
    def __init__(self, basis: Basis, by: Lookup, row_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @overload
    def __init__(self, basis: Basis, by: Hasher, row_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def apply(self, vectors: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray, dict(order='C', device='cpu')], n_outputs: int, n_threads: int, task: int) -> None: ...

    def apply_transposed(self, vectors: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray, dict(order='C', device='cpu')], n_outputs: int, n_threads: int, task: int) -> None: ...

def dot(a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> float: ...

def weighted_squares(weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], shift: float, n_threads: int) -> float: ...

def combine(a: float, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], b: float, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], shift: float, n_threads: int) -> None: ...

def multiply(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], shift: float, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None: ...

def divide(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> float: ...

def sum_log_losses(scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], intercepts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], classes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], change: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, shifts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], size: float, old_curvatures: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], range: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None: ...

def fill_log_losses(scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], intercepts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], classes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], residuals: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], curvatures: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], likely: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')] | None, n_threads: int) -> None: ...

def fill_probabilities(scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], n_threads: int) -> None: ...

def fill_curved(likely: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], change: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], shifts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], n_threads: int) -> None: ...

def sum_curved(likely: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], change: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], shifts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None: ...

class Tally:
    """In how many rows each column of an expansion occurs."""

    def __init__(self) -> None: ...

    @property
    def n_entries(self) -> int: ...

    def observe(self, basis: Basis, row_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], least: int, most: int, n_threads: int, task: int) -> bool: ...

    def add(self, columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def add_all_of(self, other: Tally) -> None: ...

    def take_all_of(self, other: Tally) -> None: ...

    def settle(self) -> None: ...

    def choose(self, min_count: int, max_columns: int, n_threads: int) -> tuple[int, int, int]: ...

    def write(self, least: int, n_ties: int, columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None: ...

def observing_bytes(basis: Basis, index_size: int, n_threads: int) -> tuple[int, int]: ...

def fill_gram(basis: Basis, x_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], x_columns: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], x_values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], z_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], z_columns: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], z_values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int, is_symmetric: bool, out: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None: ...

def fill_row_norms(basis: Basis, row_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None: ...

class SvmlightFault(enum.Enum):
    """Which word of a line cannot be right."""

    none = 0

    label = 1

    label_missing = 2

    label_unexpected = 3

    qid = 4

    qid_missing = 5

    qid_unexpected = 6

    index = 7

    value = 8

class SvmlightText:
    """Lines that were counted; the text is not copied."""

    def __init__(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: bool, qid: bool, n_threads: int) -> None: ...

    @property
    def n_lines(self) -> int: ...

    @property
    def n_rows(self) -> int: ...

    @property
    def n_stored(self) -> int: ...

    def fill(self, row_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], qid: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[SvmlightFault, int, int, int]: ...

SVMLIGHT_BYTES_PER_VALUE: int = 46

SVMLIGHT_BYTES_PER_ROW: int = 25

def write_svmlight(row_offsets: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], first_column: int, out: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> int: ...

def svmlight_layout(text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[bool, bool] | None: ...

def svmlight_skip(text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], n_rows: int) -> tuple[int, int, int]: ...
