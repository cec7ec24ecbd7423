"""Log files: their blocks, which of them count, and their records."""
