"""The `source.read`, `source.split` and `source.limits` parts: what is read, in which pieces."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tidegate.config.section import Section, Size, later, unique, words
from tidegate.config.words import KeyProblem

ReadMode = Literal["append", "snapshot", "changelog", "snapshot_diff", "lineage_upserts"]
OnNonAppend = Literal["fail", "skip", "changelog"]
ReadSchema = Literal["table", "snapshot"]
SplitOrder = Literal["none", "file_sequence", "event_time", "path"]

_KIND_MODES = frozenset({"changelog", "snapshot_diff", "lineage_upserts"})
_FILE_COLUMNS = frozenset({"_file", "_pos", "_spec_id"})
_LINEAGE_COLUMNS = frozenset({"_row_id", "_last_updated_sequence_number"})
_CHANGE_COLUMNS = frozenset({"_change_type", "_change_ordinal", "_commit_snapshot_id"})
METADATA_COLUMNS = {
    "snapshot": _FILE_COLUMNS | _LINEAGE_COLUMNS | {"_deleted"},
    "append": _FILE_COLUMNS | _LINEAGE_COLUMNS | {"_commit_snapshot_id"},
    "changelog": _FILE_COLUMNS | _LINEAGE_COLUMNS | _CHANGE_COLUMNS,
    "snapshot_diff": _FILE_COLUMNS | _LINEAGE_COLUMNS | _CHANGE_COLUMNS,
    "lineage_upserts": _FILE_COLUMNS | _LINEAGE_COLUMNS | {"_change_type"},
}
"""Per read mode, the reserved names that `read.columns` may list beside the table's (ICE-3.21)."""
_RESERVED = frozenset[str]().union(*METADATA_COLUMNS.values())


class ReadConfig(Section):
    """What of each commit is read."""

    mode: Annotated[ReadMode, words(ReadMode, later("with_deletes"))] = "append"
    """`append`: rows of commits that only add; `snapshot`: the whole table as it stands;
    `changelog`: inserts, updates and deletes commit by commit; `snapshot_diff`: the net difference
    of both ends of a window; `lineage_upserts`: what v3 row lineage says was written (ICE-3.6)."""
    on_non_append: Annotated[OnNonAppend, words(OnNonAppend)] = "fail"
    """What a commit that deletes or replaces rows does to an append read: `skip` loses its
    changes, and refuses a window whose own rows it takes away; `changelog` reads every window as a
    changelog (ICE-3.5)."""
    columns: Annotated[tuple[str, ...] | None, unique("column")] = Field(None, min_length=1)
    """Output columns in this order; all of the table's by default. Metadata columns such as
    `_file` or `_change_type` may stand among them (ICE-3.21)."""
    filter: str | None = None
    """SQL predicate; rows for which it is false or NULL are not read."""
    read_schema: Annotated[ReadSchema, words(ReadSchema)] | None = Field(None, alias="schema")
    """`table`: the current schema for all commits; `snapshot`: the head snapshot's (ICE-2.9)."""
    identifier_columns: Annotated[tuple[str, ...] | None, unique("column")] = None
    """Columns that tell rows apart when updates are paired; by default the schema's identifier
    fields. Without any, or with an empty list, nothing is paired (ICE-3.15)."""
    strict_identifiers: bool = False
    """Fail where a key has several changes in one commit, instead of leaving them unpaired."""
    remove_carry_over: bool = True
    """Leave out rows that a commit only copied into another file (ICE-3.14)."""
    net_changes: bool = False
    """Read a changelog window as the difference of its two ends (ICE-3.18)."""
    verify_changelog: bool = False
    """Check that the changes turn the state before into the state after; reads both (ICE-3.17)."""
    include_deleted: bool = False
    """Keep deleted rows of a snapshot read, marked by `_deleted` (ICE-3.23)."""
    limit: int | None = Field(None, gt=0)
    """Most rows of a snapshot read (ICE-5.13)."""

    @property
    def emits_kinds(self) -> bool:
        """Whether rows come with `_change_type`, so that not each one is a new row."""
        return self.mode in _KIND_MODES or self.reads_changelog

    @property
    def reads_changelog(self) -> bool:
        """Whether windows are read as changelogs, by mode or by `on_non_append`."""
        return self.mode == "changelog" or self.on_non_append == "changelog"

    @property
    def output_mode(self) -> ReadMode:
        """The mode whose columns come out: `on_non_append: changelog` gives a changelog's."""
        return "changelog" if self.reads_changelog else self.mode

    @model_validator(mode="after")
    def _keys_fit_the_mode(self) -> ReadConfig:
        if self.on_non_append != "fail" and self.mode != "append":
            problem = f"belongs to `mode: append`; '{self.mode}' reads every kind of commit"
            raise KeyProblem(problem, key="on_non_append")
        if self.limit is not None and self.mode != "snapshot":
            problem = (
                "would lose the rows behind it for ever, because the next window begins after "
                "them; it is for `mode: snapshot` (`source.limits` cuts windows between commits)"
            )
            raise KeyProblem(problem, key="limit")
        if self.include_deleted and self.mode != "snapshot":
            problem = "belongs to `mode: snapshot`; a changelog gives deletes as rows of their own"
            raise KeyProblem(problem, key="include_deleted")
        self._check_changelog_keys()
        return self

    def _check_changelog_keys(self) -> None:
        net = self.net_changes or self.mode == "snapshot_diff"
        differs = self.reads_changelog or self.mode == "snapshot_diff"
        misplaced = {
            "net_changes": self.net_changes and not self.reads_changelog,
            "strict_identifiers": self.strict_identifiers and not self.reads_changelog,
            "identifier_columns": self.identifier_columns is not None and not differs,
            "remove_carry_over": not self.remove_carry_over and not differs,
            "verify_changelog": self.verify_changelog and not differs,
        }
        for key, wrong in misplaced.items():
            if wrong:
                problem = f"belongs to `mode: changelog`; the mode is '{self.mode}'"
                raise KeyProblem(problem, key=key)
        if net and not self.remove_carry_over:
            problem = "net changes are what is left without carried-over rows; leave it true"
            raise KeyProblem(problem, key="remove_carry_over")
        if net and self.strict_identifiers:
            problem = "net changes are not paired to updates (ICE-3.18); leave out one of the two"
            raise KeyProblem(problem, key="strict_identifiers")

    def check_metadata_columns(self) -> None:
        """Refuse a reserved name that the mode does not have (ICE-3.21).

        Raises:
            KeyProblem: `columns` lists one.
        """
        allowed = METADATA_COLUMNS[self.output_mode]
        for column in self.columns or ():
            if column in _RESERVED and column not in allowed:
                problem = (
                    f"'{column}' does not exist in mode '{self.output_mode}'; "
                    f"there are {', '.join(sorted(allowed))}"
                )
                raise KeyProblem(problem, key="read.columns")


class SplitConfig(Section):
    """How large the units of parallel reading are."""

    target_size: Size = 128 << 20
    open_cost: Size = 4 << 20
    """What opening a file costs, in bytes: keeps many tiny files from one split."""
    max_rows: int = Field(5_000_000, gt=0)
    """Most rows of a sub-split, the unit that is staged and resumed on its own."""
    order: Annotated[SplitOrder, words(SplitOrder)] = "none"
    """In which order splits come; all but `none` keep it inside the splits, too (ICE-5.9)."""
    lookback: int = Field(10, gt=0)
    """How many splits stay open while files are packed; 1 where an order is kept (ICE-5.6)."""
    max_delete_memory: Size = 256 << 20
    """Memory that a task may spend on sets of deleted keys; larger ones take passes (ICE-6.9)."""

    @model_validator(mode="before")
    @classmethod
    def _no_order(cls, found: Any) -> Any:
        # YAML reads a bare `null` or `~` as nothing; that is what `none` says.
        if isinstance(found, dict) and "order" in found and found["order"] is None:
            return {**found, "order": "none"}
        return found


class LimitsConfig(Section):
    """How much one window takes at most; it ends between two commits and has at least one."""

    snapshots: int | None = Field(None, gt=0)
    files: int | None = Field(None, gt=0)
    bytes: Size | None = None
    rows: int | None = Field(None, gt=0)
