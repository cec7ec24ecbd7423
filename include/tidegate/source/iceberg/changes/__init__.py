"""The files that a window reads, and what happened to them within it."""
