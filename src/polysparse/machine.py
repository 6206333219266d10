"""What this process may use of the machine: memory and cores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from numbers import Integral
from pathlib import Path
from typing import Any

# Requests below this are granted without a look: reading the limits costs more than they could.
ALWAYS_GRANTED = 2**24

# Outputs for which one more thread is worth starting.
OUTPUTS_PER_THREAD = 2**15

_PROC, _CGROUP = Path("/proc"), Path("/sys/fs/cgroup")


def format_bytes(n: float) -> str:
    """Bytes for people: '1.5 GB'."""
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if abs(n) < 1000 or unit == "PB":
            break
        n /= 1000
    return f"{n:,.0f} bytes" if unit == "bytes" else f"{n:,.1f} {unit}"


def available_bytes() -> int | None:
    """Memory that this process can still take, or None where that cannot be known."""
    found = [*_system_bytes(), *_cgroup_bytes(), *_rlimit_bytes()]
    return max(0, min(found)) if found else None


def require_memory(n: int, what: str, way_out: str) -> None:
    """Raise MemoryError if n bytes are more than there are."""
    if n <= ALWAYS_GRANTED:
        return
    available = available_bytes()
    if available is not None and n > available:
        raise MemoryError(
            f"{what} would need {format_bytes(n)}; {format_bytes(available)} are available. "
            f"{way_out}"
        )


def _system_bytes() -> Iterator[int]:
    try:
        for line in (_PROC / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024
                return
    except (OSError, ValueError):
        pass
    with suppress(AttributeError, OSError, ValueError):
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _cgroup_bytes() -> Iterator[int]:
    """What each memory control group above this process leaves, page cache counted as free."""
    try:
        lines = (_PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, limit, usage, cache = _CGROUP, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            root, limit = _CGROUP / "memory", "memory.limit_in_bytes"
            usage, cache = "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            try:
                free = int((folder / limit).read_text()) - int((folder / usage).read_text())
                stat = dict(
                    row.split() for row in (folder / "memory.stat").read_text().splitlines()
                )
                yield free + int(stat.get(cache, 0))
            except (OSError, ValueError):  # no such group, or its limit is "max"
                pass
            if folder == root:
                break


def _rlimit_bytes() -> Iterator[int]:
    """What the limit on the address space (ulimit -v) leaves."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int((_PROC / "self" / "statm").read_text().split()[0])
            yield limit - pages * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        pass


def threads_for(n_jobs: Any, n_outputs: int) -> int:
    """Threads worth starting for so many outputs.

    None means every core that this process may use, by affinity and control group, lowered by
    OMP_NUM_THREADS, which joblib sets in its workers. Negative numbers count back from all cores.
    """
    if n_jobs is not None and not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs must be an int or None; got {n_jobs!r}.")
    if n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning: None or -1 is all cores, else count from 1.")
    if n_jobs is not None and n_jobs > 0:
        wanted = int(n_jobs)
    elif n_outputs < 2 * OUTPUTS_PER_THREAD:
        return 1
    else:
        from joblib import cpu_count

        wanted = max(1, cpu_count() + 1 + (n_jobs or -1))
        if n_jobs is None:
            with suppress(KeyError, ValueError):
                wanted = min(wanted, int(os.environ["OMP_NUM_THREADS"].split(",")[0]))
    return max(1, min(wanted, n_outputs // OUTPUTS_PER_THREAD))
