"""Decide when a partition may be published, and publish it."""
