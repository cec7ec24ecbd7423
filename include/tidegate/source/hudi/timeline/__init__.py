"""The timeline of a table: its instants, what each of them did, and which follow a checkpoint."""
