"""The formats of part files: their words, their extensions, and what a reader has to be told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidegate.model.sort_key import SortKey
from tidegate.model.wire import SPARSE, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_COMPRESSION = "none"


@dataclass(frozen=True)
class FormatKind:
    """What is known of a file format without opening a file."""

    extensions: Mapping[str, str]
    """Compression → extension, as Spark names such files; the first one is the default."""
    has_columns: bool = True
    """Whether a file has the names and types of its columns; a reader of others is told them."""
    has_row_groups: bool = False
    may_widen: bool = True
    """Whether readers of a table find columns by their names, so that they may differ."""
    is_read_by_spark: bool = False
    """Whether Spark's own reader reads them for the gate; others are read by ours in its tasks."""
    is_assembled: bool = False
    """Whether standing files are merged with changes, and small ones joined."""
    may_be_unreadable: bool = False
    """Whether Arrow writes values that it cannot read, though other readers can."""
    is_copied: bool = False
    """Whether source files of this format may become part files without being decoded."""

    @property
    def default_compression(self) -> str:
        """The compression that is used unless another one is named."""
        return next(iter(self.extensions))


KINDS: Mapping[str, FormatKind] = MappingProxyType(
    {
        "parquet": FormatKind(
            {
                "zstd": ".zstd.parquet",
                "snappy": ".snappy.parquet",
                "gzip": ".gz.parquet",
                NO_COMPRESSION: ".parquet",
            },
            has_row_groups=True,
            is_read_by_spark=True,
            is_assembled=True,
            is_copied=True,
        ),
        "orc": FormatKind(
            {
                "zstd": ".zstd.orc",
                "snappy": ".snappy.orc",
                "zlib": ".zlib.orc",
                "lz4": ".lz4.orc",
                NO_COMPRESSION: ".orc",
            },
            has_row_groups=True,
            is_assembled=True,
            may_be_unreadable=True,
        ),
        "csv": FormatKind(
            {NO_COMPRESSION: ".csv", "gzip": ".csv.gz", "zstd": ".csv.zst"},
            has_columns=False,
            may_widen=False,
        ),
        "json": FormatKind(
            {NO_COMPRESSION: ".json", "gzip": ".json.gz", "zstd": ".json.zst"},
            has_columns=False,
        ),
        # The header says which codec it is, so that the name need not, as in Spark.
        "avro": FormatKind(
            dict.fromkeys(("deflate", "snappy", "zstd", NO_COMPRESSION), ".avro"),
            is_assembled=True,
        ),
    }
)
"""All formats of part files by their names in a pipeline file."""

EXTENSIONS = tuple(
    dict.fromkeys(extension for kind in KINDS.values() for extension in kind.extensions.values())
)


@dataclass(frozen=True)
class CsvForm(Value):
    """How rows are written as CSV."""

    header: bool = True
    delimiter: str = ","
    null_value: str = ""
    quote: str = '"'


@dataclass(frozen=True)
class PartFormat(Value):
    """How a part file is written."""

    name: str = "parquet"
    """One of `KINDS`."""
    compression: str = "zstd"
    csv: CsvForm | None = field(default=None, metadata={SPARSE: True})
    """None: the format is another one."""
    sorted_by: tuple[SortKey, ...] | None = field(default=None, metadata={SPARSE: True})
    """The order of the rows, which some formats tell their readers; None: there is none."""
    is_read_back: bool | None = field(default=None, metadata={SPARSE: True})
    """Whether the files are merged later, so that Arrow has to read every value; None: they are
    not."""

    @property
    def kind(self) -> FormatKind:
        """What is known of the format."""
        return KINDS[self.name]

    @property
    def extension(self) -> str:
        """The end of a file's name."""
        return self.kind.extensions[self.compression]

    def of_file(self, path: str) -> PartFormat:
        """Return the form of one file of a table, whose compression may have been another one."""
        ends = self.kind.extensions
        fitting = [word for word in ends if path.endswith(ends[word])]
        # Every name ends with the shortest extension.
        longest = max(fitting, key=lambda word: len(ends[word]), default=self.compression)
        return replace(self, compression=longest)


def form_of_name(path: str) -> PartFormat:
    """Return the form of a file whose name is all that is known, Parquet if it says nothing."""
    for name, kind in KINDS.items():
        if path.endswith(tuple(kind.extensions.values())):
            return PartFormat(name, kind.default_compression).of_file(path)
    return PARQUET


PARQUET = PartFormat()
"""What is written unless a pipeline file says otherwise."""
