"""Strategies of `tf.distribute` by name."""

from __future__ import annotations

STRATEGIES = ("none", "mirrored")


def strategy(name: str, replicas: int):
    """Makes a strategy, or None; call it before anything else uses a device.

    Args:
        name: ``"none"`` or ``"mirrored"``. Mirrored takes all GPUs, or splits the CPU where there is none.
        replicas: parts that the CPU is split into.

    Raises:
        ValueError: for another name.
    """
    if name not in STRATEGIES:
        raise ValueError(f"strategy must be one of {STRATEGIES}. Received: name={name!r}")
    if name == "none":
        return None
    import tensorflow as tf  # only a strategy needs it: without one the JAX backend trains as well

    if tf.config.list_physical_devices("GPU"):
        return tf.distribute.MirroredStrategy()
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * replicas)
    return tf.distribute.MirroredStrategy([f"CPU:{number}" for number in range(replicas)])
