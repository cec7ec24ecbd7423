"""Open one table of Iceberg: catalog, metadata file, paths; refuse what cannot be read."""
