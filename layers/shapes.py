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


def vector_size(inputs_shape, words_shape=None):
    """The size m of the vectors `[B, T, m]` that a recurrence reads, or of `words` `[U, m]` beside places `[B, T]`.

    Raises:
        ValueError: if the input has neither form, or m is not known.

    Example:
        >>> vector_size((None, None, 3)), vector_size((None, None), (None, 4))
        (3, 4)
    """
    size = (words_shape or inputs_shape)[-1]
    if len(inputs_shape) != (3 if words_shape is None else 2) or size is None:
        raise ValueError(
            "The input must be [batch, time, size], or [batch, time] with words [number, size], of a known size. "
            f"Received: inputs.shape={tuple(inputs_shape)}, words.shape={words_shape and tuple(words_shape)}"
        )
    return size
