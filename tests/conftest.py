"""What holds for every test."""

import pytest


@pytest.fixture(autouse=True)
def seeded():
    """What a test draws does not depend on those that ran before it; what its module's fixtures draw may."""
    import keras  # after what the test's module imports, which may have to keep TensorFlow quiet beforehand

    keras.utils.set_random_seed(0)
