"""Numbers that decide which code path is taken.

Tests lower them so that small data reach every path. Read them as `thresholds.NAME` at the point
of use: a copy made by `from ... import NAME` would not see a test's change.
"""

from __future__ import annotations

import math
import sys

# Columns and stored values beyond this are numbered with int64.
MAX_INT32 = 2**31 - 1

# Outputs in one task of a worker thread; 0 lets the kernels choose.
TASK_OUTPUTS = 0

# One more thread is worth starting for this many outputs. For a product on 2 cores, to start one
# takes 20 to 50 us: two threads win nothing below 280,000 outputs in all, and a third of the time
# with 570,000.
OUTPUTS_PER_THREAD = 2**18

# Bytes per thread of a reused block that still stays in cache. With 2 threads this was measured to
# be 2 to 4 times as fast as going through memory.
CACHE_PER_THREAD = 2**23

# Outputs of dense rows with groups that are computed at a time: they take indices besides.
DENSE_OUTPUTS = 2**18

# Rows for each Python object of a column, at least, for objects to be numbered by their addresses
# before their values are compared. If all objects are different, a 16th of the rows shows that.
ROWS_PER_OBJECT = 16

# A result of up to this share of all memory is granted without checking what is available: the
# check takes a third of a millisecond, which is long for a small result.
ALWAYS_GRANTED = 1 / 64

# Memory that threads need besides a result counts against its limit from this many bytes on. A task
# of a thread takes some megabytes, whatever the result.
WORKING_GRANTED = 2**23

# A result whose size is known only once it is computed is counted first if it may have more bytes:
# Windows commits memory when it is allocated, other systems when it is written to.
MOST_SET_ASIDE = 2**26 if sys.platform == "win32" else math.inf

# Bytes of working memory for counting columns, in addition to the counts themselves.
COUNTING_BYTES = 2**28

# Rows that are expanded at a time for inner products, where those have no closed form.
GRAM_ROWS = 512

# While the columns of a file are counted, memory // TALLY_PART holds the counts.
TALLY_PART = 2

# Bytes after which a part of a store ends.
PART_BYTES = 2**26

# Bytes of an array that are moved into an .npz file at a time: the disk space that it needs
# beyond its own.
MOVED_BYTES = 2**23

# Bytes of Parquet indices that are read at a time to summarize a file.
SCAN_BYTES = 2**22
