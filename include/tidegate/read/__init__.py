"""Kernels of reading: wanted rows, equal keys and rows, changes that cancel."""
