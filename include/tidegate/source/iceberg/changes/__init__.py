"""Which files a window reads, and what became of them within it."""
