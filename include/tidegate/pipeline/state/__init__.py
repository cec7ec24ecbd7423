"""What load and publish build on: the work directory, its records, and who holds what."""
