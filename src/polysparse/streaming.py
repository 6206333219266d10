"""From a file to a file, in bounded memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from polysparse.basis import MonomialBasis
from polysparse.canonical import as_canonical_csr
from polysparse.expansion import iter_expand_in
from polysparse.progress import Progress
from polysparse.sinks import open_sink
from polysparse.sources import Source

# Input is read in blocks of a 32nd of the memory: as arrays they take up to six times the text.
READ_PART, FILL_PART = 32, 2


def stream_expansion(
    source: Source,
    path: Path,
    basis: MonomialBasis,
    *,
    dtype: np.dtype[Any],
    max_memory: int,
    n_jobs: int | None,
    resume: bool,
    progress: Progress,
) -> None:
    """Expand a source into a file or directory; on failure nothing is left of it.

    An interrupted run leaves what it had, aside; so does a failed one that was to be resumed.
    """
    plan = source.plan(basis, dtype)
    sink = open_sink(
        path,
        basis,
        plan.index_dtype,
        dtype,
        has_labels=source.summary.has_labels,
        origin={**source.identity(), "zero_based": source.zero_based},
        resume=resume,
    )
    try:
        progress.start(sink.n_rows)
        for X, labels in source.blocks(sink.n_rows, max(max_memory // READ_PART, 2**16)):
            x = as_canonical_csr(X.astype(dtype, copy=False), n_jobs)
            blocks = iter_expand_in(
                basis, x, n_jobs=n_jobs, max_bytes=max_memory // FILL_PART, reuse=True
            )
            for rows, block in blocks:
                sink.write(block, None if labels is None else labels[rows])
                progress.advance(rows.stop - rows.start, block.nnz, plan.bytes_per_value)
        sink.finish()
    except BaseException:
        if resume:
            sink.leave()
        else:
            sink.discard()
        raise
