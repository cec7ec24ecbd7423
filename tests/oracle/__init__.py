"""What Flink answers, recorded as JSON, beside what Tidegate answers."""
