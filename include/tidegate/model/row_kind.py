"""What a row of a change read says about the row of the table."""

from enum import StrEnum

CHANGE_TYPE = "_change_type"
"""Column that holds a `RowKind` (ICE-3.22)."""
DELETED = "_deleted"
"""Column that says whether a row is gone, where deleted rows are kept (ICE-3.22)."""


class RowKind(StrEnum):
    """The kinds of rows, named as `_change_type` holds them (ICE-3.22)."""

    INSERT = "INSERT"
    DELETE = "DELETE"
    UPDATE_BEFORE = "UPDATE_BEFORE"
    """What a row was before an update; an `UPDATE_AFTER` of the same commit belongs to it."""
    UPDATE_AFTER = "UPDATE_AFTER"
    UPSERT = "UPSERT"
    """New or changed, not known which; what was there before under its key is replaced."""
