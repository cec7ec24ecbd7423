"""The options of a directory of plain files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from tidegate.config.column_types import parse_type
from tidegate.config.reading import TableReadConfig
from tidegate.config.section import StorePath, is_in_store, unique, words
from tidegate.config.sources.every_kind import SourceConfig
from tidegate.config.sources.text_files import (
    ColumnTypes,
    CsvConfig,
    MetadataWord,
    RequiredMarker,
)
from tidegate.config.words import KeyProblem, suggest
from tidegate.model.partition import DEFAULT_NAME

FailOrSkip = Literal["fail", "skip"]
FailOrIgnore = Literal["fail", "ignore"]
SourceFormat = Literal["parquet", "orc", "avro", "csv", "json"]

TEXT_FORMATS = frozenset({"csv", "json"})
"""Formats whose files do not tell the types of their columns."""
_METADATA_COLUMNS = {
    "file.path": "_file_path",
    "file.name": "_file_name",
    "file.size": "_file_size",
    "file.modification-time": "_file_modification_time",
}
_LATER_KEYS = ("columns", "csv", "metadata_columns", "require_marker")
"""Keys that are left out of what is stored unless they are set: earlier plans did not have them."""

_REREAD = (
    "is not supported: a changed file is never read again automatically; use 'fail' and `tidegate "
    "rebuild`"
)
_KEY_TYPES = ("string", "int", "long", "date", "timestamp", "boolean", "decimal(P,S)")
_DECIMAL = re.compile(r"decimal\((\d{1,2}),\s*(\d{1,2})\)")
_ORDERS = frozenset({"none", "path"})


def _whole_files_regex(pattern: str | None) -> str | None:
    try:
        re.compile(pattern or "")
    except re.error as problem:
        msg = f"'{pattern}' is not a regular expression: {problem}"
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


class FilesReadConfig(TableReadConfig):
    """Which rows and columns of plain files are read."""

    @property
    def tells_moves(self) -> bool:
        """Never: the files of a folder may have the same key several times, also all at once."""
        return False

    @property
    def modes_that_tell_moves(self) -> None:
        """None: only tables have rows of what was there before."""


class FilesSourceConfig(SourceConfig):
    """The source of changes: a directory of plain files."""

    # `path` is part of the pinned identity; the files of a listing are part of the window.
    outside_plans: ClassVar[frozenset[str]] = SourceConfig.outside_plans | {
        "path",
        "on_changed_file",
        "on_bad_path",
        "path_regex",
        "require_marker",
    }

    kind: Literal["files"]
    read: FilesReadConfig = FilesReadConfig()
    path: StorePath
    """The root directory of the files."""
    format: Annotated[SourceFormat, words(SourceFormat)] = "parquet"
    """Of all files that are read; `json` is one object per line (PC-O01)."""
    columns: ColumnTypes | None = Field(None, min_length=1)
    """The columns of CSV and JSON files with their types, as in Spark; by default, those that the
    first files seem to have."""
    csv: CsvConfig | None = None
    """How the rows of CSV files are written."""
    partition_by: dict[str, Annotated[str, AfterValidator(_key_type)]] = Field(default_factory=dict)
    """The partition keys of the directories with their types, in path order (PC-R03)."""
    default_partition_name: str = Field(DEFAULT_NAME, min_length=1)
    on_changed_file: Annotated[FailOrIgnore, words(FailOrIgnore, {"reread": _REREAD})] = "fail"
    """What to do about a file that was taken in and has changed, vanished, or come back changed; a
    path counts as new only once, so names must not be reused (PC-R07)."""
    on_bad_path: Annotated[FailOrSkip, words(FailOrSkip)] = "fail"
    path_regex: Annotated[str | None, AfterValidator(_whole_files_regex)] = None
    """Pattern that must match the whole absolute path, or address, of a file (PC-O06)."""

    metadata_columns: Annotated[
        tuple[Annotated[MetadataWord, words(MetadataWord)], ...], unique("column")
    ] = ()
    """Columns about the file of a row: `_file_path`, `_file_name`, `_file_size`,
    `_file_modification_time` (PC-O07)."""
    require_marker: RequiredMarker = None
    """Read partitions only once they have a marker, and of Tidegate's only the files that it lists
    (PC-R09)."""

    @property
    def tells_types(self) -> bool:
        """Whether files tell the types of their columns."""
        return self.format not in TEXT_FORMATS

    @property
    def dialect(self) -> CsvConfig:
        """How the rows of CSV files are written."""
        return self.csv or CsvConfig()

    @property
    def named_metadata(self) -> dict[str, str]:
        """The columns about files: name → word."""
        return {_METADATA_COLUMNS[word]: word for word in self.metadata_columns}

    @property
    def address(self) -> str:
        """The directory, in one line."""
        return f"files {self.path}"

    @classmethod
    def meant_by(cls, table: str) -> dict[str, str] | None:
        """Accept a directory, or the path of one that may be created later, or an address."""
        if is_in_store(table):
            return {"kind": "files", "path": table}
        path = Path(table)
        if path.is_dir() or "/" in table:
            return {"kind": "files", "path": str(path.absolute())}
        return None

    @property
    def known_places(self) -> tuple[str, ...]:
        """The directory."""
        return (self.path,)

    @property
    def path_columns(self) -> tuple[str, ...]:
        """The partition keys of the directories."""
        return tuple(self.partition_by)

    @model_serializer(mode="wrap")
    def _without_later_keys(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        made: dict[str, Any] = serialize(self)
        return {key: value for key, value in made.items() if key not in _LATER_KEYS or value}

    @model_validator(mode="after")
    def _columns_fit_the_format(self) -> FilesSourceConfig:
        if self.columns is not None and self.tells_types:
            problem = (
                f"belongs to `format: csv` and `json`; {self.format} files have their own types"
            )
            raise KeyProblem(problem, key="columns")
        if self.csv is not None and self.format != "csv":
            problem = f"belongs to `format: csv`; the format is '{self.format}'"
            raise KeyProblem(problem, key="csv")
        if self.format == "csv" and not self.dialect.header and self.columns is None:
            problem = "needs `source.columns`, which then names the columns in their order"
            raise KeyProblem(problem, key="csv.header")
        for name, kind in (self.columns or {}).items():
            if self.format == "csv" and parse_type(kind).is_nested:
                problem = f"a value of CSV cannot be of type {kind}"
                raise KeyProblem(problem, key=f"columns.{name}")
        for name in self.named_metadata:
            if name in self.partition_by or name in (self.columns or {}):
                problem = f"a column of the source has the name `{name}` already"
                raise KeyProblem(problem, key="metadata_columns")
        return self

    @model_validator(mode="after")
    def _only_what_files_have(self) -> FilesSourceConfig:
        if self.read.emits_kinds:
            problem = f"{_of_tables(self.read.output_mode)}; use 'append'"
            raise KeyProblem(problem, key="read.mode")
        if self.split.order not in _ORDERS:
            raise KeyProblem(_of_tables(self.split.order), key="split.order")
        if self.read.mode == "snapshot" and self.start.kind != "full":
            problem = (
                "`read.mode: snapshot` reads a whole state of the table, without start or end; "
                "remove this key"
            )
            raise KeyProblem(problem, key="start")
        if self.start.kind == "latest_inclusive":
            raise KeyProblem(_of_tables(self.start.kind), key="start")
        return self


def _of_tables(word: str) -> str:
    return f"'{word}' belongs to sources of kind 'iceberg'"
