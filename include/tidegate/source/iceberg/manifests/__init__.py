"""What manifests and their lists say of files, and which of it a filter rules out."""
