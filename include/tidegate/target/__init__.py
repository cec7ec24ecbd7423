"""What a target is: its partitions, its markers, its schema. Moves no file."""
