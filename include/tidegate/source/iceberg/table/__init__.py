"""Open one Iceberg table: catalog, metadata file, paths; refuse what cannot be read."""
