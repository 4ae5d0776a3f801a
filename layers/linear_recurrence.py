"""The linear recurrence c_t = f_t * c_{t-1} + (1 - f_t) * z_t, with a gradient written by hand."""

from keras import ops


def linear_recurrence(forget, update):
    """first form"""
    f = ops.unstack(forget, axis=1)
    z = ops.unstack(update, axis=1)
    c = ops.zeros_like(z[0])
    states = []
    for ft, zt in zip(f, z, strict=True):
        c = zt + ft * (c - zt)
        states.append(c)
    return ops.stack(states, axis=1)
