"""Read manifests and their lists, and rule out files by a filter."""
