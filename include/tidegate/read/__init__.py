"""Kernels of reading: which rows are wanted, what keys and rows are equal, what changes cancel."""
