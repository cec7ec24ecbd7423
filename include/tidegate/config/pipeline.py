"""The configuration of one pipeline: its sections, and the rules that connect them."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from tidegate.config.commit import CommitConfig, EventTimeConfig, ExecuteConfig, GateConfig
from tidegate.config.environment import PLACEHOLDER
from tidegate.config.metastore import LISTED_FORMATS
from tidegate.config.partition_keys import identity_text
from tidegate.config.policies import MetastorePolicy
from tidegate.config.requirements import Surroundings, check_completeness
from tidegate.config.retention import RetentionConfig
from tidegate.config.s3 import S3Config
from tidegate.config.section import Section, overlap
from tidegate.config.sources import AnySource, SourceConfig, of_one_kind
from tidegate.config.target import RowRule, TargetConfig
from tidegate.config.target_kinds import TARGET_KINDS
from tidegate.config.words import KeyProblem, suggest
from tidegate.model.partition_value import INTERVALS, time_fields
from tidegate.model.row_kind import CHANGE_ORDINAL, CHANGE_TYPE

_OF_A_CHANGE = frozenset({CHANGE_TYPE, CHANGE_ORDINAL, "_partial"})
_OF_A_COMMIT = frozenset({"_commit_snapshot_id"})
_OUTSIDE_PLANS = frozenset(
    {
        *("path", "work", "compaction", "evolve", "metastore", "layout", "keep_revisions"),
        *("multipart_max_age",),
        *("table", "catalog", "branch", "on_foreign_change"),
    }
)
"""Keys of `target` that decide no staged byte."""
_PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
_CRON_FIELD = re.compile(r"[0-9A-Za-z*/,#?-]+")
_PATTERN_NAME = re.compile(r"\$(?=([^\W\d]\w*))")
_SECRET_KEY = re.compile(
    r"(?:password|secret|token|credential|authorization|account-key|connection-string)"
    r"(?!.*(?:enabled|expires|ur[il]$))",
    re.IGNORECASE,
)
"""Names of options of catalogs with secrets in them; no list is complete."""
_ADDRESS_SECRET = re.compile(r"://[^/@:]*:[^/@]+@")


def known_zone(name: str) -> str:
    """Return the name of a time zone.

    Raises:
        ValueError: there is none of this name.
    """
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as problem:
        near = suggest(name, sorted(zoneinfo.available_timezones()))
        hint = near if near.startswith("did") else "expected an IANA name such as Europe/Berlin"
        msg = f"unknown time zone '{name}'; {hint}"
        raise ValueError(msg) from problem
    return name


def _known_schedule(schedule: str | None) -> str | None:
    if schedule is None:
        return None
    if schedule.startswith("@"):
        if schedule not in _PRESETS:
            msg = f"unknown schedule '{schedule}'; {suggest(schedule, _PRESETS)}"
            raise ValueError(msg)
        return schedule
    fields = schedule.split()
    if len(fields) != 5 or not all(_CRON_FIELD.fullmatch(field) for field in fields):
        msg = f"expected five cron fields or one of {', '.join(_PRESETS)}, found '{schedule}'"
        raise ValueError(msg)
    _check_cron(schedule)
    return schedule


def _check_cron(schedule: str) -> None:
    """Check that there is a next time, with the library that Airflow asks for it."""
    from croniter import CroniterError, croniter

    try:
        croniter(schedule, datetime(2000, 1, 1, tzinfo=UTC)).get_next()
    except CroniterError as refused:
        msg = f"the cron expression '{schedule}' names no time: {refused}"
        raise ValueError(msg) from refused


def _wall_clock(found: Any) -> Any:
    if isinstance(found, date) and not isinstance(found, datetime):
        return datetime(found.year, found.month, found.day)  # noqa: DTZ001 (local to `timezone`)
    if isinstance(found, str):
        found = datetime.fromisoformat(found)
    if isinstance(found, datetime) and found.tzinfo is not None:
        msg = f"'{found}' has an offset; write the wall clock time of the pipeline's `timezone`"
        raise ValueError(msg)
    return found


WallClock = Annotated[datetime | None, BeforeValidator(_wall_clock)]

_SMALL_FILE = 64 << 10


def _check_late_root(path: str, target: TargetConfig) -> None:
    """Check that late rows are in no place that readers of the target list, nor the other way.

    Raises:
        KeyProblem: the late root overlaps target or work directory.
    """
    for key, place in (("target.path", target.path), ("target.work", target.work)):
        if "${env:" not in path + place and overlap(path, place):
            problem = (
                f"'{path}' overlaps `{key}`, '{place}': late rows need a root of their own, such "
                f"as '{target.path.rstrip('/')}_late'"
            )
            raise KeyProblem(problem, key="commit.late_data.side.path")


class DagConfig(Section):
    """The schedule of the load DAG, and its appearance in Airflow."""

    schedule: Annotated[str | None, AfterValidator(_known_schedule)] = "@daily"
    start_date: WallClock = None
    """Wall clock time in the pipeline's `timezone`."""
    end_date: WallClock = None
    owner: str = "tidegate"
    tags: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _in_order(self) -> DagConfig:
        if self.start_date and self.end_date and self.end_date < self.start_date:
            problem = f"{self.end_date} lies before start_date {self.start_date}"
            raise KeyProblem(problem, key="end_date")
        return self


class PipelineConfig(Section):
    """A pipeline as described by its file, with every default filled in."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")
    """The identity of the pipeline, and the prefix of its DAG ids."""
    timezone: Annotated[str, AfterValidator(known_zone)] = "UTC"
    """The time zone of partition values, partition times and schedule (PC-T22)."""
    dag: DagConfig = DagConfig()
    source: AnySource
    event_time: EventTimeConfig | None = None
    rows: tuple[RowRule, ...] = ()
    target: TargetConfig
    gate: GateConfig | None = None
    commit: CommitConfig = CommitConfig()
    execute: ExecuteConfig = ExecuteConfig()
    s3: S3Config = Field(S3Config(), exclude=True)
    """How the store of `s3://` is reached; no plan has it, because what is read does not depend on
    it."""
    retention: RetentionConfig = Field(RetentionConfig(), exclude=True)
    """Read when files are deleted, from the file as it is then; no plan has it."""
    _file: str = PrivateAttr("")

    def __eq__(self, other: object) -> bool:
        """Compare the content of the files, not their paths."""
        return isinstance(other, PipelineConfig) and self.resolved() == other.resolved()

    __hash__ = None  # type: ignore[assignment]

    @property
    def file(self) -> str:
        """Absolute path of the file that it was read from; empty if built from `resolved()`."""
        return self._file

    def resolved(self) -> dict[str, Any]:
        """Return the whole configuration, JSON-ready; `${env:NAME}` is not resolved."""
        return self.model_dump(mode="json", by_alias=True)

    @classmethod
    def from_resolved(cls, raw: Mapping[str, Any]) -> Self:
        """Build the configuration from the result of `resolved`, of this version or an earlier one.

        Raises:
            ValueError: this version does not know some of it.
        """
        return cls.model_validate({**raw, "source": of_one_kind(raw["source"])})

    @property
    def watermark_basis(self) -> str | None:
        """Return what the watermark is measured in; None: nothing."""
        return self.event_time.basis if self.event_time else None

    def identity(self) -> dict[str, str]:
        """Return the keys that must not change under one name: key → value as text (design §4)."""
        fields = self.target.partition_by
        return {
            "source": self.source.address,
            "target.path": self.target.root,
            "target.partition_by": ", ".join(
                f"{field.name}: {identity_text(field)}" for field in fields
            )
            or "none",
            "target.default_partition_name": self.target.default_partition_name,
            "timezone": self.timezone,
            "target.write": self.target.write,
            **({"target.keys": ", ".join(self.target.keys)} if self.target.keys else {}),
            **self.target.format_identity,
            **({"target.layout": self.target.layout} if self.target.layout != "in_place" else {}),
        }

    @property
    def unpublished(self) -> frozenset[str]:
        """Return the columns that are staged with changes and not published with rows."""
        if self.target.write != "upsert":
            return frozenset()
        listed = set(self.source.read.columns or ())
        return frozenset(_OF_A_CHANGE | (_OF_A_COMMIT - listed))

    @property
    def keeps_order(self) -> bool:
        """Whether the rows of a window are staged in the order of their commits.

        Otherwise the order in which the parts of a plan are read says nothing.
        """
        return self.target.write == "upsert"

    def plan_inputs(self) -> dict[str, Any]:
        """Return the keys that decide the staged bytes; only these change the plan digest."""
        whole = self.resolved()
        event_time = whole["event_time"]
        return {
            "timezone": whole["timezone"],
            "source": self.source.plan_inputs(),
            "event_time": event_time
            and {key: event_time[key] for key in ("column", "future_tolerance", "unit")},
            "rows": whole["rows"],
            "target": {
                key: item for key, item in whole["target"].items() if key not in _OUTSIDE_PLANS
            },
        }

    def notes(self) -> tuple[str, ...]:
        """Return warnings about valid settings that may surprise (PC-O90, PC-T21)."""
        return (*self._timing_notes(), *self._commit_notes())

    def _commit_notes(self) -> list[str]:
        notes = []
        size = self.target.rolling.file_size
        if not self.commit.policies:
            notes.append(
                "`commit.policies` is empty, so that no partition is published when it is "
                "complete; `[success-file]` publishes each"
            )
        if size < _SMALL_FILE:
            notes.append(
                f"`target.rolling.file_size` is {size} bytes, so that files have few rows; a size "
                "is written with its unit, as `128MiB`"
            )
        return notes

    def _timing_notes(self) -> list[str]:
        notes = []
        commit, fields = self.commit, self.target.partition_by
        made = time_fields(fields, self.event_time.column if self.event_time else None)
        if fields and commit.trigger == "process-time" and commit.delay == timedelta(0):
            notes.append(
                "`commit.trigger: process-time` with `delay: 0s` publishes a partition at the "
                "first load that touches it; rows that arrive later become further revisions"
            )
        if not commit.waits_for_watermark or not fields:
            return notes
        configured = commit.partition_time
        if not made and (configured is None or configured.interval is None):
            notes.append(
                "the time of a partition is read from its values (if they name none, it waits for "
                "ever; `commit.trigger: process-time` does not wait for it), and its length is "
                "unknown: `commit.delay` must contain it; set `commit.partition_time.interval` "
                "instead, which also follows clock changes"
            )
        column = self.event_time.column if self.event_time else None
        if made and column is not None and made[0].column != column:
            notes.append(
                f"partitions are made from `{made[0].column}`, but the watermark follows "
                f"`{column}`: it does not say when those partitions are complete"
            )
        return notes

    def _check_secrets(self) -> None:
        """Check that no secret would be stored in plans, where it can be read for ever."""
        addresses = {f"source.{key}": value for key, value in self.source.connection.items()}
        said = self.target.catalog.properties if self.target.catalog else {}
        addresses |= {f"target.catalog.{key}": value for key, value in said.items()}
        if self.commit.counts is not None and self.commit.counts.connection is not None:
            addresses["commit.counts.connection"] = self.commit.counts.connection
        for key, value in addresses.items():
            is_plain = not PLACEHOLDER.search(value)
            if is_plain and (_SECRET_KEY.search(key) or _ADDRESS_SECRET.search(value)):
                problem = (
                    "is written in plain text, and would be stored in plans; write `${env:NAME}` "
                    "and set the variable where the pipeline runs"
                )
                raise KeyProblem(problem, key=key)

    @field_validator("source")
    @classmethod
    def _start_in_zone(cls, source: SourceConfig, known: ValidationInfo) -> SourceConfig:
        """Read a start without a zone in the pipeline's, as bounds are on the command line."""
        start = source.start.in_zone(known.data.get("timezone", "UTC"))
        return source.model_copy(update={"start": start}) if start != source.start else source

    @model_validator(mode="before")
    @classmethod
    def _schedule_above(cls, found: Any) -> Any:
        if not isinstance(found, Mapping) or "schedule" not in found:
            return found
        made = dict(found)
        dag = made.get("dag") or {}
        if not isinstance(dag, Mapping) or "schedule" in dag:
            problem = "is short for `dag.schedule`; one of the two is enough"
            raise KeyProblem(problem, key="schedule")
        made["dag"] = {**dag, "schedule": made.pop("schedule")}
        return made

    @model_validator(mode="before")
    @classmethod
    def _shown_by_kind(cls, found: Any) -> Any:
        """Publish by the policy of the target's kind where the file names none."""
        target = found.get("target") if isinstance(found, Mapping) else None
        kind = TARGET_KINDS.get(target.get("kind", "")) if isinstance(target, Mapping) else None
        commit = found.get("commit") if kind is not None and kind.shown_by else ()
        if commit is None:
            commit = {}
        if kind is None or not isinstance(commit, Mapping) or "policies" in commit:
            return found
        return {**found, "commit": {**commit, "policies": [kind.shown_by]}}

    @model_validator(mode="after")
    def _parts_fit(self) -> PipelineConfig:
        self.target.reached_by(self.s3)
        names = [rule.name for rule in self.rows]
        for name in names:
            if names.count(name) > 1:
                problem = f"the rule '{name}' stands there twice"
                raise KeyProblem(problem, key="rows")
        self._check_secrets()
        self._check_late_data()
        self._check_kinds()
        self._check_upsert()
        self._check_columns()
        self._check_partition_time()
        self._check_metastore()
        self._check_layout()
        self._check_shown()
        judges = self.gate is not None or any(rule.on_failure == "hold" for rule in self.rows)
        column = self.event_time.column if self.event_time else None
        fields, write = self.target.partition_by, self.target.write
        check_completeness(self.commit, Surroundings(fields, column, judges, write))
        return self

    def _check_metastore(self) -> None:
        """Check that a metastore is named and used, and reads the files (PC-A10)."""
        target = self.target
        is_used = any(policy.word == MetastorePolicy.word for policy in self.commit.policies)
        if is_used and target.metastore is None:
            problem = (
                "'metastore' needs `target.metastore: {uri: thrift://…, table: database.table}`, "
                "or `{through: spark, table: database.table}`"
            )
            raise KeyProblem(problem, key="commit.policies")
        if target.metastore is None:
            return
        if not is_used:
            problem = "is used by no policy; write `commit.policies: [metastore, success-file]`"
            raise KeyProblem(problem, key="target.metastore")
        if target.format not in LISTED_FORMATS:
            problem = f"lists no {target.format} files; use {', '.join(LISTED_FORMATS)}"
            raise KeyProblem(problem, key="target.metastore")

    def _check_layout(self) -> None:
        """Check that something tells readers which directory of a partition counts."""
        writes_marker = any(policy.writes_marker for policy in self.commit.policies)
        if self.target.layout != "in_place" and not writes_marker:
            problem = (
                "'revisions' needs markers, which tell the directory that counts; write "
                "`commit.policies: [success-file]`, or end the others with it"
            )
            raise KeyProblem(problem, key="target.layout")

    def _check_shown(self) -> None:
        """Check that the policy that shows revisions is the one of the target's kind."""
        policies = [policy.word for policy in self.commit.policies]
        wanted = self.target.is_of_kind.shown_by
        for word in {kind.shown_by for kind in TARGET_KINDS.values()} - {wanted, None}:
            if word in policies:
                problem = f"'{word}' belongs to another kind of target than '{self.target.kind}'"
                raise KeyProblem(problem, key="commit.policies")
        if policies and wanted is not None and wanted not in policies:
            problem = (
                f"without '{wanted}', no reader of `kind: {self.target.kind}` finds what is "
                f"published; write `[{', '.join([wanted, *policies])}]`"
            )
            raise KeyProblem(problem, key="commit.policies")

    def _check_late_data(self) -> None:
        late, target = self.commit.late_data, self.target
        written: str = target.write
        if late.policy in {"hold", "side", "reject"} and written != "append":
            problem = (
                f"'{late.policy}' keeps late rows apart, which needs `target.write: append`; with "
                f"'{written}' use 'revise' or 'propose'"
            )
            raise KeyProblem(problem, key="commit.late_data")
        if late.policy != "revise" and not target.partition_by:
            problem = (
                f"'{late.policy}' needs `target.partition_by`: without partitions, all rows after "
                "the first publish are late"
            )
            raise KeyProblem(problem, key="commit.late_data")
        if late.side is not None:
            _check_late_root(late.side.path, target)

    def _check_kinds(self) -> None:
        read = self.source.read
        is_upsert = self.target.write == "upsert"
        if not is_upsert and read.emits_kinds and CHANGE_TYPE not in (read.columns or ()):
            key = "on_non_append" if read.mode == "append" else "mode"
            plainer = "skip" if read.mode == "append" else read.plainest_mode
            problem = (
                f"'{read.output_mode}' emits row kinds, which "
                f"`target.write: {self.target.write}` would publish "
                "as if every one were a new row; use `target.write: upsert`, which applies them, "
                "add `_change_type` to `source.read.columns`, so that readers can tell them apart, "
                f"or use '{plainer}'"
            )
            raise KeyProblem(problem, key=f"source.read.{key}")
        if read.repeats_keys and self.target.write == "append":
            problem = (
                f"'{read.mode}' returns an updated row again, which `target.write: append` would "
                "publish beside the old one; use `target.write: upsert` or 'snapshot', or set "
                "`source.read.keys_repeat: true` if that is wanted, as for a table that only gets "
                "new keys"
            )
            raise KeyProblem(problem, key="source.read.mode")
        if self.source.split.order == "event_time" and (
            self.event_time is None or self.event_time.column is None
        ):
            problem = "'event_time' needs the column under `event_time`"
            raise KeyProblem(problem, key="source.split.order")

    def _check_upsert(self) -> None:
        target, read = self.target, self.source.read
        if target.write != "upsert":
            return
        if read.returns_parts:
            problem = (
                f"'{read.mode}' also returns rows of which only some columns were written; use "
                f"'{read.plainest_upserts}', whose rows are whole"
            )
            raise KeyProblem(problem, key="source.read.mode")
        self._read_kinds()
        placed = {column for field in target.partition_by for column in field.columns}
        if placed.issubset(target.keys) or target.keys_stay or read.tells_moves:
            return
        modes = read.modes_that_tell_moves
        problem = (
            f"'{read.mode}' does not tell that a row moved to another partition, where the old one "
            f"would stay: {', '.join(sorted(placed - {*target.keys}))} may change. "
            f"{f'Use {modes}, partition' if modes else 'Partition'} by `target.keys`, or set "
            "`target.keys_stay: true` if no key ever moves"
        )
        raise KeyProblem(problem, key="source.read.mode")

    def _read_kinds(self) -> None:
        """Read what tells an upsert from a delete, and in which order they came."""
        read = self.source.read
        if read.columns is None or not read.emits_kinds:
            return
        offered = read.metadata_columns.get(read.output_mode, frozenset())
        needed = [name for name in (CHANGE_TYPE, CHANGE_ORDINAL) if name in offered]
        columns = tuple(dict.fromkeys((*read.columns, *needed)))
        completed = read.model_copy(update={"columns": columns})
        # A validator of the whole returns the same object; both are frozen for everybody else.
        self.__dict__["source"] = self.source.model_copy(update={"read": completed})

    def _check_columns(self) -> None:
        columns = self.source.read.columns
        if columns is None:
            return
        needed = [
            *((f"target.keys.{number}", key) for number, key in enumerate(self.target.keys)),
            *(
                (f"target.partition_by.{field.name}", column)
                for field in self.target.partition_by
                for column in field.columns
            ),
        ]
        if self.event_time and self.event_time.column is not None:
            needed.append(("event_time.column", self.event_time.column))
        needed += [("target.sort_by", key.column) for key in self.target.sort_by]
        for key, column in needed:
            if column not in columns:
                near = suggest(column, columns)
                problem = f"'{column}' is not among `source.read.columns`; {near}"
                raise KeyProblem(problem, key=key)

    def _check_partition_time(self) -> None:
        fields, commit = self.target.partition_by, self.commit
        if commit.waits_for_watermark and fields and self.event_time is None:
            problem = (
                "is required: the trigger 'partition-time' waits for the watermark of an event "
                "time; name its column, or set `commit.trigger: process-time`"
            )
            raise KeyProblem(problem, key="event_time")
        configured = commit.partition_time
        if configured is None:
            return
        made = [field for field in fields if field.transform in INTERVALS]
        if not fields:
            problem = "needs partition keys; `target.partition_by` names none"
            raise KeyProblem(problem, key="commit.partition_time")
        if made:
            problem = (
                f"is known from `{made[0].name}: {made[0].transform.value}({made[0].column})`; "
                "remove this key, it is for partition values taken from a column"
            )
            raise KeyProblem(problem, key="commit.partition_time")
        keys = [field.name for field in fields]
        pattern = configured.pattern or ""
        for found in _PATTERN_NAME.finditer(pattern):
            # A key may have characters that end a name elsewhere: `order-day`.
            if not pattern.startswith(tuple(keys), found.end()):
                problem = f"'${found[1]}' is no partition key; {suggest(found[1], keys)}"
                raise KeyProblem(problem, key="commit.partition_time.pattern")
