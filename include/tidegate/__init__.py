"""Tidegate: read what changed in a lake table.

And publish partitions when they are complete and good.
"""
