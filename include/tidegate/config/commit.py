"""The `event_time`, `gate`, `commit`, `execute` parts of a pipeline file: when and how."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    Field,
    GetJsonSchemaHandler,
    field_validator,
    model_validator,
)

from tidegate.config.completeness import (
    Condition,
    CountsConfig,
    DefaultPartition,
    ExpectedConfig,
    Require,
)
from tidegate.config.late_data import LateDataConfig
from tidegate.config.policies import (
    CLASS_NAME,
    Policy,
    PolicyConfig,
    SuccessFilePolicy,
)
from tidegate.config.section import (
    AnyPath,
    Duration,
    PartitionLength,
    Section,
    Size,
    words,
)
from tidegate.config.sparse import SparseSection
from tidegate.config.target import OWNER_FILE
from tidegate.config.time_format import TimeFormat
from tidegate.config.words import KeyProblem

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

WhenIdle = Literal["wait", "advance"]
GateEffect = Literal["hold", "fail", "warn"]
Trigger = Literal["partition-time", "process-time"]
Engine = Literal["auto", "spark", "local"]
MissingBounds = Literal["fail", "read_footer", "null"]
TimeUnit = Literal["us", "ms", "s", "ns"]
WatermarkFrom = Literal["event_time", "commit_time"]


def _in_order(policies: tuple[PolicyConfig, ...]) -> tuple[PolicyConfig, ...]:
    # PC-A02, design §4: a reader who sees the marker may rely on every other policy having run.
    for policy in policies[:-1]:
        if policy.writes_marker:
            msg = f"'{policy.word}' comes before another policy; the marker is written last"
            raise ValueError(msg)
    return policies


class EventTimeConfig(Section):
    """The time of an event, and how long to wait for other rows."""

    column: str | None = Field(None, min_length=1)
    """Required, unless the watermark follows commit times."""
    watermark_from: Annotated[WatermarkFrom, words(WatermarkFrom)] = "event_time"
    """`commit_time`: the watermark is the time of the last commit that was read completely; for
    tables without a usable column (PC-W03)."""
    lateness: Duration = timedelta(0)
    """Subtracted from the largest event time, or from the commit time (PC-W02, W03)."""
    future_tolerance: Duration = timedelta(0)
    """Event times further in the future do not move the watermark (design §7)."""
    idle_timeout: Duration | None = Field(None, gt=timedelta(0))
    when_idle: Annotated[WhenIdle, words(WhenIdle)] = "wait"
    """`advance`: an idle source moves the watermark to clock − `idle_timeout`."""
    on_missing_bounds: Annotated[MissingBounds, words(MissingBounds)] = "fail"
    """What happens if a plan needs bounds of the column and a file has none (ICE-5.10)."""
    unit: Annotated[TimeUnit, words(TimeUnit)] = "us"
    """The unit of a column of whole numbers, counted since 1970; other types have their own."""

    @property
    def basis(self) -> str:
        """Return what the watermark is measured in; a watermark of another basis does not count."""
        if self.watermark_from == "commit_time":
            return "commit times"
        return f"{self.column}" if self.unit == "us" else f"{self.column} ({self.unit})"

    @model_validator(mode="before")
    @classmethod
    def _column_alone(cls, found: Any) -> Any:
        if isinstance(found, str):
            return {"column": found}
        # YAML reads a bare `null` as nothing.
        if isinstance(found, Mapping) and found.get("on_missing_bounds", "") is None:
            return {**found, "on_missing_bounds": "null"}
        return found

    @model_validator(mode="after")
    def _has_column(self) -> EventTimeConfig:
        if self.column is None and self.watermark_from == "event_time":
            problem = "is required: the column that has the time of an event"
            raise KeyProblem(problem, key="column")
        return self

    @model_validator(mode="after")
    def _idle(self) -> EventTimeConfig:
        if self.when_idle == "advance" and self.idle_timeout is None:
            problem = (
                "is required for `when_idle: advance`: the time without data after which a source "
                "is idle"
            )
            raise KeyProblem(problem, key="idle_timeout")
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Accept the column alone, too."""
        return {"anyOf": [{"type": "string"}, handler.resolve_ref_schema(handler(core))]}


class ApprovalConfig(Section):
    """How long Airflow waits for a person's decision."""

    timeout: Duration = timedelta(hours=24)


class GateConfig(Section):
    """All checks on one partition as it would stand after the commit."""

    suite: AnyPath = Field(min_length=1)
    """The expectation suite, relative to the pipeline file."""
    on_failure: Annotated[GateEffect, words(GateEffect)] = "hold"
    """What happens if a critical expectation fails."""
    approval: ApprovalConfig = ApprovalConfig()
    pandas_limit: Size = 256 << 20
    """Size up to which a partition is checked with pandas; larger ones are checked with Spark."""


class PartitionTimeConfig(SparseSection):
    """How to read a time from partition values not made by `day()`, `hour()` or `month()`."""

    sparse: ClassVar[tuple[str, ...]] = ("extractor", "parameters")

    pattern: str | None = Field(None, min_length=1)
    """Text with `$key` for partition values; the first value alone by default (PC-T10)."""
    formatter: str | None = None
    """Letters of Java's DateTimeFormatter (PC-T15)."""
    lenient: bool = False
    """Let days and hours overflow as Flink does (PC-T14)."""
    interval: PartitionLength | None = None
    """The length of one partition in local time (PC-T20)."""
    extractor: str | None = Field(None, alias="class")
    """`module:Class` with a method `extract(keys, values)` that returns a local time (PC-T18)."""
    parameters: tuple[str, ...] = ()
    """Texts that the class is built with."""

    @model_validator(mode="after")
    def _one_way(self) -> PartitionTimeConfig:
        if self.extractor is None:
            if self.parameters:
                problem = "belongs to `class`"
                raise KeyProblem(problem, key="parameters")
            return self
        if not CLASS_NAME.fullmatch(self.extractor):
            problem = f"expected `module:Class`, found '{self.extractor}'"
            raise KeyProblem(problem, key="class")
        for name in ("pattern", "formatter", "lenient"):
            if getattr(self, name):
                problem = "decides nothing beside `class`, which returns the time itself"
                raise KeyProblem(problem, key=name)
        return self

    @field_validator("formatter")
    @classmethod
    def _letters(cls, formatter: str | None) -> str | None:
        if formatter is not None:
            TimeFormat.compile(formatter)
        return formatter


class MarkerConfig(Section):
    """The file that declares a partition complete."""

    name: str = "_SUCCESS"

    @field_validator("name")
    @classmethod
    def _hidden(cls, name: str) -> str:
        if not name.startswith(("_", ".")) or "/" in name or name in {".", ".."}:
            msg = f"expected one hidden name, with '_' or '.' at its start; found '{name}'"
            raise ValueError(msg)
        if name == OWNER_FILE:
            msg = f"'{name}' is the file that names the owner of the target; choose another name"
            raise ValueError(msg)
        return name


class CommitConfig(SparseSection):
    """When a partition is committed, and which policies run."""

    sparse: ClassVar[tuple[str, ...]] = ("require", "counts", "expected", "default_partition")

    trigger: Annotated[Trigger, words(Trigger)] = "partition-time"
    delay: Duration = timedelta(0)
    late_data: LateDataConfig = LateDataConfig.model_validate("revise")
    policies: Annotated[tuple[Policy, ...], AfterValidator(_in_order)] = (SuccessFilePolicy(),)
    """In this order; an empty list publishes nothing (PC-A01)."""
    partition_time: PartitionTimeConfig | None = None
    marker: MarkerConfig = MarkerConfig()
    require: Require = None
    """The conditions that all have to hold: `trigger`, `counts`, `gate`, `approval`. By default
    the trigger and everything that is configured; `approval` lets no revision pass without a
    person."""
    counts: CountsConfig | None = None
    """The rows that a complete partition has."""
    expected: ExpectedConfig | None = None
    """A calendar of the partitions that have to come."""
    default_partition: DefaultPartition = DefaultPartition()
    """When the partition of rows without a time is committed: `never` by itself, `at_end` of the
    source, or `{after: 2d}` since its first rows were seen."""

    @property
    def waits_for_watermark(self) -> bool:
        """Whether a partition waits until the event time has passed its end."""
        return self.trigger == "partition-time" and self.requires("trigger")

    def requires(self, condition: Condition) -> bool:
        """Return whether a partition is committed only if this condition holds (PC-C01).

        A gate judges where there is one, whatever is said here.
        """
        if self.require is not None:
            return condition in self.require
        return condition == "trigger" or (condition == "counts" and self.counts is not None)


class ExecuteConfig(Section):
    """Where data is read and written."""

    engine: Annotated[Engine, words(Engine)] = "auto"
    local_below: Size = 64 << 20
    """`auto` reads less than this in process, and more on Spark."""
    workers: int | None = Field(None, gt=0)
    """Local threads; the cores of the machine by default."""
    claim_timeout: Duration = Field(timedelta(minutes=2), gt=timedelta(0))
    """How long a run keeps a window or partition without renewing its claim, by the ledger's clock.

    Long steps renew three times as often. An Airflow run keeps what it holds until it has ended.
    """
