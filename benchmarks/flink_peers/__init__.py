"""Measurements of Flink's batch sink, which runs in an environment of its own."""
