"""The `source.read`, `source.split` and `source.limits` parts: what is read, in which pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from tidegate.config.section import Section, Size, later, unique, words
from tidegate.config.words import KeyProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

ReadMode = Literal["append", "snapshot", "changelog", "snapshot_diff", "lineage_upserts"]
OnNonAppend = Literal["fail", "skip", "changelog"]
ReadSchema = Literal["table", "snapshot"]
SplitOrder = Literal["none", "file_sequence", "event_time", "path"]

COMMIT_TIME, COMMIT_SEQUENCE = "_commit_time", "_commit_sequence_number"
"""The columns that order changes across windows (ICE-3.23)."""
_KIND_MODES = frozenset({"changelog", "snapshot_diff", "lineage_upserts"})
_FILE_COLUMNS = frozenset({"_file", "_pos", "_spec_id"})
_LINEAGE_COLUMNS = frozenset({"_row_id", "_last_updated_sequence_number"})
_CHANGE_COLUMNS = frozenset(
    {
        "_change_type",
        "_change_ordinal",
        "_commit_snapshot_id",
        COMMIT_TIME,
        COMMIT_SEQUENCE,
    }
)
METADATA_COLUMNS = {
    "snapshot": _FILE_COLUMNS | _LINEAGE_COLUMNS | {"_deleted"},
    "append": _FILE_COLUMNS | _LINEAGE_COLUMNS | {"_commit_snapshot_id"},
    "changelog": _FILE_COLUMNS | _LINEAGE_COLUMNS | _CHANGE_COLUMNS,
    "snapshot_diff": _FILE_COLUMNS | _LINEAGE_COLUMNS | _CHANGE_COLUMNS,
    "lineage_upserts": _FILE_COLUMNS | _LINEAGE_COLUMNS | {"_change_type"},
}
"""Per read mode, the reserved names that `read.columns` may list besides the table's (ICE-3.21)."""
_RESERVED = frozenset[str]().union(*METADATA_COLUMNS.values())


class ReadConfig(Section):
    """Which rows and columns are read: the options that every kind of source has."""

    mode: str
    columns: Annotated[tuple[str, ...] | None, unique("column")] = Field(None, min_length=1)
    """Output columns in this order; all of the table's by default. Metadata columns such as `_file`
    or `_change_type` are allowed (ICE-3.21)."""
    filter: str | None = None
    """SQL predicate; rows for which it is false or NULL are not read."""
    limit: int | None = Field(None, gt=0)
    """The most rows of a snapshot read (ICE-5.13)."""

    @property
    def emits_kinds(self) -> bool:
        """Whether rows have a `_change_type`, so that not every one is a new row."""
        return False

    @property
    def output_mode(self) -> str:
        """The mode whose columns are returned."""
        return self.mode

    @property
    def plainest_mode(self) -> str:
        """The mode to propose in place of one that emits row kinds."""
        return "append"

    @property
    def keeps_deleted(self) -> bool:
        """Whether deleted rows are read, and marked."""
        return False

    @property
    def verifies(self) -> bool:
        """Whether changes are checked against the states on both sides of them."""
        return False

    @property
    def repeats_keys(self) -> bool:
        """Whether an updated row would stand beside the old one in a target of `write: append`."""
        return False

    @property
    def tells_moves(self) -> bool:
        """Whether a row that moves to another partition is taken out of its old one."""
        return self.mode == "snapshot"

    @property
    def modes_that_tell_moves(self) -> str | None:
        """The modes to propose in place of one that does not, as a part of a sentence.

        None if there is none.
        """
        return "'snapshot'"

    @property
    def returns_parts(self) -> bool:
        """Whether rows may lack columns that a write left as they were."""
        return False

    @property
    def plainest_upserts(self) -> str:
        """The mode to propose in place of one that returns parts of rows."""
        return "append"

    @property
    def metadata_columns(self) -> Mapping[str, frozenset[str]]:
        """Per read mode, the names that `columns` may list besides the table's."""
        return {}

    @model_validator(mode="after")
    def _limit_is_for_snapshots(self) -> Self:
        if self.limit is not None and self.mode != "snapshot":
            problem = (
                "would lose all further rows for ever, because the next window begins after them; "
                "it is for `mode: snapshot` (`source.limits` cuts windows between commits)"
            )
            raise KeyProblem(problem, key="limit")
        return self


class TableReadConfig(ReadConfig):
    """Which rows and columns are read of tables whose commits add and delete files."""

    mode: Annotated[ReadMode, words(ReadMode, later("with_deletes"))] = "append"
    """`append`: rows of commits that only add; `snapshot`: the whole current table; `changelog`:
    inserts, updates and deletes commit by commit; `snapshot_diff`: the net difference between both
    ends of a window; `lineage_upserts`: rows written since the start, by row lineage of format 3
    (ICE-3.6)."""
    on_non_append: Annotated[OnNonAppend, words(OnNonAppend)] = "fail"
    """What to do in mode `append` about a commit that deletes or replaces rows: `skip` ignores its
    changes, but refuses a window whose own rows it removes; `changelog` reads every window as a
    changelog (ICE-3.5)."""
    read_schema: Annotated[ReadSchema, words(ReadSchema)] | None = Field(None, alias="schema")
    """`table`: the current schema for all commits; `snapshot`: the head snapshot's (ICE-2.9)."""
    identifier_columns: Annotated[tuple[str, ...] | None, unique("column")] = None
    """Columns that identify a row when updates are paired; by default the schema's identifier
    fields. If there are none, or the list is empty, nothing is paired (ICE-3.15)."""
    strict_identifiers: bool = False
    """Fail if a key has several changes in one commit, instead of leaving them unpaired."""
    remove_carry_over: bool = True
    """Leave out rows that a commit only copied into another file (ICE-3.14)."""
    net_changes: bool = False
    """Read a changelog window as the difference of its two ends (ICE-3.18)."""
    verify_changelog: bool = False
    """Check that the changes turn the previous state into the next; reads both (ICE-3.17)."""
    include_deleted: bool = False
    """Keep deleted rows of a snapshot read, marked by `_deleted` (ICE-3.23)."""

    @property
    def emits_kinds(self) -> bool:
        """Whether rows have a `_change_type`, so that not every one is a new row."""
        return self.mode in _KIND_MODES or self.reads_changelog

    @property
    def reads_changelog(self) -> bool:
        """Whether windows are read as changelogs, by mode or by `on_non_append`."""
        return self.mode == "changelog" or self.on_non_append == "changelog"

    @property
    def output_mode(self) -> ReadMode:
        """The mode whose columns are returned: with `on_non_append: changelog`, a changelog's."""
        return "changelog" if self.reads_changelog else self.mode

    @property
    def tells_moves(self) -> bool:
        """Whether a row that moves to another partition is taken out of its old one."""
        return self.reads_changelog or self.mode in {"snapshot", "snapshot_diff"}

    @property
    def modes_that_tell_moves(self) -> str | None:
        """The modes to propose in place of one that does not, as a part of a sentence."""
        return "a mode with the rows before each change ('changelog', 'snapshot_diff')"

    @property
    def keeps_deleted(self) -> bool:
        """Whether deleted rows are read, and marked."""
        return self.include_deleted

    @property
    def verifies(self) -> bool:
        """Whether changes are checked against the states on both sides of them (ICE-3.17)."""
        return self.verify_changelog

    @property
    def metadata_columns(self) -> Mapping[str, frozenset[str]]:
        """Per read mode, the reserved names that `columns` may list besides the table's."""
        return METADATA_COLUMNS

    @model_validator(mode="after")
    def _keys_fit_the_mode(self) -> TableReadConfig:
        if self.on_non_append != "fail" and self.mode != "append":
            problem = f"belongs to `mode: append`; '{self.mode}' reads every kind of commit"
            raise KeyProblem(problem, key="on_non_append")
        if self.include_deleted and self.mode != "snapshot":
            problem = "belongs to `mode: snapshot`; a changelog has deletes as rows of their own"
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
            problem = "net changes never include carried-over rows; leave it true"
            raise KeyProblem(problem, key="remove_carry_over")
        if net and self.strict_identifiers:
            problem = "net changes are not paired as updates; remove one of the two"
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
    """The size of the units of parallel reading."""

    target_size: Size = 128 << 20
    open_cost: Size = 4 << 20
    """What opening a file costs, in bytes; this limits the number of tiny files in one split."""
    max_rows: int = Field(5_000_000, gt=0)
    """The most rows of a sub-split, the unit that is staged and resumed on its own."""
    order: Annotated[SplitOrder, words(SplitOrder)] = "none"
    """The order of the splits; all values but `none` also apply within a split (ICE-5.9)."""
    lookback: int = Field(10, gt=0)
    """How many splits stay open while files are packed; 1 if an order is kept (ICE-5.6)."""
    max_delete_memory: Size = 256 << 20
    """Memory of a task for what rows are merged with: of sets of deleted keys, larger ones take
    several passes (ICE-6.9); log records beyond it are merged through local files (HUDI-M18)."""

    @model_validator(mode="before")
    @classmethod
    def _no_order(cls, found: Any) -> Any:
        # YAML reads a bare `null` or `~` as None, which means `none` here.
        if isinstance(found, dict) and "order" in found and found["order"] is None:
            return {**found, "order": "none"}
        return found


class LimitsConfig(Section):
    """The most that one window takes; it ends between two commits and has at least one."""

    snapshots: int | None = Field(None, gt=0)
    files: int | None = Field(None, gt=0)
    bytes: Size | None = None
    rows: int | None = Field(None, gt=0)
