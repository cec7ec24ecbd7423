"""How the changes of one commit are settled: what is compared, what is paired, what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.wire import Value

COMMIT_SNAPSHOT_ID = "_commit_snapshot_id"
"""Column that names the commit of a change (ICE-3.22)."""
ROW_ID = "_row_id"
"""Column with the identity that format v3 gives a row (ICE-8.2)."""


@dataclass(frozen=True)
class SettleRules(Value):
    """What is done with the DELETE and INSERT rows of one commit (ICE-3.14, 3.15)."""

    compared: tuple[str, ...]
    """Columns that make a row: those of the table that come out, and the identifiers.

    Where a row stands (`_file`, `_pos`) is no part of it: a carried-over row stands elsewhere.
    """
    identifiers: tuple[str, ...] = ()
    """Columns that tell rows apart when updates are paired; none: nothing is paired."""
    carry_over: bool = True
    """Whether rows that a commit only copied are left out."""
    row_ids: bool = False
    """Whether the rows have a `_row_id` that tells them apart where both sides have one."""
    strict: bool = False
    """Whether a key with several changes in one commit is an error."""
    hidden: tuple[str, ...] = ()
    """Columns that are read for this alone and do not come out."""

    @property
    def exchanges(self) -> int:
        """How many exchanges bring the rows together that must be seen together; 0: none must.

        Rows with the same `_row_id` may have different keys, and the other way round.
        """
        if not self.carry_over and not self.identifiers:
            return 0
        return 2 if self.row_ids and self.identifiers else 1

    @property
    def placed_by(self) -> tuple[str, ...]:
        """Columns whose values decide which bucket of an exchange a row belongs to."""
        return self.identifiers or self.compared


@dataclass(frozen=True)
class SettleCounts(Value):
    """What settling left out or could not pair."""

    carried_over: int = 0
    """Rows of both kinds that were left out, because the commit only copied them."""
    unpaired: int = 0
    """Rows whose key has more than one DELETE and one INSERT in its commit."""

    def plus(self, other: SettleCounts) -> SettleCounts:
        """Add the counts of other rows."""
        return SettleCounts(self.carried_over + other.carried_over, self.unpaired + other.unpaired)
