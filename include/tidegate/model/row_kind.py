"""The kinds of change that a row can have."""

from enum import StrEnum

CHANGE_TYPE = "_change_type"
"""The column with a `RowKind` (ICE-3.22)."""
CHANGE_ORDINAL = "_change_ordinal"
"""The column with the number of a change's commit in its window (ICE-3.22)."""
DELETED = "_deleted"
"""The column that marks deleted rows, if they are kept (ICE-3.22)."""


ERASED = "ERASED"
"""In `_change_type` of staged changes: a row that was erased, and that takes the row of its key
away in its turn."""


class RowKind(StrEnum):
    """The kinds of rows, as in `_change_type` (ICE-3.22)."""

    INSERT = "INSERT"
    DELETE = "DELETE"
    UPDATE_BEFORE = "UPDATE_BEFORE"
    """A row before an update; an `UPDATE_AFTER` of the same commit belongs to it."""
    UPDATE_AFTER = "UPDATE_AFTER"
    UPSERT = "UPSERT"
    """A row that is new or changed; it replaces an earlier one with its key."""
