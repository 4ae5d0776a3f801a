"""Static shapes, in which None is a size that is not known yet."""


def broadcast_axes(first, second):
    """The shape of two of as many axes under each other, where an axis of size one is repeated.

    Raises:
        ValueError: if two known sizes differ, and neither is one.

    Example:
        >>> broadcast_axes((1, None, 3), (None, 5, 1))
        (None, 5, 3)
    """
    shape = tuple(b if a == 1 or (a is None and b != 1) else a for a, b in zip(first, second, strict=True))
    if any(b not in (None, 1, size) for b, size in zip(second, shape, strict=True)):
        raise ValueError(f"Axes must be equal, or of size one. Received: shapes {tuple(first)} and {tuple(second)}")
    return shape
