"""A run turned into a versioned SavedModel that takes strings, and all that serves it."""
