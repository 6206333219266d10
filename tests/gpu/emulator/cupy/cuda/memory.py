"""What CuPy raises when memory does not suffice."""


class OutOfMemoryError(MemoryError):
    """Never raised here."""
