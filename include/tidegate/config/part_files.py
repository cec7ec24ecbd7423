"""How part files of a target are written: format, order, sizes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)

from tidegate.config.section import Character, Section, Size
from tidegate.config.words import KeyProblem
from tidegate.model.part_format import PARQUET
from tidegate.model.sort_key import SortKey

DEFAULT_FORMAT = PARQUET.name
"""Pipelines that are registered without a format have this one."""

TargetFormat = Literal["parquet", "orc", "csv", "json", "avro"]
Compression = Literal["zstd", "snappy", "gzip", "zlib", "lz4", "deflate", "none"]


def _read_sort_keys(found: Any) -> Any:
    if isinstance(found, str):
        found = [found]
    if not isinstance(found, list | tuple):
        msg = "expected a list of columns such as [region, -ordered_at]"
        raise ValueError(msg)  # noqa: TRY004 (pydantic collects ValueError)
    keys = tuple(item if isinstance(item, SortKey) else _read_sort_key(item) for item in found)
    columns = [key.column for key in keys]
    for column in columns:
        if columns.count(column) > 1:
            msg = f"the column '{column}' stands there twice"
            raise ValueError(msg)
    return keys


def _read_sort_key(found: Any) -> SortKey:
    key = SortKey.parse(found.strip()) if isinstance(found, str) else SortKey("")
    if not key.column:
        msg = f"expected a column, or `-column` for the largest first; found {found!r}"
        raise ValueError(msg)
    return key


SortBy = Annotated[
    tuple[SortKey, ...],
    BeforeValidator(_read_sort_keys),
    PlainSerializer(lambda keys: [key.text for key in keys]),
    WithJsonSchema({"type": ["array", "string"], "items": {"type": "string"}}),
]


class RollingConfig(Section):
    """When a task begins a new part file."""

    file_size: Size = 128 << 20


class CompactionConfig(Section):
    """When small files of a partition are joined (PC-K02)."""

    small_file: Size = 16 << 20
    """Only smaller files are joined."""
    target_size: Size | None = None
    """The most that is joined to one file; by default `rolling.file_size`."""
    every: int = Field(1, gt=0)
    """Files are joined by revisions whose number is a multiple of this."""

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, found: Any) -> Any:
        # `compaction: true` in a pipeline file asks for it as it usually is.
        return {} if found is True else found


class RowGroupConfig(Section):
    """When a row group, in ORC a stripe, is full: the memory of readers, and what they skip."""

    rows: int = Field(1 << 18, gt=0)
    size: Size = 64 << 20
    """Uncompressed, as in memory."""


class CsvConfig(Section):
    """How rows are written as CSV."""

    header: bool = True
    """Whether every file begins with the names of its columns."""
    delimiter: Character = ","
    null_value: str = Field("", pattern=r'^[^"\r\n]*$')
    """What stands for NULL. An empty text is quoted, so that it differs from the default."""
    quote: Character = '"'

    @model_validator(mode="after")
    def _differ(self) -> CsvConfig:
        if self.delimiter == self.quote:
            problem = f"'{self.quote}' is the delimiter as well"
            raise KeyProblem(problem, key="quote")
        if self.delimiter in self.null_value or self.quote in self.null_value:
            problem = f"'{self.null_value}' contains the delimiter or the quote"
            raise KeyProblem(problem, key="null_value")
        return self
