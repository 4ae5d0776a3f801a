"""fo-pooling, the recurrence of quasi-recurrent layers, with its gradient written by hand.

N real steps of some texts, step by step, see `layers.time_steps`; d size. Nothing is computed in half precision here: a
forget gate near 1 would lose its distance from 1. The associative scan, where it is faster, is over whole columns.
"""

from keras import ops

from layers.linear_recurrence import linear_recurrence, prefers_scan


def fo_pool(steps, z, f, o):
    """h_t = o_t c_t,  c_t = f_t c_{t-1} + (1 - f_t) z_t,  of what tanh, sigmoid and sigmoid make of z, f and o.

    Bradbury et al. 2017, "Quasi-recurrent neural networks", Eq. 4. The gates are made step by step, and again on the
    way back: what is kept of the forward pass is c alone.

    Args:
        steps: of the texts, from `time_steps`.
        z, f, o: before their activations, `[N, d]`, float32 or float64.

    Returns:
        h, `[N, d]`.
    """
    if prefers_scan():
        return ops.sigmoid(o) * _states(steps, ops.tanh(z), ops.sigmoid(f))

    # Defined here, and never passed on: TensorFlow unwraps a custom gradient given to a tf.function.
    @ops.custom_gradient
    def pooled(z, f, o):
        def step(state, at_t):
            (before,), (z, f, o) = state, _activated(*at_t)
            c = z + f * (before - z)
            return [c], [before, o * c]

        (before, h), _ = steps.loop(step, [_zeros(steps, z)], [z, f, o])

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            return _fo_pool_gradient(steps, z, f, o, before, upstream)

        return steps.whole(h), gradient

    return pooled(z, f, o)


def _fo_pool_gradient(steps, z, f, o, before, upstream):
    def step(state, at_t):
        (dc,), (z, f, o), (before, dh) = state, _activated(*at_t[:3]), at_t[3:]
        change = before - z
        c = z + f * change
        dc = dc + dh * o
        dz = dc * (1 - f)
        return [dc * f], [dz * (1 - z * z), dz * f * change, dh * c * o * (1 - o)]

    gradients, _ = steps.loop(step, [_zeros(steps, z)], [z, f, o, before, upstream], reverse=True)
    return tuple(steps.whole(x) for x in gradients)


def crossed_fo_pool(steps, z, own, crossed, alive):
    """The product of two fo-pools of the same z: under its own gates, and under those of its partner.

    Args:
        steps: of the texts, from `time_steps`.
        z: after its activation, `[N, d]`.
        own: f and o after theirs, two of `[N, d]`.
        crossed: those of the partner at the aligned steps.
        alive: `[N, 1]`, of the dtype of z: 1, or 0 where the partner is empty and the product therefore 0.

    Returns:
        `[N, d]`.
    """
    if prefers_scan():
        first, second = (o * _states(steps, z, f) for f, o in (own, crossed))
        return first * second * alive

    @ops.custom_gradient
    def pooled(z, f, o, f_, o_):
        def step(state, at_t):
            before, before_ = state
            z, f, o, f_, o_, alive = at_t
            c, c_ = z + f * (before - z), z + f_ * (before_ - z)
            return [c, c_], [before, before_, (o * c) * (o_ * c_) * alive]

        inputs = [z, f, o, f_, o_, alive]
        (*before, h), _ = steps.loop(step, [_zeros(steps, z)] * 2, inputs)

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            return _crossed_gradient(steps, [*inputs[:-1], *before, upstream * alive])

        return steps.whole(h), gradient

    return pooled(z, *own, *crossed)


def _crossed_gradient(steps, inputs):
    def step(state, at_t):
        dc, dc_ = state
        z, f, o, f_, o_, before, before_, dh = at_t
        change, change_ = before - z, before_ - z
        c, c_ = z + f * change, z + f_ * change_
        d_pooled, d_pooled_ = dh * (o_ * c_), dh * (o * c)
        dc, dc_ = dc + d_pooled * o, dc_ + d_pooled_ * o_
        dc_before, dc_before_ = dc * f, dc_ * f_
        dz = (dc - dc_before) + (dc_ - dc_before_)
        return [dc_before, dc_before_], [dz, dc * change, d_pooled * c, dc_ * change_, d_pooled_ * c_]

    gradients, _ = steps.loop(step, [_zeros(steps, inputs[0])] * 2, inputs, reverse=True)
    return tuple(steps.whole(x) for x in gradients)


def _activated(z, f, o):
    return ops.tanh(z), ops.sigmoid(f), ops.sigmoid(o)


def _zeros(steps, like):
    return ops.zeros((steps.num_texts, like.shape[-1]), like.dtype)


def _states(steps, z, f):
    """All c by the associative scan, of activated z and f."""
    forget = steps.texts(f - 1) + 1  # 1 at padding, which copies c
    return steps.of(linear_recurrence(forget, steps.texts(z)))
