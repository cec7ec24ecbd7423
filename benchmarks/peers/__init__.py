"""Measurements on Iceberg tables beside engines that run in an environment of their own."""
