"""The options of a Hudi table: where it lies, how its changes are read, and about open instants."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field, model_validator

from tidegate.config.reading import LimitsConfig, ReadConfig
from tidegate.config.section import AnyPath, words
from tidegate.config.sources.every_kind import SourceConfig
from tidegate.config.words import KeyProblem
from tidegate.model.row_kind import CHANGE_TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.config.sources.every_kind import Names

HudiReadMode = Literal[
    "snapshot",
    "rebuild_partitions",
    "complete",
    "with_deletes",
    "changelog",
    "latest_state",
    "skip_merge",
]
OnHollowInstant = Literal["block", "fail"]
OnCleaned = Literal["fail", "snapshot"]

META_COLUMNS = frozenset(
    {
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
    }
)
_MODES: tuple[HudiReadMode, ...] = get_args(HudiReadMode)
_NO_TRANSITION_TIME = (
    "cannot be offered: a file of the timeline may have an earlier modification time than one that "
    "was seen before it, and has another one in a copy of the table, so that a write could be "
    "passed over without a trace; use 'block', and let Hudi roll a dead write back"
)
_REPEATING = frozenset({"complete", "latest_state", "skip_merge"})
_OF_CHANGES = {
    "with_deletes": {CHANGE_TYPE},
    "changelog": {CHANGE_TYPE, "_change_ordinal", "_partial"},
}
_ORDERS = frozenset({"none", "path"})


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as unknown:
        msg = f"'{name}' is no time zone; expected a name such as 'UTC' or 'Europe/Berlin'"
        raise ValueError(msg) from unknown
    return name


class HudiReadConfig(ReadConfig):
    """Which rows and columns of a Hudi table are read."""

    mode: Annotated[
        HudiReadMode,
        words(HudiReadMode),
    ] = "complete"
    """`snapshot`: the whole current table; `rebuild_partitions`: all rows of the partitions that
    changed in the window, in place of those that were read before (HUDI-R9); `complete`: the
    current rows of keys that changed in the window; `with_deletes`: the same, and the keys that
    were deleted, told apart by `_change_type` (HUDI-R6); `changelog`: what each write wrote and
    deleted, not merged (HUDI-R7); `latest_state`: as Hudi's own incremental query answers, the
    window's records merged among themselves; `skip_merge`: the window's rows of base files, then
    those of logs (HUDI-R3 to R5, R8)."""
    keys_repeat: bool = False
    """Whether a key may stand in the target several times: each window appends the new row of an
    updated key beside the old one."""

    @property
    def repeats_keys(self) -> bool:
        """Whether an updated row would stand beside the old one in a target of `write: append`."""
        return self.mode in _REPEATING and not self.keys_repeat

    @property
    def emits_kinds(self) -> bool:
        """Whether rows have a `_change_type`, so that not every one is a new row."""
        return self.mode in _OF_CHANGES

    @property
    def plainest_mode(self) -> str:
        """The mode to propose in place of one that emits row kinds."""
        return "rebuild_partitions"

    @property
    def tells_moves(self) -> bool:
        """Whether a row that moves to another partition is taken out of its old one."""
        return self.mode in {"snapshot", "rebuild_partitions"}

    @property
    def modes_that_tell_moves(self) -> str | None:
        """The modes to propose in place of one that does not, as a part of a sentence."""
        return "'snapshot' or 'rebuild_partitions'"

    @property
    def returns_parts(self) -> bool:
        """Whether rows may lack columns that a write left as they were."""
        return self.mode in {"changelog", "skip_merge"}

    @property
    def plainest_upserts(self) -> str:
        """The mode to propose in place of one that returns parts of rows."""
        return "with_deletes"

    @property
    def metadata_columns(self) -> Mapping[str, frozenset[str]]:
        """The columns that the writer adds to every row; each mode has them."""
        return {mode: META_COLUMNS | _OF_CHANGES.get(mode, set()) for mode in _MODES}


class HudiSourceConfig(SourceConfig):
    """The source of changes: a Hudi table."""

    outside_plans: ClassVar[frozenset[str]] = SourceConfig.outside_plans | {
        # The pinned identity says which table it is; what these keys decide is part of the window.
        "path",
        "limits",
        "on_hollow_instant",
        "on_cleaned",
        "warn_kept_below",
        "timeline_timezone",
    }
    table_marks: ClassVar[frozenset[str]] = frozenset({".hoodie", ".hoodie_partition_metadata"})

    kind: Literal["hudi"]
    path: AnyPath
    """The table's folder, which has `.hoodie` in it."""
    read: HudiReadConfig = HudiReadConfig()
    timeline_timezone: Annotated[str, AfterValidator(_zone)] = "UTC"
    """The zone of the writers' clocks, for a table whose `hoodie.table.timeline.timezone` is not
    UTC: its instants are then times in a zone that the table does not name (HUDI-T3)."""
    on_hollow_instant: Annotated[
        OnHollowInstant,
        words(
            OnHollowInstant,
            dict.fromkeys(("transition_time", "use_transition_time"), _NO_TRANSITION_TIME),
        ),
    ] = "block"
    """What to do about a write that is still pending before one that is done, in table versions
    below 8: `block` ends windows before it, `fail` refuses to load (HUDI-W5)."""
    on_cleaned: Annotated[OnCleaned, words(OnCleaned)] = "fail"
    """What to do about a window whose files the table's cleaner removed: `fail` refuses to load;
    `snapshot` reads what is left of the window's rows from the newest state, or, if the archive of
    the timeline was removed as well, publishes the whole table again (HUDI-W12)."""
    warn_kept_below: int = Field(3, ge=0)
    """A plan warns when the table keeps fewer writes than this up to the checkpoint, as windows of
    its mode need their files; 0: never (HUDI-W14)."""
    limits: LimitsConfig = LimitsConfig()

    @property
    def address(self) -> str:
        """The table's folder, in one line."""
        return f"hudi {self.path}"

    @classmethod
    def meant_by(cls, table: str) -> dict[str, str] | None:
        """Accept the folder of a table."""
        path = Path(table)
        if (path / ".hoodie").is_dir():
            return {"kind": "hudi", "path": str(path.absolute())}
        return None

    @classmethod
    def is_of_table(cls, folder: str, names: Names) -> bool:
        """Recognise the folder of a table, and that of a partition (HUDI-T1)."""
        return any(names.exists(f"{folder}/{mark}") for mark in sorted(cls.table_marks))

    @property
    def known_places(self) -> tuple[str, ...]:
        """The table's folder."""
        return (self.path,)

    @property
    def window_limits(self) -> LimitsConfig:
        """The most that one window takes."""
        return self.limits

    @property
    def reads_standing_rows(self) -> bool:
        """Whether the first window reads the current table: also with `earliest` (HUDI-R3).

        A changelog from `earliest` has every write that the timeline still knows.
        """
        is_told = self.read.mode == "changelog" and self.start.kind == "earliest"
        return self.start.kind in {"full", "earliest"} and not is_told

    @model_validator(mode="after")
    def _fits(self) -> HudiSourceConfig:
        if self.split.order not in _ORDERS:
            problem = f"'{self.split.order}' belongs to sources of kind 'iceberg'"
            raise KeyProblem(problem, key="split.order")
        if self.on_cleaned == "snapshot" and self.read.emits_kinds:
            problem = (
                f"'snapshot' cannot tell what was deleted, which `read.mode: {self.read.mode}` "
                "promises; use 'fail', or a mode such as 'complete' or 'rebuild_partitions'"
            )
            raise KeyProblem(problem, key="on_cleaned")
        if self.read.mode == "snapshot" and self.start.kind != "full":
            problem = (
                "`read.mode: snapshot` reads a whole state of the table, without start or end; "
                "remove this key"
            )
            raise KeyProblem(problem, key="start")
        return self
