"""Tidegate: read what changed in a lake table, and publish partitions when they are complete and good."""
