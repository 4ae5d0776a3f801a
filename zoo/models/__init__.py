"""One model per file: a function of the file's name, from sizes to a `keras.Model` of token ids to scores."""
