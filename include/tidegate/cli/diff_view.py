"""The difference of two revisions as tables and as JSON. Pure: values → renderables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from tidegate.cli import wording

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidegate.pipeline.upkeep.differing import RevisionDifference

Row = dict[str, Any]


@dataclass(frozen=True)
class ChangedRow:
    """A row before and after, and the columns in which it differs."""

    before: Row
    after: Row
    columns: Sequence[str]


@dataclass(frozen=True)
class Samples:
    """Some of the rows by which two revisions differ."""

    changed: Sequence[ChangedRow] = ()
    removed: Sequence[Row] = ()
    added: Sequence[Row] = ()


def facts(shown: RevisionDifference) -> list[tuple[str, str]]:
    """Return what differs in numbers, as names and values."""
    found = shown.found
    rows = [
        ("partition", str(shown.partition)),
        ("revisions", f"{shown.old} → {shown.new}"),
        ("rows", f"{wording.count(shown.old_rows)} → {wording.count(shown.new_rows)}"),
        (
            "files",
            f"{wording.count(shown.common_files)} in both (not read), "
            f"{wording.count(shown.old_files)} in revision {shown.old} only, "
            f"{wording.count(shown.new_files)} in revision {shown.new} only",
        ),
        ("difference", _difference(shown)),
    ]
    if found.changed_columns:
        by_column = sorted(found.changed_columns.items(), key=lambda item: (-item[1], item[0]))
        rows.append(
            ("by column", ", ".join(f"{name} {wording.count(times)}" for name, times in by_column))
        )
    rows += [("column", f"{name} is new, NULL before") for name in found.columns_added]
    rows += [("column", f"{name} is gone, NULL after") for name in found.columns_removed]
    rows += [
        ("column", f"{name} was {before}, is {after}")
        for name, (before, after) in found.columns_retyped.items()
    ]
    if found.repeated_keys:
        rows.append(
            (
                "note",
                f"{wording.plural(found.repeated_keys, 'key')} on both sides, and several times "
                "on one: their rows are told as removed and added",
            )
        )
    return rows


def _difference(shown: RevisionDifference) -> str:
    found = shown.found
    if not found.added and not found.removed and not found.changed:
        return "none: both revisions have the same rows"
    text = f"+{wording.count(found.added)} −{wording.count(found.removed)}"
    return f"{text}, {wording.count(found.changed)} changed" if found.keys else text


def sample_tables(samples: Samples, keys: Sequence[str]) -> list[Table]:
    """Return a table of changed rows by column, and one of added and removed rows."""
    tables = []
    if samples.changed:
        changes = Table(*keys, "column", "before", "after", title="changed", title_justify="left")
        for row in samples.changed:
            for column in row.columns:
                named = [_cell(row.before[key]) for key in keys]
                changes.add_row(
                    *named, Text(column), _cell(row.before[column]), _cell(row.after[column])
                )
        tables.append(changes)
    for title, rows, style in (
        ("removed", samples.removed, "red"),
        ("added", samples.added, "green"),
    ):
        if rows:
            table = Table(*rows[0], title=title, title_justify="left", style=style)
            for values in rows:
                table.add_row(*map(_cell, values.values()))
            tables.append(table)
    return tables


def more(shown: RevisionDifference, samples: Samples) -> str:
    """Return how many rows are not shown; empty if all are."""
    found = shown.found
    left = (
        found.changed
        - len(samples.changed)
        + found.removed
        - len(samples.removed)
        + found.added
        - len(samples.added)
    )
    rows = wording.plural(left, "more row")
    return f"… and {rows}; --limit N or --out FILE shows them." if left else ""


def raw(shown: RevisionDifference, samples: Samples | None = None) -> dict[str, Any]:
    """Return the difference for machines."""
    found = shown.found
    told: dict[str, Any] = {
        "partition": str(shown.partition),
        "from": {"revision": shown.old, "rows": shown.old_rows, "files": shown.old_files},
        "to": {"revision": shown.new, "rows": shown.new_rows, "files": shown.new_files},
        "common_files": shown.common_files,
        "keys": list(found.keys),
        "added": found.added,
        "removed": found.removed,
        "changed": found.changed,
        "repeated_keys": found.repeated_keys,
        "changed_columns": dict(found.changed_columns),
        "columns": {
            "added": list(found.columns_added),
            "removed": list(found.columns_removed),
            "retyped": {name: list(types) for name, types in found.columns_retyped.items()},
        },
    }
    if samples is not None:
        told["rows"] = {
            "changed": [_raw_change(row, found.keys) for row in samples.changed],
            "removed": list(samples.removed),
            "added": list(samples.added),
        }
    return told


def _raw_change(row: ChangedRow, keys: Sequence[str]) -> Mapping[str, Any]:
    return {
        "key": {key: row.before[key] for key in keys},
        "before": {column: row.before[column] for column in row.columns},
        "after": {column: row.after[column] for column in row.columns},
    }


def _cell(value: Any) -> Text:
    """Return a value, in which NULL differs from a text of that name."""
    return Text("NULL", "dim") if value is None else Text(str(value))
