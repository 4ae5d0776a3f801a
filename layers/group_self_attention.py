"""GroupSelfAttention: multi-head self-attention within groups of neighbouring words.

B batch, T time, D model size, h heads, d = D / h, l group size, n groups.
"""

from functools import partial
from itertools import accumulate, groupby

import keras
from keras import ops

from layers.masking import masked_softmax
from layers.time_steps import steps_from


@keras.saving.register_keras_serializable(package="pairzoo")
class GroupSelfAttention(keras.layers.Layer):
    """Each word attends to the words of its group, in each head to another group if the offsets differ.

    Use it where the neighbours of a word matter more than distant words, or where texts are too long for
    attention of all to all: its cost grows with T, not with its square. Head i, with scale s:

        Q, K, V = X W_q, X W_k, X W_v
        group_i(t) = floor((t + ((l - o_i) mod l)) / l)
        A_i = softmax(Q_i K_i^T / s) over the real u with group_i(u) = group_i(t)
        C = concat_i(A_i V_i) W_o

    An offset o makes the first group o words long; the last one ends with the text. Two relatives are
    configurations: `group_size=None` attends to all words (global self-attention), and `window=True` to the
    words that are at most l // 2 away (local self-attention).

    Xu et al. 2019, "Gated group self-attention for answer selection", sections 2.1, 3.1.1 and 3.1.2.

    Args:
        num_heads: h; it divides D.
        group_size: l, or None for one group that holds the whole text.
        offsets: o_i of each head, from 0 to l - 1; None for 0 throughout.
        window: whether a word sees the words around it in place of its group.
        scale: `"head"` for s = sqrt(d) (Vaswani et al. 2017), `"model"` for s = sqrt(D), as the paper prints.
        kernel_initializer: of the kernels `[D, 3D]` and `[D, D]`; there are no biases.

    Input shape:
        `[B, T, D]`.

    Output shape:
        `[B, T, D]`.

    Masking:
        A masked word is not attended to, and its own output is zero. The mask is passed on.

    Raises:
        ValueError: if a number is not a positive integer, the offsets do not fit heads and group size or are
            given with a window, the scale is neither name, or the heads do not divide D.

    Example:
        >>> layer = GroupSelfAttention(num_heads=2, group_size=3, offsets=(0, 1))
        >>> layer(np.ones((2, 7, 4), "float32")).shape
        TensorShape([2, 7, 4])
    """

    def __init__(
        self,
        num_heads=6,
        group_size=10,
        offsets=None,
        window=False,
        scale="head",
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        _check(num_heads, group_size, offsets, window, scale)
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.group_size = group_size
        self.offsets = None if offsets is None else tuple(offsets)
        self.window = window
        self.scale = scale
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, inputs_shape):
        size = inputs_shape[-1]
        if len(inputs_shape) != 3 or size is None or size % self.num_heads:
            raise ValueError(
                "The input must be [batch, time, size], of a known size that the heads divide. "
                f"Received: inputs.shape={tuple(inputs_shape)}, num_heads={self.num_heads}"
            )
        self.kernel = self.add_weight(name="kernel", shape=(size, 3 * size), initializer=self.kernel_initializer)
        self.output_kernel = self.add_weight(
            name="output_kernel", shape=(size, size), initializer=self.kernel_initializer
        )

    def call(self, inputs, mask=None):
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:2], dtype="bool")
        size = inputs.shape[-1]
        head_size = size // self.num_heads
        # One product for all, and split, not sliced: the gradient of a slice is as large as what it is cut from.
        runs = [(offset, len(list(heads))) for offset, heads in groupby(self.offsets or (0,) * self.num_heads)]
        widths = [num_heads * head_size for _, num_heads in runs]
        parts = ops.split(ops.matmul(inputs, self.kernel), list(accumulate(3 * widths))[:-1], axis=-1)
        scale = (head_size if self.scale == "head" else size) ** -0.5
        attend = self._attend_window if self.window else self._attend_group
        heads = [
            attend(q * scale, k, v, mask, offset, num_heads)
            for (offset, num_heads), q, k, v in zip(
                runs, *(parts[i * len(runs) : (i + 1) * len(runs)] for i in range(3)), strict=True
            )
        ]
        attended = ops.concatenate(heads, axis=-1)
        if self.group_size is None:  # in groups and windows a masked query has no weights: 5 % of a training step less
            attended = ops.where(ops.expand_dims(mask, -1), attended, ops.zeros_like(attended))
        return ops.matmul(attended, self.output_kernel)

    def _attend_group(self, q, k, v, mask, offset, num_heads):
        time = ops.shape(q)[1]
        if self.group_size is None:
            before, tile = 0, partial(ops.expand_dims, axis=1)
        else:
            before = -offset % self.group_size
            tile = partial(_tiles, before=before, after=-(before + time) % self.group_size, size=self.group_size)
        tiles = tile(mask)
        real = tiles[:, :, None, None, :]  # [B, n, 1, 1, l]
        if self.group_size is not None:
            real = ops.logical_and(real, tiles[:, :, None, :, None])
        outputs = _attend(*(_by_head(tile(x), num_heads) for x in (q, k, v)), real)
        return _without_tiles(outputs, before, time)

    def _attend_window(self, q, k, v, mask, _, num_heads):
        # A block of l words sees l // 2 words on either side of it, so two blocks that begin l // 2 earlier.
        time, reach = ops.shape(q)[1], self.group_size // 2
        size = max(2 * reach, 1)
        after = -time % size

        def wide(x):
            tiles = _tiles(x, reach, after + size - reach, size)
            blocks = ops.shape(tiles)[1] - 1
            return ops.concatenate([steps_from(tiles, first, blocks) for first in (0, 1)], axis=2)

        place, other = ops.arange(size), ops.arange(2 * size) - reach
        near = ops.abs(place[:, None] - other[None, :]) <= reach
        real = ops.logical_and(wide(mask)[:, :, None, None, :], near)  # [B, n, 1, l, 2l]
        real = ops.logical_and(real, _tiles(mask, 0, after, size)[:, :, None, :, None])
        queries = _by_head(_tiles(q, 0, after, size), num_heads)
        outputs = _attend(queries, _by_head(wide(k), num_heads), _by_head(wide(v), num_heads), real)
        return _without_tiles(outputs, 0, time)

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def compute_output_shape(self, inputs_shape):
        return tuple(inputs_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "group_size": self.group_size,
            "offsets": self.offsets,
            "window": self.window,
            "scale": self.scale,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }


def _attend(q, k, v, real):
    """Softmax of the products over the real keys: `[B, n, h, l, d]` and `real` `[B, n, 1, 1 or l, keys]`."""
    weights = masked_softmax(ops.matmul(q, ops.swapaxes(k, -1, -2)), real)
    return ops.matmul(weights, v)


def _tiles(x, before, after, size):
    """Pads time and cuts it: `[B, T, ...]` to `[B, n, size, ...]`."""
    batch, time = ops.shape(x)[:2]
    x = ops.pad(x, [[0, 0], [before, after], *[[0, 0]] * (len(x.shape) - 2)])
    return ops.reshape(x, (batch, (before + time + after) // size, size, *x.shape[2:]))


def _by_head(tiles, num_heads):
    """`[B, n, l, h * d]` to `[B, n, h, l, d]`."""
    batch, num_tiles, size = ops.shape(tiles)[:3]
    tiles = ops.reshape(tiles, (batch, num_tiles, size, num_heads, tiles.shape[-1] // num_heads))
    return ops.transpose(tiles, (0, 1, 3, 2, 4))


def _without_tiles(tiles, before, time):
    """`[B, n, h, l, d]` to `[B, T, h * d]`, the padding cut off."""
    batch, num_tiles, _, size, _ = ops.shape(tiles)
    x = ops.transpose(tiles, (0, 1, 3, 2, 4))
    x = ops.reshape(x, (batch, num_tiles * size, tiles.shape[2] * tiles.shape[4]))
    return steps_from(x, before, time)


def _check(num_heads, group_size, offsets, window, scale):
    for name, value in (("num_heads", num_heads), ("group_size", group_size)):
        if not (_is_integer(value) and value >= 1) and not (name == "group_size" and value is None):
            raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
    if scale not in ("head", "model"):
        raise ValueError(f"`scale` must be 'head' or 'model'. Received: scale={scale!r}")
    if offsets is not None and (
        not isinstance(offsets, (tuple, list))
        or len(offsets) != num_heads
        or any(not (_is_integer(offset) and 0 <= offset < (group_size or 1)) for offset in offsets)
    ):
        raise ValueError(
            "`offsets` must have one integer per head, from 0 to below the group size. "
            f"Received: offsets={offsets!r}, num_heads={num_heads}, group_size={group_size!r}"
        )
    if window and (group_size is None or any(offsets or ())):
        raise ValueError(
            "A window needs a group size, and no offsets. "
            f"Received: window={window!r}, group_size={group_size!r}, offsets={offsets!r}"
        )


def _is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)
