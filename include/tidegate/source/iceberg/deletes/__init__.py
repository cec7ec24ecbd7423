"""Find which deletes apply to which data files, and load them."""
