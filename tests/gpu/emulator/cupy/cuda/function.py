"""Arguments of kernels."""


class CPointer:
    """Where an argument that is passed by value stands."""

    def __init__(self, address=0):
        self.address = address
