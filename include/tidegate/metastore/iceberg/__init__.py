"""An Iceberg table that is published to: its catalog, its columns, and its snapshots.

Writes metadata through pyiceberg only; the data files are where the commit put them.
"""
