"""A bag of rows as two numbers, to compare bags that are never in one place."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.wire import Value

_MODULUS = 1 << 64


@dataclass(frozen=True)
class BagSum(Value):
    """The number of rows and the sum of their hashes; equal bags have equal sums.

    Different bags have equal sums with a probability of one in 2**64.
    """

    rows: int = 0
    hashes: int = 0
    """The sum of the hashes, modulo 2**64."""

    def plus(self, other: BagSum) -> BagSum:
        """Join two bags."""
        return BagSum(self.rows + other.rows, (self.hashes + other.hashes) % _MODULUS)

    def minus(self, other: BagSum) -> BagSum:
        """Subtract a bag from another."""
        return BagSum(self.rows - other.rows, (self.hashes - other.hashes) % _MODULUS)
