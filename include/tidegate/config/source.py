"""The `source` part of a pipeline file: which table, from where on, read how."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    GetJsonSchemaHandler,
    model_serializer,
    model_validator,
)

from tidegate.config.bounds import EpochMillis, Point, Start
from tidegate.config.reading import LimitsConfig, ReadConfig, SplitConfig
from tidegate.config.section import AnyPath, LocalPath, Section, later, words
from tidegate.config.words import KeyProblem, suggest
from tidegate.model.partition import DEFAULT_NAME

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

Kind = Literal["iceberg", "files"]
FailOrSkip = Literal["fail", "skip"]
FailOrIgnore = Literal["fail", "ignore"]
FailOrOldest = Literal["fail", "oldest"]
OffLineage = Literal["fail", "snapshot_diff", "reset"]
ExpiredCursor = Literal["fail", "snapshot_diff", "lineage_upserts", "full_reload", "from_oldest"]
CursorProtection = Literal["none", "tag"]
PathMatch = Literal["scheme_insensitive", "exact"]
SourceFormat = Literal["parquet"]

_REREAD = (
    "is not done: a changed file is never read again by itself; use 'fail' and `tidegate rebuild`"
)
_KEY_TYPES = ("string", "int", "long", "date", "timestamp", "boolean", "decimal(P,S)")
_DECIMAL = re.compile(r"decimal\((\d{1,2}),\s*(\d{1,2})\)")
_PLACES = {"iceberg": ("table", "metadata", "catalog"), "files": ("path", "partition_by")}
_SELECTIONS = ("snapshot_id", "tag", "branch", "as_of_timestamp")
_ICEBERG_KEYS = (
    *_SELECTIONS,
    "end",
    "on_truncated_history",
    "on_off_lineage",
    "on_expired_cursor",
    "protect_cursor",
    "path_match",
    "assume_names",
    "case_sensitive",
    "max_planning_failures",
    "limits",
)


def _whole_files_regex(pattern: str | None) -> str | None:
    try:
        re.compile(pattern or "")
    except re.error as problem:
        msg = f"'{pattern}' is no regular expression: {problem}"
        raise ValueError(msg) from problem
    return pattern


def _key_type(text: str) -> str:
    word = text.strip().lower()
    decimal = _DECIMAL.fullmatch(word)
    if (
        decimal
        and 1 <= int(decimal.group(1)) <= 38
        and int(decimal.group(2)) <= int(decimal.group(1))
    ):
        return f"decimal({int(decimal.group(1))},{int(decimal.group(2))})"
    if word not in _KEY_TYPES:
        msg = f"unknown type '{text}'; {suggest(word, _KEY_TYPES)}"
        raise ValueError(msg)
    return word


class CatalogConfig(Section):
    """An Iceberg catalog: a name, and the properties that pyiceberg takes.

    Without properties the name means a catalog of pyiceberg's own configuration.
    """

    name: str
    properties: dict[str, str] = Field(default_factory=dict)
    """Further keys as they stand: `uri`, `warehouse`, `type`, …; secrets as `${env:NAME}`."""

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, found: Any) -> Any:
        if isinstance(found, str):
            return {"name": found}
        if not isinstance(found, Mapping):
            return found
        rest = {key: value for key, value in found.items() if key != "name"}
        for key, value in rest.items():
            if not isinstance(value, str | int | float):
                problem = f"expected text, found {value!r}"
                raise KeyProblem(problem, key=str(key))
        named = {"name": found["name"]} if "name" in found else {}
        return {**named, "properties": {key: _property(value) for key, value in rest.items()}}

    @model_serializer
    def _flat(self) -> dict[str, str]:
        return {"name": self.name, **self.properties}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe the shapes in which it is written: a name, or a mapping with further keys."""
        del core, handler
        mapping = {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        }
        return {"anyOf": [{"type": "string"}, mapping], "description": cls.__doc__}


def _property(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class InstantTime(Section):
    """Where the time of an instant stands, if not in its commit time (design §2)."""

    summary: str
    """Key of the snapshot summary that holds an ISO time."""


class SourceConfig(Section):
    """Where changes come from."""

    kind: Annotated[Kind, words(Kind, later("hudi"))]
    catalog: CatalogConfig | None = None
    table: str | None = None
    """`namespace.table`, or `catalog.namespace.table` without `catalog`."""
    metadata: AnyPath | None = None
    """A metadata file or table directory, instead of catalog and table."""
    path: LocalPath | None = None
    format: Annotated[SourceFormat, words(SourceFormat, later("orc", "csv", "json"))] = "parquet"
    partition_by: dict[str, Annotated[str, AfterValidator(_key_type)]] = Field(default_factory=dict)
    """Keys of a file table's directories with their types, in path order (PC-R03)."""
    start: Start = Field(default_factory=lambda: Start.model_validate("full"))
    read: ReadConfig = ReadConfig()
    split: SplitConfig = SplitConfig()
    instant_time: InstantTime | None = None
    location_rewrite: dict[str, str] = Field(default_factory=dict)
    """Prefix → prefix, the longest match first, applied where files are opened (ICE-4.17)."""
    branch: str | None = Field(None, min_length=1)
    """Read this branch; `main` by default (ICE-2.10)."""
    snapshot_id: int | None = None
    """Read the table as it stood at this snapshot (ICE-2.7)."""
    tag: str | None = Field(None, min_length=1)
    """Read the table as it stood at this tag; a tag that was moved is read again."""
    as_of_timestamp: EpochMillis | None = None
    """Read the table as it stood then, by its snapshot log (ICE-2.8)."""
    end: Point | None = None
    """Read up to and including this snapshot, tag or time, and nothing after it (ICE-2.12)."""
    on_truncated_history: Annotated[FailOrOldest, words(FailOrOldest)] = "fail"
    """What a start time before everything retained does: `oldest` starts there (ICE-2.14)."""
    on_off_lineage: Annotated[OffLineage, words(OffLineage)] = "fail"
    """What a rollback or a replaced branch does: `snapshot_diff` publishes the difference, `reset`
    begins anew as `start` says (ICE-2.18). `mode: snapshot_diff` defaults to its own."""
    on_expired_cursor: Annotated[ExpiredCursor, words(ExpiredCursor)] = "fail"
    """What a checkpoint does that was expired, or cut off by an expired snapshot (ICE-2.18).
    `mode: snapshot_diff` and `mode: lineage_upserts` default to their own."""
    protect_cursor: Annotated[CursorProtection, words(CursorProtection)] = "none"
    """`tag` keeps the checkpoint's snapshot from being expired by the tag `tidegate-<pipeline>`:
    the only thing ever written to the source (ICE-2.23)."""
    path_match: Annotated[PathMatch, words(PathMatch)] = "scheme_insensitive"
    """How position deletes find their data files: with or without scheme and bucket (ICE-4.14)."""
    assume_names: bool = False
    """Match the columns of files without field ids by name (ICE-6.14)."""
    case_sensitive: bool = False
    """Whether names in `read.filter` and `read.columns` tell upper from lower case."""
    max_planning_failures: int = Field(3, ge=-1)
    """How often what a catalog or store does not answer is asked again while planning; -1: for
    ever (ICE-2.24)."""
    limits: LimitsConfig = LimitsConfig()
    on_changed_file: Annotated[FailOrIgnore, words(FailOrIgnore, {"reread": _REREAD})] = "fail"
    """What to do about a file that was taken in and changed, vanished, or came back otherwise; a
    path is new once, so names must not be used again (PC-R07)."""
    on_bad_path: Annotated[FailOrSkip, words(FailOrSkip)] = "fail"
    path_regex: Annotated[str | None, AfterValidator(_whole_files_regex)] = None
    """Full match on the absolute path of a file (PC-O06)."""
    default_partition_name: str = Field(DEFAULT_NAME, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _shorthands(cls, found: Any) -> Any:
        if not isinstance(found, Mapping):
            return found
        made = dict(found)
        if made.get("kind") == "iceberg" and made.get("catalog") is None:
            made |= _split_table(made.get("table"))
        if "read_schema" in made:
            read = made.get("read") or {}
            if "schema" in read:
                problem = "is `read.schema` written shorter; one of the two is enough"
                raise KeyProblem(problem, key="read_schema")
            made["read"] = {**read, "schema": made.pop("read_schema")}
        return _with_mode_defaults(made)

    @model_validator(mode="after")
    def _place(self) -> SourceConfig:
        for kind, keys in _PLACES.items():
            for key in keys:
                if kind != self.kind and getattr(self, key):
                    problem = f"belongs to sources of kind '{kind}', not to '{self.kind}'"
                    raise KeyProblem(problem, key=key)
        if self.kind == "files":
            self._check_files_keys()
            if self.path is None:
                problem = "is required: the root directory of the files"
                raise KeyProblem(problem, key="path")
        elif self.metadata is None:
            self._check_table()
        elif self.table is not None or self.catalog is not None:
            problem = "names the table already; leave out `catalog` and `table`"
            raise KeyProblem(problem, key="metadata")
        return self

    @model_validator(mode="after")
    def _selection(self) -> SourceConfig:
        chosen = [key for key in _SELECTIONS if getattr(self, key) is not None]
        if len(chosen) > 1:
            problem = f"and `{chosen[0]}` each say what to read; leave out one of the two (ICE-2.7)"
            raise KeyProblem(problem, key=chosen[1])
        fixed = next((key for key in chosen if key != "branch"), None)
        if fixed and self.read.mode != "snapshot":
            problem = (
                f"'{self.read.mode}' reads windows of commits, and `source.{fixed}` names one "
                "state of the table; leave out one of the two, or use 'snapshot'"
            )
            raise KeyProblem(problem, key="read.mode")
        if self.read.mode == "snapshot":
            self._check_snapshot_keys(fixed)
        if self.kind == "iceberg":
            self.read.check_metadata_columns()
        if self.start.kind == "latest_inclusive" and self.kind != "iceberg":
            problem = "'latest_inclusive' belongs to sources of kind 'iceberg'"
            raise KeyProblem(problem, key="start")
        return self

    def _check_snapshot_keys(self, fixed: str | None) -> None:
        reason = f"`{fixed}` names" if fixed else "`read.mode: snapshot` reads"
        problem = f"{reason} a whole state of the table, without start or end; remove this key"
        if self.start.kind != "full":
            raise KeyProblem(problem, key="start")
        if self.end is not None and fixed:
            raise KeyProblem(problem, key="end")
        problem = "belongs to modes that read changes; 'snapshot' needs no checkpoint in the table"
        for key in ("on_off_lineage", "on_expired_cursor", "protect_cursor"):
            if getattr(self, key) != SourceConfig.model_fields[key].default:
                raise KeyProblem(problem, key=key)

    @model_validator(mode="after")
    def _policies(self) -> SourceConfig:
        for key in ("on_off_lineage", "on_expired_cursor"):
            policy = getattr(self, key)
            if policy in {"snapshot_diff", "lineage_upserts"} and not self.read.emits_kinds:
                problem = (
                    f"'{policy}' gives rows of several kinds, which `read.mode: {self.read.mode}` "
                    "has no column for; use `read.mode: changelog`, or another policy"
                )
                raise KeyProblem(problem, key=key)
            if policy == "snapshot_diff" and self.read.mode == "lineage_upserts":
                problem = (
                    "'snapshot_diff' gives deletes, which `read.mode: lineage_upserts` never does; "
                    "use `read.mode: changelog`, or another policy"
                )
                raise KeyProblem(problem, key=key)
        if self.protect_cursor == "tag" and self.metadata is not None:
            problem = (
                "'tag' writes to the table, which needs a catalog; static metadata is only read"
            )
            raise KeyProblem(problem, key="protect_cursor")
        return self

    def _check_files_keys(self) -> None:
        for key in _ICEBERG_KEYS:
            field = SourceConfig.model_fields[key]
            if getattr(self, key) != field.default:
                problem = "belongs to sources of kind 'iceberg', not to 'files'"
                raise KeyProblem(problem, key=key)
        if self.read.emits_kinds:
            problem = (
                f"'{self.read.output_mode}' belongs to sources of kind 'iceberg'; use 'append'"
            )
            raise KeyProblem(problem, key="read.mode")
        if self.split.order not in {"none", "path"}:
            problem = f"'{self.split.order}' belongs to sources of kind 'iceberg'"
            raise KeyProblem(problem, key="split.order")

    def _check_table(self) -> None:
        if self.table is None:
            problem = "is required: `namespace.table` of the catalog, or `metadata` in its place"
            raise KeyProblem(problem, key="table")
        if self.catalog is None:
            problem = (
                f"'{self.table}' names no catalog; write `catalog.namespace.table`, "
                "or name the catalog under `source.catalog`"
            )
            raise KeyProblem(problem, key="table")
        if "." not in self.table.strip(".") or not all(self.table.split(".")):
            problem = f"expected `namespace.table`, found '{self.table}'"
            raise KeyProblem(problem, key="table")

    @property
    def whole_branch(self) -> SourceConfig:
        """The same source with all of its branch, instead of one state or what an end leaves."""
        selected = ("snapshot_id", "tag", "as_of_timestamp", "end")
        return self.model_copy(update=dict.fromkeys(selected))

    @property
    def address(self) -> str:
        """Return which table this is, in one line."""
        if self.kind == "files":
            return f"files {self.path}"
        branch = f" branch {self.branch}" if self.branch not in {None, "main"} else ""
        if self.metadata is not None or self.catalog is None:
            # The table's directory: a newer metadata file of the same table is the same source.
            return f"iceberg {re.sub(r'/metadata/[^/]+[.]json$', '', self.metadata or '')}{branch}"
        return f"iceberg {self.catalog.name}.{self.table}{branch}"


def _split_table(table: Any) -> dict[str, str]:
    """Take the first of three or more parts as the catalog: `lake.raw.orders`."""
    if isinstance(table, str) and table.count(".") >= 2:
        catalog, _, rest = table.partition(".")
        return {"catalog": catalog, "table": rest}
    return {}


def _with_mode_defaults(said: dict[str, Any]) -> dict[str, Any]:
    """Fill in what the read mode, or a selected snapshot, says without being asked."""
    read = said.get("read") or {}
    if not isinstance(read, Mapping):
        return said
    if any(said.get(key) is not None for key in ("snapshot_id", "tag", "as_of_timestamp")):
        read = {"mode": "snapshot", **read}
        said = {**said, "read": read}
    mode = str(read.get("mode", "append")).strip().lower().replace("-", "_")
    if mode == "snapshot_diff":
        # It compares two states; whether they lie on one lineage makes no difference to it.
        return {"on_off_lineage": mode, "on_expired_cursor": mode, **said}
    return {"on_expired_cursor": mode, **said} if mode == "lineage_upserts" else said
