"""What makes a partition complete besides its trigger: counts, a calendar, people (PC-C01)."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    ValidationInfo,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from tidegate.config.environment import PLACEHOLDER
from tidegate.config.section import (
    AnyPath,
    Duration,
    Section,
    absolute_path,
    folder_of,
    read_word,
    words,
)
from tidegate.config.sources import CatalogConfig, IcebergSourceConfig
from tidegate.config.words import KeyProblem, duration_text

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

Condition = Literal["trigger", "counts", "gate", "approval"]
OnEmpty = Literal["mark", "alarm", "ignore"]
DefaultTurn = Literal["never", "at_end"]

COUNT_FILES = (".csv", ".json", ".jsonl", ".ndjson", ".parquet")
"""Endings of files with upstream counts."""


def _conditions(found: Any) -> Any:
    if found is None:
        return None
    if not isinstance(found, list | tuple):
        msg = f"expected a list of {', '.join(get_args(Condition))}, found {found!r}"
        raise ValueError(msg)  # noqa: TRY004 (pydantic collects ValueError)
    read = tuple(read_word(item, get_args(Condition), {}) for item in found)
    doubled = [word for word in read if read.count(word) > 1]
    if doubled:
        msg = f"the condition '{doubled[0]}' stands there twice"
        raise ValueError(msg)
    if not read:
        msg = f"expected at least one of {', '.join(get_args(Condition))}; remove the key"
        raise ValueError(msg)
    # The order in which they are evaluated and shown.
    return tuple(word for word in get_args(Condition) if word in read)


Require = Annotated[
    tuple[Condition, ...] | None,
    BeforeValidator(_conditions),
    WithJsonSchema(
        {"type": ["array", "null"], "items": {"enum": list(get_args(Condition))}, "minItems": 1}
    ),
]


def _known_ending(path: str) -> str:
    if posixpath.splitext(path)[1].lower() not in COUNT_FILES:
        msg = f"expected a file that ends in {', '.join(COUNT_FILES)}, found '{path}'"
        raise ValueError(msg)
    return path


def _address(text: str) -> str:
    if "://" not in text and not PLACEHOLDER.search(text):
        # It may be a password that was written into the wrong place.
        msg = "expected the address of a database, such as `${env:AUDIT_URL}`"
        raise ValueError(msg)
    return text


def _table(text: str | None, info: ValidationInfo) -> str | None:
    return absolute_path(text, folder_of(info)) if text and "/" in text else text


class CountsConfig(Section):
    """The rows that every partition has upstream, from a query, a file or a table (PC-C03).

    It has a column for each partition key, with the key's name, and one other with the rows.
    """

    query: str | None = Field(None, min_length=1)
    """SQL, sent to `connection` once for all partitions."""
    connection: Annotated[str | None, AfterValidator(lambda it: it and _address(it))] = None
    """The address of a database as SQLAlchemy writes it; `${env:NAME}` keeps passwords out."""
    file: Annotated[AnyPath | None, AfterValidator(lambda it: it and _known_ending(it))] = None
    """A CSV, JSON, JSON lines or Parquet file, relative to the pipeline file."""
    table: Annotated[str | None, AfterValidator(_table)] = Field(None, min_length=1)
    """An Iceberg table, as in `source.table`, or the path of a folder of Parquet files."""
    catalog: CatalogConfig | None = None
    """The catalog of an Iceberg table, as in `source.catalog`."""
    threshold: float = Field(0.999, gt=0, le=1)
    """The least share of the upstream rows that a complete partition has."""
    complete_on_no_counts: bool = False
    """Whether a partition that the counts do not mention is complete."""

    @property
    def iceberg(self) -> IcebergSourceConfig | None:
        """The options of the Iceberg table that has the counts; None if none has."""
        if self.table is None or "/" in self.table:
            return None
        said = {"catalog": self.catalog.model_dump()} if self.catalog else {}
        return IcebergSourceConfig.model_validate({"kind": "iceberg", "table": self.table, **said})

    @model_validator(mode="after")
    def _one_place(self) -> CountsConfig:
        places = [name for name in ("query", "file", "table") if getattr(self, name) is not None]
        if not places:
            problem = "needs a `query`, a `file` or a `table` that has the rows of each partition"
            raise ValueError(problem)
        if len(places) > 1:
            problem = f"has another place beside it, `{places[0]}`; one of the two is enough"
            raise KeyProblem(problem, key=places[1])
        if self.query is not None and self.connection is None:
            problem = "is required: the address of the database that is asked, `${env:NAME}`"
            raise KeyProblem(problem, key="connection")
        if self.query is None and self.connection is not None:
            problem = "belongs to `query`"
            raise KeyProblem(problem, key="connection")
        if self.catalog is not None and (self.table is None or "/" in self.table):
            problem = "belongs to the name of an Iceberg table in `table`"
            raise KeyProblem(problem, key="catalog")
        is_name = self.table is not None and "/" not in self.table
        if is_name and self.catalog is None and "." not in str(self.table):
            problem = (
                f"'{self.table}' names no table; write `catalog.namespace.table`, or the path of a "
                "folder with a '/'"
            )
            raise KeyProblem(problem, key="table")
        return self


def _wall_clock(found: Any) -> Any:
    if isinstance(found, date) and not isinstance(found, datetime):
        return datetime(found.year, found.month, found.day)  # noqa: DTZ001 (local to `timezone`)
    if isinstance(found, str):
        try:
            found = datetime.fromisoformat(found)
        except ValueError as broken:
            msg = f"expected a date or time such as 2026-01-31 or 2026-01-31T12:00, found '{found}'"
            raise ValueError(msg) from broken
    if isinstance(found, datetime) and found.tzinfo is not None:
        msg = f"'{found}' has an offset; write the wall clock time of the pipeline's `timezone`"
        raise ValueError(msg)
    return found


LocalTime = Annotated[datetime, BeforeValidator(_wall_clock)]


def _texts(found: Any) -> Any:
    """Read the values of each key as texts; a single one needs no list."""
    if not isinstance(found, Mapping):
        return found
    return {key: _listed(item) for key, item in found.items()}


def _listed(found: Any) -> Any:
    listed = found if isinstance(found, list | tuple) else [found]
    for item in listed:
        if item is None or isinstance(item, bool | float | Mapping | list) or item == "":
            msg = f"expected texts or whole numbers, found {item!r}"
            raise ValueError(msg)
    texts = tuple(str(item) for item in listed)
    if len(set(texts)) < len(texts) or not texts:
        msg = f"expected values that differ, at least one, found {list(texts)}"
        raise ValueError(msg)
    return texts


class ExpectedConfig(Section):
    """A calendar of the partitions that have to come (PC-C04)."""

    start: LocalTime
    """The first partition begins then: wall clock time in the pipeline's `timezone`."""
    end: LocalTime | None = None
    """No partition that begins then, or later, is expected."""
    values: Annotated[dict[str, tuple[str, ...]], BeforeValidator(_texts)] = Field(
        default_factory=dict
    )
    """The values of partition keys that are no times: `{region: [eu, us]}`."""
    on_empty: Annotated[OnEmpty, words(OnEmpty)] = "alarm"
    """What happens to a partition that is due and has no rows. `mark`: it is published without
    files; `alarm`: it is shown as missing, and an alarm is raised once; `ignore`: nothing."""

    @model_validator(mode="after")
    def _in_order(self) -> ExpectedConfig:
        if self.end is not None and self.end <= self.start:
            problem = f"{self.end} does not lie after start {self.start}"
            raise KeyProblem(problem, key="end")
        return self


class DefaultPartition(Section):
    """When the partition of rows without a time is committed (PC-T17)."""

    at_end: bool = False
    """By `tidegate publish PIPELINE --final`."""
    after: Duration | None = Field(None, gt=timedelta(0))
    """This long after its first rows were seen."""

    @model_validator(mode="before")
    @classmethod
    def _word(cls, found: Any) -> Any:
        if isinstance(found, Mapping | cls):
            return found
        word = read_word(found, get_args(DefaultTurn), {"after": "is written {after: 2d}"})
        return {"at_end": word == "at_end"}

    @model_serializer
    def _shortest(self) -> Any:
        if self.after is not None:
            return {"after": duration_text(self.after)}
        return "at_end" if self.at_end else "never"

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe it by its words, and the one that has a duration."""
        after = {"type": ["string", "integer"], "examples": ["2d"]}
        return {
            "description": cls.__doc__,
            "anyOf": [
                {"enum": list(get_args(DefaultTurn))},
                {
                    "type": "object",
                    "properties": {"after": after},
                    "required": ["after"],
                    "additionalProperties": False,
                },
            ],
        }
