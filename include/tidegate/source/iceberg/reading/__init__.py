"""Read the files of a pinned table."""
