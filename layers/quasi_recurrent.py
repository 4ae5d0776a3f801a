"""QuasiRecurrent: gates from a convolution, a recurrence that only applies them.

B batch, T time, m input size, d units, k kernel size.
"""

import keras
from keras import ops

from layers.fo_pooling import fo_pool
from layers.shapes import vector_size
from layers.time_steps import steps_from, time_steps


@keras.saving.register_keras_serializable(package="pairzoo")
class QuasiRecurrent(keras.layers.Layer):
    """A quasi-recurrent layer (QRNN): convolved gates with fo-pooling.

    Use it where an LSTM would stand: about half of its parameters and multiplications, and nothing but
    element-wise work is left in the loop over time. With `*` a convolution of width k over time:

        Z = tanh(X * W_z),  F = sigmoid(X * W_f),  O = sigmoid(X * W_o)
        c_t = f_t c_{t-1} + (1 - f_t) z_t,   c_0 = 0
        h_t = o_t c_t

    Bradbury et al. 2017, "Quasi-recurrent neural networks"; Eq. 1 of Tay et al. 2018, "Cross temporal
    recurrent networks for ranking question answer pairs".

    Args:
        units: d, the number of filters of each gate.
        kernel_size: k, the number of time steps a window spans.
        padding: `"causal"`, a window ends at its step and nothing is seen of what follows; or `"same"`, it is
            centred, an even one reaching one step further ahead.
        use_bias: adds a bias to each gate. The paper has none.
        kernel_initializer, bias_initializer, kernel_regularizer: of the one kernel `[k, m, 3d]`, gates in
            the order z, f, o, and of the one bias `[3d]`. The default depends on the inputs k m alone: Glorot's
            would count the three gates as outputs of one map, and make each smaller than if it stood alone.

    Input shape:
        `[B, T, m]`; or places `[B, T]`, integers, with `words` `[U, m]`: position t of text b holds
        `words[places[b, t]]`. Each word is then multiplied once, however often it stands in the batch; see
        `DistinctTokens`.

    Output shape:
        `[B, T, d]`, all h_t.

    Masking:
        A masked step copies c, and its output is zero; what stands there never enters a window. The mask is
        passed on. Gates and states are float32 under half precision.

    Raises:
        ValueError: if `units` or `kernel_size` is not a positive integer, `padding` is neither name, or the
            input does not have one of the two shapes, the last axis of known size.

    Example:
        >>> layer = QuasiRecurrent(units=4)
        >>> layer(np.ones((2, 5, 3)), mask=np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], bool)).shape
        TensorShape([2, 5, 4])
    """

    def __init__(
        self,
        units,
        kernel_size=2,
        padding="causal",
        use_bias=False,
        kernel_initializer="lecun_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        **kwargs,
    ):
        check_gate_arguments(units, kernel_size, padding)
        super().__init__(**kwargs)
        self.units = units
        self.kernel_size = kernel_size
        self.padding = padding
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.supports_masking = True
        self._folded = None

    def build(self, inputs_shape, words_shape=None):
        size = vector_size(inputs_shape, words_shape)
        self.kernel, self.bias = gate_weights(self, size)

    def call(self, inputs, mask=None, words=None):
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:2], dtype="bool")
        steps = time_steps(mask)
        products = self._folded or (None if words is None else word_products(words, self.kernel))
        h = fo_pool(steps, *convolved(inputs, mask, steps, self.kernel, self.bias, self.padding, products))
        return ops.cast(steps.texts(h), self.compute_dtype)

    def fold(self, words, keep=lambda table: table):
        """Places are those in `words` `[U, m]` from now on, multiplied here once and for all; `keep` stores a table."""
        self._folded = folded_products(self, words, keep)

    def folded_size(self, num_words):
        """Numbers in the tables of so many words."""
        return (num_words + 1) * self.kernel_size * 3 * self.units

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def compute_output_shape(self, inputs_shape, words_shape=None):
        return (*inputs_shape[:2], self.units)

    def get_config(self):
        return super().get_config() | gate_config(self)


# X * W of Eq. 1, shared with CrossTemporalCell.


def word_products(words, kernel):
    """Each word under each tap of each gate: three lists of k arrays `[U + 1, d]`; row 0, zero, stands at padding."""
    words, kernel = ops.pad(words, [[1, 0], [0, 0]]), ops.convert_to_tensor(kernel)
    taps = [ops.split(ops.matmul(words, tap), 3, axis=-1) for tap in ops.unstack(kernel, axis=0)]
    return list(zip(*taps, strict=True))


def folded_products(layer, words, keep):
    """The products of all words, each table stored as `keep` does."""
    products = word_products(ops.cast(words, layer.kernel.dtype), layer.kernel.value)
    return tuple(tuple(keep(table) for table in gate) for gate in products)


def convolved(x, mask, steps, kernel, bias, padding, products=None):
    """What Z, F and O are made of: three arrays of the real `steps`, `[N, d]`, in float32 at least.

    `x` is `[B, T, m]`, or places `[B, T]` in what `word_products` gave. What stands at padding enters no window.
    """
    k, mask = kernel.shape[0], ops.cast(mask, "bool")
    before = k - 1 if padding == "causal" else (k - 1) // 2
    around = (before, k - 1 - before)
    if products is None:
        a = _of_vectors(x, mask, steps, kernel, around)
    else:
        places = [steps.of(places) for places in _windows(ops.where(mask, x + 1, 0), k, around)]
        a = [sum(_looked_up(*tap) for tap in zip(gate, places, strict=True)) for gate in products]
    if bias is not None:
        a = [part + bias_part for part, bias_part in zip(a, ops.split(bias, 3), strict=True)]
    return [_wide(x) for x in a]


def _looked_up(table, places):
    return _wide(ops.take(table, places, axis=0))


def _wide(x):
    """Half precision ends here: a forget gate near 1 would lose its distance from 1."""
    return x if keras.backend.standardize_dtype(x.dtype) == "float64" else ops.cast(x, "float32")


def _of_vectors(x, mask, steps, kernel, around):
    k, m, channels = kernel.shape
    x = ops.where(ops.expand_dims(mask, -1), x, ops.zeros_like(x))
    # One matrix product, which is the fastest form on a CPU.
    windows = steps.of(ops.concatenate(_windows(x, k, around), axis=-1))
    return ops.split(ops.matmul(windows, ops.reshape(kernel, (k * m, channels))), 3, axis=-1)


def _windows(x, k, around):
    """What each of k taps sees of `[B, T, ...]`: as many arrays of that shape."""
    time = ops.shape(x)[1]
    x = ops.pad(x, [[0, 0], around, *[[0, 0]] * (len(x.shape) - 2)])
    return [steps_from(x, i, time) for i in range(k)]


# Arguments and weights, shared with CrossTemporalCell.


def check_gate_arguments(units, kernel_size, padding):
    for name, value in (("units", units), ("kernel_size", kernel_size)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
    if padding not in ("causal", "same"):
        raise ValueError(f"`padding` must be 'causal' or 'same'. Received: padding={padding!r}")


def gate_weights(layer, input_size):
    """The kernel `[k, m, 3d]` and the bias `[3d]` or None."""
    kernel = layer.add_weight(
        name="kernel",
        shape=(layer.kernel_size, input_size, 3 * layer.units),
        initializer=layer.kernel_initializer,
        regularizer=layer.kernel_regularizer,
    )
    if not layer.use_bias:
        return kernel, None
    return kernel, layer.add_weight(name="bias", shape=(3 * layer.units,), initializer=layer.bias_initializer)


def gate_config(layer):
    return {
        "units": layer.units,
        "kernel_size": layer.kernel_size,
        "padding": layer.padding,
        "use_bias": layer.use_bias,
        "kernel_initializer": keras.initializers.serialize(layer.kernel_initializer),
        "bias_initializer": keras.initializers.serialize(layer.bias_initializer),
        "kernel_regularizer": keras.regularizers.serialize(layer.kernel_regularizer),
    }
