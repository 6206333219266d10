"""The memory and the cores that this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from numbers import Integral
from typing import Any

from polysparse import thresholds

# A control group without a limit reports a number close to 2**63.
_UNLIMITED = 2**62

_PROC, _CGROUP = "/proc", "/sys/fs/cgroup"


def format_bytes(n: float) -> str:
    """Format a number of bytes, for example as '1.5 GB'."""
    if n >= 10**30:
        return f"{format_count(int(n))} bytes"
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if abs(n) < 1000 or unit == "PB":
            break
        n /= 1000
    return f"{n:,.0f} bytes" if unit == "bytes" else f"{n:,.1f} {unit}"


def format_count(n: int) -> str:
    """Format an integer.

    Numbers from 10**30 on are given only by their order of magnitude, because Python refuses to
    print integers of more than 4,300 digits.
    """
    return f"{n:,}" if n < 10**30 else f"about 10^{round(n.bit_length() * math.log10(2))}"


def available_bytes() -> int | None:
    """Return the memory that this process can still take, or None if that is unknown."""
    found = [*_system_bytes("MemAvailable"), *_cgroup_bytes(left=True), *_rlimit_bytes()]
    return max(0, min(found)) if found else None


@lru_cache
def total_bytes() -> int:
    """Return the memory of the machine, or of the control group this process was started in."""
    return min([*_system_bytes("MemTotal"), *_cgroup_bytes(left=False)], default=0)


def available_if_less(n: int) -> int | None:
    """Return the available memory if it is less than n bytes, or None if n bytes are available."""
    if n <= total_bytes() * thresholds.ALWAYS_GRANTED:
        return None
    available = available_bytes()
    return available if available is not None and available < n else None


def require_memory(n: int, what: str, way_out: str) -> None:
    """Raise MemoryError if n bytes are not available."""
    available = available_if_less(n)
    if available is not None:
        raise MemoryError(
            f"{what} would need {format_bytes(n)}; {format_bytes(available)} are available. "
            f"{way_out}"
        )


def require_within(max_memory: int | None, needed: int, what: str, way_out: str = "") -> None:
    """Raise MemoryError if `what`, a subject and its verb, needs more than max_memory bytes."""
    if max_memory is not None and needed > max_memory:
        raise MemoryError(
            f"max_memory={max_memory} ({format_bytes(max_memory)}) is too little: {what} "
            f"max_memory={needed} ({format_bytes(needed)}). {way_out}".rstrip()
        )


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()


def _system_bytes(which: str) -> Iterator[int]:
    """Yield a field of /proc/meminfo, or the physical memory if there is no such field."""
    try:
        for line in _read(f"{_PROC}/meminfo").splitlines():
            if line.startswith(f"{which}:"):
                yield int(line.split()[1]) * 1024
                return
    except (OSError, ValueError):
        pass
    with suppress(AttributeError, OSError, ValueError):
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _cgroup_bytes(left: bool) -> Iterator[int]:
    """Yield the limit of every memory control group above this process, or what is left of it."""
    try:
        lines = _read(f"{_PROC}/self/cgroup").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, files = _CGROUP, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = f"{_CGROUP}/memory"
            files = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        path = path.rstrip("/")
        while path:
            yield from _bytes_of_group(f"{root}{path}", *files, left)
            path = path.rpartition("/")[0]
        yield from _bytes_of_group(root, *files, left)  # in a container, the group is the root


def _bytes_of_group(group: str, limit: str, usage: str, cache: str, left: bool) -> Iterator[int]:
    """Yield the limit of one control group, or what is left of it; nothing if it has no limit."""
    with suppress(OSError, ValueError):  # there is no such group, or its limit is "max"
        most = int(_read(f"{group}/{limit}"))
        if most < _UNLIMITED and left:
            rows = _read(f"{group}/memory.stat").splitlines()
            # The system can drop its file cache, so the cache counts as available.
            cached = int(dict(row.split() for row in rows).get(cache, 0))
            most += cached - int(_read(f"{group}/{usage}"))
        if most < _UNLIMITED:
            yield most


def _rlimit_bytes() -> Iterator[int]:
    """Yield what is left of the limit on the address space (ulimit -v)."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(_read(f"{_PROC}/self/statm").split()[0])
            yield limit - pages * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        pass


def usable_cores() -> int:
    """Return the number of cores by affinity, control group and LOKY_MAX_CPU_COUNT."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return _usable_cores(affinity, os.environ.get("LOKY_MAX_CPU_COUNT"))


@lru_cache
def _usable_cores(affinity: int | None, most: str | None) -> int:
    """Ask joblib, once for each combination of the settings that can change in a process."""
    from joblib import cpu_count

    return int(cpu_count())


def threads_for(n_jobs: Any, n_outputs: int) -> int:
    """Return how many threads are worth starting for a number of outputs.

    `n_jobs=None` means every core that this process may use, by affinity and control group, but at
    most OMP_NUM_THREADS, which joblib sets in its workers. Negative numbers count back from all
    cores: -1 is all of them.
    """
    if n_jobs is not None and not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs must be an int or None; got {n_jobs!r}.")
    wanted = -1 if n_jobs is None else int(n_jobs)
    if wanted == 0:
        raise ValueError("n_jobs=0 has no meaning: None or -1 is all cores, else count from 1.")
    most = n_outputs // thresholds.OUTPUTS_PER_THREAD
    if most <= 1:
        return 1
    if wanted < 0:
        wanted += usable_cores() + 1
        if n_jobs is None:
            with suppress(KeyError, ValueError):
                wanted = min(wanted, int(os.environ["OMP_NUM_THREADS"].split(",")[0]))
    return max(1, min(wanted, most))
