"""The Keras optimizers, with the gradient of an embedding summed before it is used.

The TensorFlow backend gives the gradient of an embedding as one row per token. A word that stands twice in a
batch has two rows, and Keras squares and clips them one by one: the second moment becomes the sum of squares
where the square of the sum is meant, and a norm is that of the rows. These classes sum the rows of each word
first, so that a step is what the dense gradient, or the JAX backend, would have made it. They take the
arguments of the Keras class of the same name and have its defaults; what the papers use is in each docstring.
"""

from __future__ import annotations

import keras

from layers.time_steps import may_pack

_register = keras.saving.register_keras_serializable(package="pairzoo")


class _SummedRows:
    """Sums the rows of one word; stands before the Keras class among the bases."""

    # Adadelta's update of sparse rows does not compile under XLA, and gains nothing from sparsity.
    _dense = False

    def apply(self, grads, trainable_variables=None):
        # Clipping sees the gradients before update_step does.
        if self.clipnorm or self.global_clipnorm or self.clipvalue:
            grads = [_sum_rows(gradient, self._dense) for gradient in grads]
        return super().apply(grads, trainable_variables)

    def update_step(self, gradient, variable, learning_rate):
        if hasattr(gradient, "indices"):
            _write_in_place(variable)
        # After the sum over replicas, which appends their rows to each other.
        return super().update_step(_sum_rows(gradient, self._dense), variable, learning_rate)


@_register
class Adam(_SummedRows, keras.optimizers.Adam):
    """Adam with exact embedding gradients; Kingma and Ba use learning_rate 0.001, epsilon 1e-8 (Keras 1e-7).

    Reference: Kingma and Ba 2015, Algorithm 1.
    """


@_register
class LazyAdam(Adam):
    """Adam that leaves the rows of an embedding alone for which a batch has no gradient: another rule than Adam's.

    Adam moves every row at every step, by what its moments still hold, and so reads and writes the whole table. Here a
    row's moments change with its gradients alone; where a batch has all rows the two are the same. A step costs no
    more for a table of a million rows. Everything that is not an embedding is as under Adam, and under JAX, whose
    gradients of embeddings are dense, all is.

    Raises:
        ValueError: with what moves every row: ``amsgrad``, ``weight_decay``, ``gradient_accumulation_steps``.
    """

    def __init__(self, *args, name="lazy_adam", **kwargs):
        super().__init__(*args, name=name, **kwargs)
        for setting in ("amsgrad", "weight_decay", "gradient_accumulation_steps"):
            if getattr(self, setting):
                raise ValueError(f"LazyAdam moves rows alone. Received: {setting}={getattr(self, setting)!r}")

    def update_step(self, gradient, variable, learning_rate):
        gradient = _sum_rows(gradient, self._dense)
        if not hasattr(gradient, "indices"):
            super().update_step(gradient, variable, learning_rate)
            return
        import tensorflow as tf

        step, rate = (tf.cast(x, variable.dtype) for x in (self.iterations + 1, learning_rate))
        rate *= tf.sqrt(1 - self.beta_2**step) / (1 - self.beta_1**step)
        values, place = tf.cast(gradient.values, variable.dtype), self._get_variable_index(variable)

        def moved(moment, towards, share):
            """The rows of a moment after a step of it."""
            before = tf.gather(moment.value, gradient.indices)
            change = (1 - share) * (towards - before)
            self.assign_add(moment, tf.IndexedSlices(change, gradient.indices))
            return before + change

        momentum = moved(self._momentums[place], values, self.beta_1)
        velocity = moved(self._velocities[place], tf.square(values), self.beta_2)
        change = rate * momentum / (tf.sqrt(velocity) + self.epsilon)
        self.assign_sub(variable, tf.IndexedSlices(change, gradient.indices))


@_register
class AdamW(_SummedRows, keras.optimizers.AdamW):
    """AdamW with exact embedding gradients; the decay is multiplied by the learning rate, 0.001 by default.

    Reference: Loshchilov and Hutter 2019, Algorithm 2.
    """


@_register
class Nadam(_SummedRows, keras.optimizers.Nadam):
    """Adam with Nesterov momentum and exact embedding gradients.

    Reference: Dozat 2016.
    """


@_register
class Adagrad(_SummedRows, keras.optimizers.Adagrad):
    """Adagrad with exact embedding gradients; learning_rate is 0.001 by default, far below what papers use.

    Tomar et al. 2017 take learning_rate 0.1; accumulators start at 0.1, here as in TensorFlow 1.

    Rows without a gradient stay as they are under this rule, so those of a batch alone are read and written: a
    step costs no more for a table of a million rows. Keras takes the root of the whole table.

    Reference: Duchi et al. 2011, Figure 1 (diagonal).
    """

    def update_step(self, gradient, variable, learning_rate):
        gradient = _sum_rows(gradient, self._dense)
        if not hasattr(gradient, "indices"):
            super().update_step(gradient, variable, learning_rate)
            return
        import tensorflow as tf

        def of_rows(values):
            return tf.IndexedSlices(tf.cast(values, variable.dtype), gradient.indices)

        accumulator = self._accumulators[self._get_variable_index(variable)]
        squares = tf.square(tf.cast(gradient.values, variable.dtype))
        self.assign_add(accumulator, of_rows(squares))
        root = tf.sqrt(tf.gather(accumulator.value, gradient.indices) + self.epsilon)
        self.assign_sub(variable, of_rows(tf.cast(learning_rate, root.dtype) * gradient.values / root))


@_register
class Adadelta(_SummedRows, keras.optimizers.Adadelta):
    """Adadelta with exact embedding gradients; the published rule is learning_rate=1.0, epsilon=1e-6.

    The default of Keras is learning_rate 0.001, a thousandth of the rule. rho is 0.95 in both.

    Reference: Zeiler 2012, Algorithm 1.
    """

    _dense = True


@_register
class RMSprop(_SummedRows, keras.optimizers.RMSprop):
    """RMSprop with exact embedding gradients; rho 0.9 and learning_rate 0.001, as in the lecture.

    Reference: Tieleman and Hinton 2012, lecture 6.5.
    """


@_register
class SGD(_SummedRows, keras.optimizers.SGD):
    """Gradient descent whose clipping sees exact embedding gradients; else it is the Keras class."""


def _write_in_place(table):
    """Has rules that move every row write to the table itself.

    A lookup of rows leaves a table in a mode in which TensorFlow copies it before it is written as a whole: a tenth of
    a step of Adam on 400,000 rows, a seventh of RMSprop's. The next lookup enters the mode anew, at no cost.
    """
    if may_pack():  # XLA knows neither the mode nor its end
        import tensorflow as tf

        tf.raw_ops.DisableCopyOnRead(resource=table.handle)


def _sum_rows(gradient, dense):
    if keras.backend.backend() != "tensorflow":
        return gradient
    import tensorflow as tf

    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    if dense:
        return tf.convert_to_tensor(gradient)
    rows, place = tf.unique(tf.reshape(gradient.indices, [-1]))
    values = tf.math.unsorted_segment_sum(gradient.values, place, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)
