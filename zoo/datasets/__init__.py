"""One module per data set; its docstring says what it is, where to get it and which files are read.

Each has ``load(folder, ...) -> Dataset`` and ``write(splits, folder)``, which writes the official format.
"""
