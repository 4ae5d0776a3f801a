"""One recipe per file: one model family on one data set, every number with its source."""

import zoo.quiet_tensorflow  # noqa: F401
