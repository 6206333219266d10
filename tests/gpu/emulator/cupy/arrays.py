"""Arrays of NumPy that have what is used of CuPy's."""

from types import SimpleNamespace

import numpy as np

from cupy.cuda import Device


class ndarray(np.ndarray):
    """An array "on the device". As with CuPy, no result is a scalar."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data if self.size else 0)

    @property
    def device(self):
        return Device()

    @property
    def __cuda_array_interface__(self):
        return self.__array_interface__

    def get(self):
        return np.array(self)

    def __array_wrap__(self, out, context=None, return_scalar=False):
        return on_device(out)

    def __getitem__(self, key):
        return on_device(super().__getitem__(key))


def on_device(out):
    """Return results of NumPy as arrays on the device."""
    if isinstance(out, tuple):
        return tuple(on_device(each) for each in out)
    return np.asarray(out).view(ndarray)


def here(argument):
    """Return an argument for a function of NumPy."""
    if isinstance(argument, list | tuple):
        return type(argument)(here(each) for each in argument)
    return argument.view(np.ndarray) if isinstance(argument, ndarray) else argument


def asarray(a, dtype=None):
    """Return an array on the device. What is not there is copied."""
    made = np.asarray if isinstance(a, ndarray) else np.array
    return on_device(made(here(a), dtype))


def ascontiguousarray(a, dtype=None):
    return on_device(np.ascontiguousarray(here(a), dtype))


def argsort(a):
    return on_device(np.argsort(here(a), kind="stable"))


def of_numpy(name):
    """Return a function, or anything else, of NumPy by its name."""
    theirs = getattr(np, name)
    if isinstance(theirs, type) or not callable(theirs):
        return theirs

    def function(*arguments, **options):
        options = {key: here(value) for key, value in options.items()}
        return on_device(theirs(*here(arguments), **options))

    return function
