"""How a checkpoint relates to a head (ICE-2.17), as a value; decides and opens nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tidegate.errors import CursorExpired, CursorOffLineage, HistoryTruncated
from tidegate.model.wire import Value


class CursorState(Enum):
    """The rows of ICE-2.17."""

    CAUGHT_UP = "caught up"
    IN_LINEAGE = "in lineage"
    CHILD_KEPT = "expired, child kept"
    OFF_LINEAGE = "off lineage"
    LINEAGE_CUT = "lineage cut"
    EXPIRED = "expired"

    @property
    def joins_on(self) -> bool:
        """Whether every commit after the checkpoint is retained."""
        return self in {CursorState.CAUGHT_UP, CursorState.IN_LINEAGE, CursorState.CHILD_KEPT}


@dataclass(frozen=True)
class Cursor(Value):
    """A checkpoint against one head."""

    state: CursorState
    snapshot: str
    head: str | None
    common_ancestor: str | None
    """Where the lineages of checkpoint and head diverge."""
    oldest_kept: str | None
    sequence_number: int | None
    """That of the checkpoint; None in v1 tables, and if neither metadata nor checkpoint have it."""
    sequence_gap: int | None
    """From the checkpoint to the oldest kept ancestor (ICE-2.20)."""
    format_version: int

    @property
    def policies(self) -> tuple[str, ...]:
        """The possible policies, the default first; empty if the history continues from it.

        A checkpoint whose child is kept has those of an expired one, because a mode that needs the
        previous state has lost it (ICE-2.17). Reading everything again is also possible for a cut
        lineage.
        """
        upserts = (
            ("lineage_upserts",)
            if self.format_version >= 3 and self.sequence_number is not None
            else ()
        )
        if self.state is CursorState.OFF_LINEAGE:
            # No upserts: a replaced branch may hold unread rows with lower numbers (ICE-2.19).
            return ("fail", "snapshot_diff", "reset")
        if self.state is CursorState.LINEAGE_CUT:
            return ("fail", "snapshot_diff", *upserts, "full_reload", "from_oldest")
        if self.state in {CursorState.CHILD_KEPT, CursorState.EXPIRED}:
            return ("fail", *upserts, "full_reload", "from_oldest")
        return ()

    @property
    def option(self) -> str:
        """The key that chooses among the policies."""
        off = self.state is CursorState.OFF_LINEAGE
        return "on_off_lineage" if off else "on_expired_cursor"

    def ways_out(self, *, with_kinds: bool) -> tuple[str, ...]:
        """Return the settings that lead on from here, with their requirements.

        Args:
            with_kinds: whether the rows published so far have a kind; those of an append have none,
                so that changes beside them would count as separate rows.
        """
        return tuple(
            f"`source.{self.option}: {policy}` ({_MEANINGS[policy]})"
            for policy in self.policies
            if policy != "fail" and (with_kinds or policy not in _GIVE_KINDS)
        )

    @property
    def gap_text(self) -> str:
        """Return what the sequence numbers tell (ICE-2.20)."""
        if self.sequence_gap is None:
            return "sequence numbers do not tell how many commits are lost"
        if self.sequence_gap == 1:
            return "the sequence numbers follow each other, so that no commit lies between"
        return (
            f"their sequence numbers differ by {self.sequence_gap}: up to {self.sequence_gap - 1} "
            "commits may lie between"
        )

    def refusal(
        self, source: str, *, with_kinds: bool
    ) -> CursorOffLineage | HistoryTruncated | CursorExpired:
        """Return the error of a broken history under the policy `fail` (ICE-2.18).

        Args:
            source: the table.
            with_kinds: as for `ways_out`.
        """
        remedy = f"Go on with {' or '.join(self.ways_out(with_kinds=with_kinds))}."
        if not with_kinds and "snapshot_diff" in self.policies:
            remedy += f" {_NEW_PIPELINE}"
        return self._error(source, remedy)

    def out_of_order(
        self, source: str, column: str
    ) -> CursorOffLineage | HistoryTruncated | CursorExpired:
        """Return the error of a difference that would sort before what it undoes (ICE-3.23).

        Args:
            source: the table.
            column: one that `read.columns` lists to order changes by.
        """
        others = [way for way in self.ways_out(with_kinds=True) if "snapshot_diff" not in way]
        return self._error(
            source,
            f"`source.{self.option}: snapshot_diff` is not possible at this head: its changes "
            f"would have the `{column}` of a commit that is older than the checkpoint, so that "
            "sorting by it puts them before the changes that they undo. Load again after the "
            f"table's next commit, or go on with {' or '.join(others)}.",
        )

    def _error(
        self, source: str, remedy: str
    ) -> CursorOffLineage | HistoryTruncated | CursorExpired:
        head, oldest = self.head or "none", self.oldest_kept or "none"
        if self.state is CursorState.OFF_LINEAGE:
            return CursorOffLineage(
                source=source,
                checkpoint=self.snapshot,
                head=head,
                common_ancestor=self.common_ancestor or "none",
                oldest_kept=oldest,
                remedy=remedy,
            )
        if self.state is CursorState.LINEAGE_CUT:
            return HistoryTruncated(
                source=source, start=self.snapshot, oldest_kept=oldest, head=head, remedy=remedy
            )
        return CursorExpired(
            source=source,
            checkpoint=self.snapshot,
            oldest_kept=oldest,
            head=head,
            gap=self.gap_text,
            remedy=remedy,
        )


_GIVE_KINDS = {"snapshot_diff", "lineage_upserts"}

_NEW_PIPELINE = (
    "Or read the table in a new pipeline with `read.mode: changelog`, and `_change_type` among "
    "`read.columns`: it may say `snapshot_diff` there, which publishes what such a change of "
    "history took away and brought."
)

_MEANINGS = {
    "snapshot_diff": "publishes the difference of both states; needs `read.mode: changelog`",
    "reset": "begins again at `source.start` and replaces what was published",
    "lineage_upserts": "publishes rows written since, but no deletes; needs a `read.mode` with "
    "row kinds",
    "full_reload": "reads the whole table and replaces what was published",
    "from_oldest": "goes on with the oldest kept snapshot; commits before it are lost",
}
