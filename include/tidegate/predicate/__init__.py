"""Conditions on single rows in pipeline files."""

from tidegate.predicate.condition import Predicate, named_columns

__all__ = ["Predicate", "named_columns"]
