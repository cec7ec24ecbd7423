"""From pieces of files to bounded Arrow batches in the schema that the pipeline writes."""

from tidegate.read.piece_reader import first_rows, read_pieces

__all__ = ["first_rows", "read_pieces"]
