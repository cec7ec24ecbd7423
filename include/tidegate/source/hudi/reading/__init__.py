"""Read the file slices of a pinned table."""
