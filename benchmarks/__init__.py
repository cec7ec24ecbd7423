"""Measurements of Tidegate beside other engines; `make bench` prints them as one table."""
