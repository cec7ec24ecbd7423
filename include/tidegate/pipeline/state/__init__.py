"""What load and publish stand on: the work directory, its records, who holds what."""
