"""The target of a pipeline: its owner, partitions, markers and schema. Moves no file."""
