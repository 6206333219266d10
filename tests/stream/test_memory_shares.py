"""How a limit of memory is divided: each share to the byte."""

import numpy as np
import pytest

from inside import lower
from polysparse import MonomialBasis
from polysparse.columns.spaces import AllColumns, ChosenColumns, HashedColumns
from polysparse.expansion.planning import ExpansionPlan
from polysparse.matrix.row_profile import RowProfile
from polysparse.stream.memory import (
    LEAST_READ,
    bytes_to_read,
    memory_for_columns,
    memory_for_rows,
    require_room_for_rows,
)
from polysparse.stream.resources import Resources

BASIS = MonomialBasis(1000, 2)
LONGEST = 20  # stored values; 1 + 20 + 210 outputs
OUTPUTS = 231
BLOCK = 2 * (OUTPUTS * (4 + 8) + 2 * 4)  # twice the row as arrays: int32, float64, two offsets


def plan_for(columns):
    return ExpansionPlan(columns, RowProfile(((3, 7), (LONGEST, 1))), np.dtype(np.float64))


def scratch_for(columns, *lengths):
    plan = ExpansionPlan(columns, RowProfile(lengths), np.dtype(np.float64))
    return 2 * plan._filling_bytes(1)


def test_a_row_of_all_columns_takes_a_block():
    assert memory_for_rows(plan_for(AllColumns(BASIS))) == BLOCK


@pytest.mark.parametrize(
    "columns", [ChosenColumns(BASIS, np.arange(500)), HashedColumns(BASIS, 2**20, True, 0)]
)
def test_chosen_and_hashed_columns_also_take_the_memory_of_a_thread(columns, monkeypatch):
    alone, all_rows = scratch_for(columns, (LONGEST, 1)), scratch_for(columns, (3, 7), (LONGEST, 1))
    assert 0 < alone < all_rows
    assert memory_for_rows(plan_for(columns)) == BLOCK + alone
    lower(monkeypatch, WORKING_GRANTED=0)  # then blocks leave room for it
    assert memory_for_rows(plan_for(columns)) == BLOCK + all_rows


@pytest.mark.parametrize(
    "columns", [ChosenColumns(BASIS, np.array([3, 5])), HashedColumns(BASIS, 2, True, 0)]
)
def test_no_row_takes_more_than_all_columns(columns):
    block = 2 * (2 * (4 + 8) + 2 * 4)
    assert memory_for_rows(plan_for(columns)) == block + scratch_for(columns, (LONGEST, 1))


def test_chosen_columns_themselves_take_memory():
    assert memory_for_columns(plan_for(ChosenColumns(BASIS, np.arange(5)))) == 5 * 36
    assert memory_for_columns(plan_for(HashedColumns(BASIS, 8, True, 0))) == 0


def test_the_limit_is_enough_to_the_byte():
    chosen = plan_for(ChosenColumns(BASIS, np.arange(500)))
    needed = BLOCK + scratch_for(chosen.columns, (LONGEST, 1)) + 500 * 36
    require_room_for_rows(chosen, Resources(needed, 1), 0)
    with pytest.raises(
        MemoryError, match=rf"500 columns and the longest row need max_memory={needed}"
    ):
        require_room_for_rows(chosen, Resources(needed - 1, 1), 0)


def test_an_input_that_is_read_whole_has_its_share():
    everything = plan_for(AllColumns(BASIS))
    require_room_for_rows(everything, Resources(BLOCK + 1000, 1), 1000)
    message = f"the input, which is read whole, and the longest row need max_memory={BLOCK + 1000}"
    with pytest.raises(MemoryError, match=message):
        require_room_for_rows(everything, Resources(BLOCK + 999, 1), 1000)


@pytest.mark.parametrize(
    ("max_memory", "n_bytes"), [(1, LEAST_READ), (2**21, 2**16), (2**30, 2**25)]
)
def test_a_thirty_second_is_read_at_a_time(max_memory, n_bytes):
    assert bytes_to_read(max_memory) == n_bytes
