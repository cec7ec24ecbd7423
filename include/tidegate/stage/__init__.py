"""Turn batches into part files: partition values, row rules, rolling writers, and all paths."""
