"""Conditions on single rows in pipeline files."""

from tidegate.predicate.condition import Predicate, named_columns
from tidegate.predicate.equalities import equalities

__all__ = ["Predicate", "equalities", "named_columns"]
