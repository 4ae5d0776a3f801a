"""Data, training and runs of a model zoo for matching two texts."""
