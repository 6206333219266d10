"""Numbers that decide which path is taken. Tests lower them, so that small data take every path.

Read them as `thresholds.NAME` when they are needed. A copy made by `from ... import NAME` would not
see a test's change.
"""

from __future__ import annotations

# Columns and stored values above this are numbered by int64.
MAX_INT32 = 2**31 - 1

# Outputs in one task of a thread. 0 lets the kernels choose.
TASK_OUTPUTS = 0

# Outputs that are worth starting one more thread.
OUTPUTS_PER_THREAD = 2**18

# Reused blocks of this size stay in cache. With 2 threads that was measured to be 2 to 4 times as
# fast as going through memory.
CACHE_PER_THREAD = 2**23

# This share of all memory is granted without looking at what is left: a look takes a third of a
# millisecond, which is long for a small result.
ALWAYS_GRANTED = 1 / 64

# Memory to count columns in, beside the counts themselves.
COUNTING_BYTES = 2**28

# While the columns of a file are counted, this fraction of the memory holds the counts.
TALLY_PART = 2

# A part of a store ends when it has this many bytes.
PART_BYTES = 2**26

# Bytes of Parquet indices that are read together for a summary.
SCAN_BYTES = 2**22
