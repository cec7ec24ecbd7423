"""What happened to a table when: its lineage, its refs, and how a checkpoint joins on to them."""
