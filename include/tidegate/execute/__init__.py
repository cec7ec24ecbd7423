"""Where splits are staged: in this process, or in Spark tasks."""
