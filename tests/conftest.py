"""What holds for every test."""

import keras
import pytest


@pytest.fixture(autouse=True)
def seeded():
    """What a test draws does not depend on those that ran before it; what its module's fixtures draw may."""
    keras.utils.set_random_seed(0)
