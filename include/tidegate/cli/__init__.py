"""The command line: arguments, clock, progress, exit codes. What is done stands in `pipeline`."""
