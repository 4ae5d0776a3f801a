"""Static shapes, in which None is a size that is not known yet."""


def broadcast_axes(first, second):
    """The shape of two of as many axes under each other, where an axis of size one is repeated.

    >>> broadcast_axes((1, None, 3), (None, 5, 1))
    (None, 5, 3)
    """
    return tuple(
        b if a == 1 or (a is None and b != 1 and b is not None) else a for a, b in zip(first, second, strict=True)
    )
