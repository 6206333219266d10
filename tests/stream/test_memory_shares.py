"""How a limit of memory is divided: each share to the byte."""

import numpy as np
import pytest

from polysparse import MonomialBasis
from polysparse.columns.spaces import AllColumns, ChosenColumns, HashedColumns
from polysparse.expansion.planning import ExpansionPlan
from polysparse.matrix.row_profile import RowProfile
from polysparse.stream.means import Means
from polysparse.stream.memory import (
    LEAST_READ,
    bytes_to_read,
    memory_for_columns,
    memory_for_rows,
    require_room_for_rows,
)

BASIS = MonomialBasis(1000, 2)
LONGEST = 20  # stored values; 1 + 20 + 210 outputs
OUTPUTS = 231
BLOCK = 2 * (OUTPUTS * (4 + 8) + 2 * 4)  # twice the row as arrays: int32, float64, two offsets
SCRATCH = 50 * OUTPUTS


def plan_for(columns):
    return ExpansionPlan(columns, RowProfile(((3, 7), (LONGEST, 1))), np.dtype(np.float64))


def hashed(n_columns):
    return plan_for(HashedColumns(BASIS, n_columns, True, 0))


def test_a_row_of_all_columns_takes_a_block():
    assert memory_for_rows(plan_for(AllColumns(BASIS)), 1) == BLOCK


def test_a_row_of_chosen_columns_is_also_worked_out_whole():
    chosen = plan_for(ChosenColumns(BASIS, np.arange(5)))
    assert memory_for_rows(chosen, 1) == BLOCK + SCRATCH
    assert memory_for_columns(chosen) == 5 * 36


@pytest.mark.parametrize(
    ("n_columns", "is_table_needed"),
    [(8, True), (8 * OUTPUTS - 1, True), (8 * OUTPUTS, False), (8 * OUTPUTS + 1, False)],
)
def test_hashed_columns_that_are_few_beside_a_row_have_a_table(n_columns, is_table_needed):
    expected = BLOCK + SCRATCH + 9 * n_columns * is_table_needed
    assert memory_for_rows(hashed(n_columns), 1) == expected
    assert memory_for_columns(hashed(n_columns)) == 0


def test_chosen_columns_have_no_such_table():
    few = plan_for(ChosenColumns(BASIS, np.arange(1)))
    assert memory_for_rows(few, 1) == BLOCK + SCRATCH


def test_each_thread_has_its_own_scratch(monkeypatch):
    monkeypatch.setattr("polysparse.thresholds.OUTPUTS_PER_THREAD", 1)
    assert memory_for_rows(hashed(2**20), 3) == BLOCK + 3 * SCRATCH
    assert memory_for_rows(plan_for(AllColumns(BASIS)), 3) == BLOCK


def test_the_limit_is_enough_to_the_byte():
    chosen = plan_for(ChosenColumns(BASIS, np.arange(5)))
    needed = BLOCK + SCRATCH + 5 * 36
    require_room_for_rows(chosen, Means(needed, 1), 0)
    with pytest.raises(
        MemoryError, match=rf"5 columns and the longest row need max_memory={needed}"
    ):
        require_room_for_rows(chosen, Means(needed - 1, 1), 0)


def test_an_input_that_is_read_whole_has_its_share():
    everything = plan_for(AllColumns(BASIS))
    require_room_for_rows(everything, Means(BLOCK + 1000, 1), 1000)
    message = f"the input, which is read whole, and the longest row need max_memory={BLOCK + 1000}"
    with pytest.raises(MemoryError, match=message):
        require_room_for_rows(everything, Means(BLOCK + 999, 1), 1000)


@pytest.mark.parametrize(
    ("max_memory", "n_bytes"), [(1, LEAST_READ), (2**21, 2**16), (2**30, 2**25)]
)
def test_a_thirty_second_is_read_at_a_time(max_memory, n_bytes):
    assert bytes_to_read(max_memory) == n_bytes
