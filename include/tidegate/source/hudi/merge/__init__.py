"""Merge the records of a file slice by key."""
