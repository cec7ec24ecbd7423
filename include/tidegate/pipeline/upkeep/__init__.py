"""Inspect what was loaded and published, restore what was lost, delete what is not needed."""
