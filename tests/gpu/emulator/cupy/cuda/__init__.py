"""One device, one stream that is always done, and memory that begins poisoned."""

from types import MappingProxyType

import numpy as np

from cupy.cuda import function as function
from cupy.cuda import memory as memory

MOST_SHARED_BYTES = 227 * 1024  # of a block, on a device of compute capability 9.0


class MemoryPointer:
    """Bytes, as they come."""

    def __init__(self, n):
        self.bytes = np.full(n, 0xA5, dtype=np.uint8)
        self.ptr = self.bytes.ctypes.data

    def memset_async(self, value, n):
        self.bytes[:n] = value


class PinnedMemory(np.ndarray):
    """Bytes that a kernel may write to."""

    @property
    def ptr(self):
        return self.ctypes.data


def alloc(n):
    return MemoryPointer(n)


def alloc_pinned_memory(n):
    return np.full(n, 0xA5, dtype=np.uint8).view(PinnedMemory)


class Device:
    """The only one."""

    attributes = MappingProxyType({"MaxSharedMemoryPerBlockOptin": MOST_SHARED_BYTES})

    def __init__(self, number=0):
        self.id = number

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


class Stream:
    """A kernel has ended when its launch returns."""

    def __init__(self, **options):
        pass

    def synchronize(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


def get_current_stream():
    return Stream()


class runtime:
    """The few functions that are asked."""

    class CUDARuntimeError(Exception):
        """Never raised here."""

    @staticmethod
    def getDevice():
        return 0

    @staticmethod
    def getDeviceCount():
        return 1

    @staticmethod
    def memGetInfo():
        return 10**10, 10**10
