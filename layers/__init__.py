"""Layers with one idea each, written in `keras.ops`; they know nothing of the rest of the project."""
