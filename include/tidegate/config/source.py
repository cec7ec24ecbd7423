"""The `source` part of a pipeline file: which table, from where on, read how."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    GetJsonSchemaHandler,
    model_serializer,
    model_validator,
)

from tidegate.config.section import (
    AnyPath,
    LocalPath,
    Section,
    Size,
    later,
    unique,
    words,
)
from tidegate.config.words import NOT_BUILT, KeyProblem, suggest
from tidegate.model.partition import DEFAULT_NAME

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

Kind = Literal["iceberg", "files"]
ReadMode = Literal["append", "snapshot"]
FailOrSkip = Literal["fail", "skip"]
FailOrIgnore = Literal["fail", "ignore"]
ReadSchema = Literal["table", "snapshot"]
SourceFormat = Literal["parquet"]
StartKind = Literal["full", "earliest", "latest", "after", "from"]

_EMITS_KINDS = (
    "emits row kinds, which `target.write: append` would publish as if every one were a new row; "
    f"use 'append' or 'snapshot' (reading row kinds {NOT_BUILT})"
)
_KIND_MODES = dict.fromkeys(
    ("changelog", "snapshot_diff", "with_deletes", "lineage_upserts"), _EMITS_KINDS
)
_REREAD = (
    "is not done: a changed file is never read again by itself; use 'fail' and `tidegate rebuild`"
)
_KEY_TYPES = ("string", "int", "long", "date", "timestamp", "boolean", "decimal(P,S)")
_DECIMAL = re.compile(r"decimal\((\d{1,2}),\s*(\d{1,2})\)")
_PLACES = {"iceberg": ("table", "metadata", "catalog"), "files": ("path", "partition_by")}


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


class Start(Section):
    """Where the first window begins: a word, or an instant whose side is said."""

    kind: StartKind = "full"
    value: str | None = None
    """The instant after which, or from which on, changes are read."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, found: Any) -> Any:
        if isinstance(found, Start):
            return found
        if isinstance(found, Mapping):
            if len(found) != 1 or next(iter(found)) not in {"after", "from"}:
                msg = "expected {after: INSTANT} or {from: INSTANT}"
                raise ValueError(msg)
            kind, value = next(iter(found.items()))
            text = value.isoformat() if isinstance(value, date | datetime) else str(value)
            return {"kind": kind, "value": text}
        word = str(found).strip().lower()
        if word in {"full", "earliest", "latest"}:
            return {"kind": word}
        if re.fullmatch(r"[\d:T.Z+ -]+", str(found)):
            msg = f"'{found}' does not say its side; write {{after: {found}}} or {{from: {found}}}"
        else:
            near = suggest(word, ("full", "earliest", "latest", "{after: X}", "{from: X}"))
            msg = f"unknown value '{found}'; {near}"
        raise ValueError(msg)

    @model_serializer
    def _write(self) -> str | dict[str, str]:
        return self.kind if self.value is None else {self.kind: self.value}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe the shapes in which it is written."""
        del core, handler
        sides = [
            {
                "type": "object",
                "properties": {side: {"type": ["string", "integer"]}},
                "required": [side],
                "additionalProperties": False,
            }
            for side in ("after", "from")
        ]
        return {
            "anyOf": [{"enum": ["full", "earliest", "latest"]}, *sides],
            "default": "full",
            "description": cls.__doc__,
        }


class ReadConfig(Section):
    """What of each commit is read."""

    mode: Annotated[ReadMode, words(ReadMode, _KIND_MODES)] = "append"
    on_non_append: Annotated[FailOrSkip, words(FailOrSkip, later("changelog"))] = "fail"
    """What a commit that deletes or replaces rows does to an append read (ICE-3.5)."""
    columns: Annotated[tuple[str, ...] | None, unique("column")] = Field(None, min_length=1)
    """Output columns in this order; all of the table's by default."""
    filter: str | None = None
    """SQL predicate; rows for which it is false or NULL are not read."""
    read_schema: Annotated[ReadSchema, words(ReadSchema)] | None = Field(None, alias="schema")
    """`table`: the current schema for all commits; `snapshot`: the head snapshot's (ICE-2.9)."""


class SplitConfig(Section):
    """How large the units of parallel reading are."""

    target_size: Size = 128 << 20
    open_cost: Size = 4 << 20
    """What opening a file costs, in bytes: keeps many tiny files from one split."""
    max_rows: int = Field(5_000_000, gt=0)
    """Most rows of a sub-split, the unit that is staged and resumed on its own."""


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
    """Prefix → prefix, applied where files are opened (ICE-4.17)."""
    on_changed_file: Annotated[FailOrIgnore, words(FailOrIgnore, {"reread": _REREAD})] = "fail"
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
        return made

    @model_validator(mode="after")
    def _place(self) -> SourceConfig:
        for kind, keys in _PLACES.items():
            for key in keys:
                if kind != self.kind and getattr(self, key):
                    problem = f"belongs to sources of kind '{kind}', not to '{self.kind}'"
                    raise KeyProblem(problem, key=key)
        if self.kind == "files":
            if self.path is None:
                problem = "is required: the root directory of the files"
                raise KeyProblem(problem, key="path")
        elif self.metadata is None:
            self._check_table()
        elif self.table is not None or self.catalog is not None:
            problem = "names the table already; leave out `catalog` and `table`"
            raise KeyProblem(problem, key="metadata")
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

    @property
    def address(self) -> str:
        """Say which table this is, in one line."""
        if self.kind == "files":
            return f"files {self.path}"
        if self.metadata is not None or self.catalog is None:
            # The table's directory: a newer metadata file of the same table is the same source.
            return f"iceberg {re.sub(r'/metadata/[^/]+[.]json$', '', self.metadata or '')}"
        return f"iceberg {self.catalog.name}.{self.table}"


def _split_table(table: Any) -> dict[str, str]:
    """Take the first of three or more parts as the catalog: `lake.raw.orders`."""
    if isinstance(table, str) and table.count(".") >= 2:
        catalog, _, rest = table.partition(".")
        return {"catalog": catalog, "table": rest}
    return {}
