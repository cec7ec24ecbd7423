"""A table's properties: what it is, what it is keyed by, and how its records are merged."""
