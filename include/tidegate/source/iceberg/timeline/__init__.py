"""The history of a table: its lineage, its refs, and how a checkpoint relates to them."""
