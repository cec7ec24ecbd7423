"""Which columns come out of a read, and how those of a file become them by field id."""
