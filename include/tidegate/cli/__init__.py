"""The command line: arguments, clock, progress, exit codes. The work is done in `pipeline`."""
