"""The files of a table, grouped into file slices."""
