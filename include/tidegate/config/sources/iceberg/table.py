"""The options of an Iceberg table: which one, which state, and what to do about lost history."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tidegate.config.bounds import EpochMillis, Point
from tidegate.config.reading import LimitsConfig, TableReadConfig
from tidegate.config.section import AnyPath, Section, is_in_store, words
from tidegate.config.sources.every_kind import SourceConfig
from tidegate.config.sources.iceberg.catalog import CatalogConfig
from tidegate.config.words import KeyProblem

if TYPE_CHECKING:
    from tidegate.config.sources.every_kind import Names

FailOrOldest = Literal["fail", "oldest"]
OffLineage = Literal["fail", "snapshot_diff", "reset"]
ExpiredCursor = Literal["fail", "snapshot_diff", "lineage_upserts", "full_reload", "from_oldest"]
CursorProtection = Literal["none", "tag"]
PathMatch = Literal["scheme_insensitive", "exact"]

_METADATA_FILE = re.compile(r"/metadata/[^/]+[.]json$")
_SELECTIONS = ("snapshot_id", "tag", "branch", "as_of_timestamp")
_CHECKPOINT_KEYS = ("on_off_lineage", "on_expired_cursor", "protect_cursor")


class InstantTime(Section):
    """Where to find the time of an instant, if it is not the commit time (design §2)."""

    summary: str
    """The key of the snapshot summary that has an ISO time."""


class IcebergSourceConfig(SourceConfig):
    """The source of changes: an Iceberg table."""

    outside_plans: ClassVar[frozenset[str]] = SourceConfig.outside_plans | {
        # The pinned identity says which table it is; these keys only say how to find and open it.
        "catalog",
        "table",
        "metadata",
        "location_rewrite",
        "instant_time",
        # What these keys decide is part of the window: which commits it covers, and how it was
        # taken.
        *_SELECTIONS,
        "end",
        "limits",
        "on_truncated_history",
        "protect_cursor",
        "max_planning_failures",
    }

    table_marks: ClassVar[frozenset[str]] = frozenset({"metadata"})

    kind: Literal["iceberg"]
    read: TableReadConfig = TableReadConfig()
    catalog: CatalogConfig | None = None
    table: str | None = None
    """`namespace.table`, or `catalog.namespace.table` without `catalog`."""
    metadata: AnyPath | None = None
    """A metadata file or table directory, instead of catalog and table."""
    instant_time: InstantTime | None = None
    location_rewrite: dict[str, str] = Field(default_factory=dict)
    """Prefix → prefix, the longest match first, applied when files are opened (ICE-4.17)."""
    branch: str | None = Field(None, min_length=1)
    """Read this branch; `main` by default (ICE-2.10)."""
    snapshot_id: int | None = None
    """Read the table as of this snapshot (ICE-2.7)."""
    tag: str | None = Field(None, min_length=1)
    """Read the table as of this tag; if the tag is moved, the table is read again."""
    as_of_timestamp: EpochMillis | None = None
    """Read the table as of this time, by its snapshot log (ICE-2.8)."""
    end: Point | None = None
    """Read up to and including this snapshot, tag or time, and nothing after it (ICE-2.12)."""
    on_truncated_history: Annotated[FailOrOldest, words(FailOrOldest)] = "fail"
    """For a start time before all that is retained: `oldest` starts there (ICE-2.14)."""
    on_off_lineage: Annotated[OffLineage, words(OffLineage)] = "fail"
    """What to do after a rollback or a replaced branch: `snapshot_diff` publishes the difference,
    `reset` begins again at `start` (ICE-2.18). `mode: snapshot_diff` defaults to
    `snapshot_diff`."""
    on_expired_cursor: Annotated[ExpiredCursor, words(ExpiredCursor)] = "fail"
    """What to do if the checkpoint was expired, or cut off by an expired snapshot (ICE-2.18).
    `mode: snapshot_diff` and `mode: lineage_upserts` default to the value of the same name."""
    protect_cursor: Annotated[CursorProtection, words(CursorProtection)] = "none"
    """`tag` protects the checkpoint's snapshot from expiry with the tag `tidegate-<pipeline>`;
    nothing else is ever written to the source (ICE-2.23)."""
    path_match: Annotated[PathMatch, words(PathMatch)] = "scheme_insensitive"
    """How position deletes find their data files: with or without scheme and bucket (ICE-4.14)."""
    assume_names: bool = False
    """Match the columns of files without field ids by name (ICE-6.14)."""
    case_sensitive: bool = False
    """Whether names in `read.filter` and `read.columns` are case-sensitive."""
    max_planning_failures: int = Field(3, ge=-1)
    """How often a request to a catalog or store is repeated while planning if it is not answered;
    -1: without limit (ICE-2.24)."""
    limits: LimitsConfig = LimitsConfig()

    @property
    def address(self) -> str:
        """The name of the table, in one line."""
        branch = f" branch {self.branch}" if self.branch not in {None, "main"} else ""
        if self.metadata is not None or self.catalog is None:
            # The table's directory: a newer metadata file of the same table is the same source.
            return f"iceberg {_METADATA_FILE.sub('', self.metadata or '')}{branch}"
        return f"iceberg {self.catalog.name}.{self.table}{branch}"

    @classmethod
    def meant_by(cls, table: str) -> dict[str, str] | None:
        """Accept a metadata file, the directory of a table, or a name with dots."""
        path = Path(table)
        if table.endswith(".json") or (path / "metadata").is_dir():
            place = table if is_in_store(table) else str(path.absolute())
            return {"kind": "iceberg", "metadata": place}
        if path.is_dir() or "/" in table:
            return None
        return {"kind": "iceberg", "table": table}

    @classmethod
    def is_of_table(cls, folder: str, names: Names) -> bool:
        """Recognise the folder of a table by its metadata files (ICE-2.1)."""
        found = names.list_names(f"{folder}/metadata")
        return any(name == "version-hint.text" or name.endswith(".metadata.json") for name in found)

    @property
    def known_places(self) -> tuple[str, ...]:
        """The table's directory, if the pipeline file names it."""
        return (_METADATA_FILE.sub("", self.metadata),) if self.metadata else ()

    @property
    def connection(self) -> Mapping[str, str]:
        """The properties of the catalog."""
        said = self.catalog.properties if self.catalog else {}
        return {f"catalog.{key}": value for key, value in said.items()}

    @property
    def whole_history(self) -> Self:
        """The same source with all of its branch, without a selected state or end."""
        selected = ("snapshot_id", "tag", "as_of_timestamp", "end")
        return self.model_copy(update=dict.fromkeys(selected))

    @property
    def window_limits(self) -> LimitsConfig:
        """The most that one window takes."""
        return self.limits

    @property
    def reads_standing_rows(self) -> bool:
        """Whether the first window reads the current table."""
        return self.start.kind == "full"

    @property
    def tells_case(self) -> bool:
        """Whether names in `read.filter` are case-sensitive."""
        return self.case_sensitive

    def from_the_beginning(self) -> Self:
        """Return the same source, read from its oldest retained snapshot on.

        Any two retained states can be compared, whatever the history between them.
        """
        made = super().from_the_beginning()
        mode = self.read.mode
        if mode != "snapshot_diff":
            return made
        return made.model_copy(update={"on_off_lineage": mode, "on_expired_cursor": mode})

    @model_validator(mode="before")
    @classmethod
    def _shorthands(cls, found: Any) -> Any:
        if not isinstance(found, Mapping):
            return found
        made = dict(found)
        if made.get("catalog") is None:
            made |= _split_table(made.get("table"))
        return _with_mode_defaults(made)

    @model_validator(mode="after")
    def _place(self) -> IcebergSourceConfig:
        if self.metadata is None:
            self._check_table()
        elif self.table is not None or self.catalog is not None:
            problem = "names the table already; leave out `catalog` and `table`"
            raise KeyProblem(problem, key="metadata")
        return self

    @model_validator(mode="after")
    def _selection(self) -> IcebergSourceConfig:
        chosen = [key for key in _SELECTIONS if getattr(self, key) is not None]
        if len(chosen) > 1:
            problem = f"and `{chosen[0]}` both select what to read; remove one of the two"
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
        self.read.check_metadata_columns()
        return self

    def _check_snapshot_keys(self, fixed: str | None) -> None:
        reason = f"`{fixed}` names" if fixed else "`read.mode: snapshot` reads"
        problem = f"{reason} a whole state of the table, without start or end; remove this key"
        if self.start.kind != "full":
            raise KeyProblem(problem, key="start")
        if self.end is not None and fixed:
            raise KeyProblem(problem, key="end")
        problem = "belongs to modes that read changes; 'snapshot' needs no checkpoint in the table"
        for key in _CHECKPOINT_KEYS:
            if getattr(self, key) != type(self).model_fields[key].default:
                raise KeyProblem(problem, key=key)

    @model_validator(mode="after")
    def _policies(self) -> IcebergSourceConfig:
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


def _split_table(table: Any) -> dict[str, str]:
    """Return the first of three or more parts as the catalog: `lake.raw.orders`."""
    if isinstance(table, str) and table.count(".") >= 2:
        catalog, _, rest = table.partition(".")
        return {"catalog": catalog, "table": rest}
    return {}


def _with_mode_defaults(said: dict[str, Any]) -> dict[str, Any]:
    """Fill in defaults that follow from the read mode or a selected snapshot."""
    read = said.get("read") or {}
    if not isinstance(read, Mapping):
        return said
    if any(said.get(key) is not None for key in ("snapshot_id", "tag", "as_of_timestamp")):
        read = {"mode": "snapshot", **read}
        said = {**said, "read": read}
    mode = str(read.get("mode", "append")).strip().lower().replace("-", "_")
    if mode == "snapshot_diff":
        # It compares two states, which need not be on one lineage.
        return {"on_off_lineage": mode, "on_expired_cursor": mode, **said}
    return {"on_expired_cursor": mode, **said} if mode == "lineage_upserts" else said
