"""How the changes of one commit are settled: what is compared and paired, and the counts."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.wire import Value

COMMIT_SNAPSHOT_ID = "_commit_snapshot_id"
"""The column with the commit of a change (ICE-3.22)."""
ROW_ID = "_row_id"
"""The column with a row's identity in format 3 (ICE-8.2)."""


@dataclass(frozen=True)
class SettleRules(Value):
    """How the DELETE and INSERT rows of one commit are settled (ICE-3.14, 3.15)."""

    compared: tuple[str, ...]
    """Columns in which equal rows agree: those of the table that are returned, and the identifiers.

    The place of a row (`_file`, `_pos`) is not included: a carried-over row has another one.
    """
    identifiers: tuple[str, ...] = ()
    """Columns that identify a row when updates are paired; empty: nothing is paired."""
    carry_over: bool = True
    """Whether rows that a commit only copied are left out."""
    row_ids: bool = False
    """Whether the rows have a `_row_id`, which identifies them if both sides have one."""
    strict: bool = False
    """Whether a key with several changes in one commit is an error."""
    hidden: tuple[str, ...] = ()
    """Columns that are read only for this and are not returned."""

    @property
    def exchanges(self) -> int:
        """The number of exchanges that bring together the rows that are settled together; may be 0.

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
    """Counts of rows that settling left out or could not pair."""

    carried_over: int = 0
    """Rows of both kinds that were left out, because the commit only copied them."""
    unpaired: int = 0
    """Rows whose key has more than one DELETE and one INSERT in its commit."""

    def plus(self, other: SettleCounts) -> SettleCounts:
        """Add the counts of other rows."""
        return SettleCounts(self.carried_over + other.carried_over, self.unpaired + other.unpaired)
