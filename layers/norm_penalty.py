"""NormPenalty: a regularizer by the length of a weight, not its square."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="pairzoo")
class NormPenalty(keras.regularizers.Regularizer):
    """Adds `factor * ||w||`, the Euclidean norm of a whole weight, to the loss.

    Its pull towards zero does not fade as a weight grows small, as that of the squared norm does. RCNN's released
    code takes it of every weight (Lei et al. 2016).

    Args:
        factor: at least 0.

    Raises:
        ValueError: for a negative factor.

    Example:
        >>> round(float(NormPenalty(0.1)(np.array([[3.0, 4.0]]))), 6)
        0.5
    """

    def __init__(self, factor):
        if not factor >= 0:
            raise ValueError(f"`factor` must be at least 0. Received: factor={factor!r}")
        self.factor = factor

    def __call__(self, x):
        # A weight of zeros has no direction to shrink in: its gradient is 0 and not NaN.
        return self.factor * ops.sqrt(ops.maximum(ops.sum(ops.square(x)), 1e-12))

    def get_config(self):
        return {"factor": self.factor}
