"""Which deletes apply to which data files, and what they say."""
