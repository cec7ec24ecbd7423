"""The columns of a read, and how columns of files are converted to them by field id."""
