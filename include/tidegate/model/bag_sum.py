"""A bag of rows in two numbers, to compare bags that are never in one place."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.wire import Value

_MODULUS = 1 << 64


@dataclass(frozen=True)
class BagSum(Value):
    """How many rows, and the sum of their hashes; equal bags have equal sums.

    Unlike bags have equal sums by an accident of one in 2**64.
    """

    rows: int = 0
    hashes: int = 0
    """Modulo 2**64."""

    def plus(self, other: BagSum) -> BagSum:
        """Join two bags."""
        return BagSum(self.rows + other.rows, (self.hashes + other.hashes) % _MODULUS)

    def minus(self, other: BagSum) -> BagSum:
        """Take a bag out of another."""
        return BagSum(self.rows - other.rows, (self.hashes - other.hashes) % _MODULUS)
