"""What a target is: its owner, its partitions, its markers, its schema. Moves no file."""
