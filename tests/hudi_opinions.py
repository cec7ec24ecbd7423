"""Golden Hudi tables that are refused, or answered otherwise by an engine, and the reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from golden_hudi import CASES, Golden, answers, frames, newest_opinion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidegate.model.instant import Instant

REFUSED = {
    case
    for case in CASES
    if any(
        word in case
        for word in ("bootstrap", "drop_partition_columns", "schema_on_read", "debezium_my")
    )
    and not case.startswith("v9_mor_payload")
}
"""Tables that are refused (HUDI-S3); the test of their refusals has the reason for each."""
READABLE = tuple(case for case in CASES if case not in REFUSED)
PARTITION_FROM_PATH = {
    "cow_part_special": "a directory `x=y` of a table without hive style is read as `y`",
    "mor_part_timestamp": "the partition column comes back as text",
    "mor_part_urlencode": "windows have the encoded text of the directory",
}
"""Spark takes the value of the partition column from the path; Tidegate from the row."""
MERGED_BY_POSITION = "mor_duplicate_keys"
"""All rows of a repeated key are updated where the log has positions (HUDI-M14)."""
REQUESTED_ORDER = ("_occ", "_nbcc_")
"""`as.of.instant` compares requested times; the states of Tidegate are by completion (HUDI-F2)."""
COMPACTED_OTHERWISE = {
    "v8_mor_bucket_compacted",
    "v8_mor_compaction_done",
    "v8_mor_event_time_compacted",
}
"""The compaction of Hudi 1.0.2 wrote other rows than the table had before it."""
OLD_DELETES = {"v6_mor_ord_date"}
"""Only Hudi 0.15 reads them, whose deletes win whatever their ordering value (HUDI-M8)."""
OLDER_STATES = {
    "v6_mor_appended_log": "Hudi 0.15 merges blocks of one file otherwise",
    "log_compaction": "rows of a log compaction have its own commit time (HUDI-CL)",
}
"""Windows that the engine answers otherwise."""

STOPPED_SCAN = {("fuzz-106", 10)}
"""Hudi 0.15 stops at the first block that is newer than the last write, here a rollback (HUDI-M2);
its next state has the rows."""


def is_exempt(case: str, *groups: Any) -> bool:
    """Whether a case is one of those that differ for a known reason."""
    return any(part in case for group in groups for part in group)


def without(*groups: Any, of: Iterable[str] = READABLE) -> tuple[str, ...]:
    """The cases that do not differ for one of some reasons."""
    return tuple(case for case in of if not is_exempt(case, *groups))


WITH_META = without(["no_meta"])
OTHER_STATES = (
    PARTITION_FROM_PATH,
    [MERGED_BY_POSITION],
    REQUESTED_ORDER,
    OLD_DELETES,
    COMPACTED_OTHERWISE,
)


def states(case: str, table: Golden) -> Iterator[tuple[Instant, list[dict[str, Any]]]]:
    """The engine's rows after each write."""
    known = {it.id.partition("_")[0]: it for it in table.writes}
    for answer in newest_opinion(case, "snapshots", "as_of"):
        if answer["as_of"] in known and "rows" in answer:
            yield known[answer["as_of"]], answer["rows"]


def alike(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without what is NULL: columns that were added are NULL in rows of before."""
    return {
        key: alike(value) if isinstance(value, dict) else value
        for key, value in row.items()
        if value is not None
    }


def random_states(case: str, table: Golden) -> Iterator[tuple[Instant, list[dict[str, Any]]]]:
    """The engine's rows of a random table after each step that wrote."""
    rows = frames(case, "snapshots.parquet", "_at")
    known = {it.id.partition("_")[0]: it for it in table.writes}
    after = {
        step["at"]: known[instant["requested"]]
        for step in answers(case)["steps"]
        for instant in step["instants"]
        if instant["requested"] in known
    }
    for at in sorted(after):
        if (case, at) not in STOPPED_SCAN:
            yield after[at], rows.get(at, [])
