"""Data, training and runs of a model zoo for matching two texts."""

import os

# TensorFlow writes several lines about its build to stderr at import; a user who wants them sets the variable.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
