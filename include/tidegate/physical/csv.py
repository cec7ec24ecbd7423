"""Read CSV files as RFC 4180 and Spark write them, with the types that the caller knows.

Decides nothing about columns: their types are known, and a value that is none of its type is an
error with its row.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as arrow_csv

from tidegate.physical.lost_digits import LOST_DIGITS, first_lost_text, has_large
from tidegate.physical.protocol import BATCH_ROWS, counted_rows
from tidegate.physical.streamed import InvalidRow, StreamedRows, between
from tidegate.physical.text_stream import BLOCK_BYTES, MOST_BYTES, TextStream, memory_file
from tidegate.physical.zone_hint import zone_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_HEADER_BYTES = 16 << 10
_END = "\x1a end of the file \x1a"
"""The last row; if it is not seen as a row, a quote was opened and never closed."""
_ENDING = f"\n{_END}\n".encode()
_ENDING_OF_ONE = f"\n{_END},{_END}\n"
"""The last row where there is one column: a row that does not fit."""
_CONVERSION = re.compile(r"In CSV column #(\d+): Row #(\d+): (?:CSV conversion error to \S+.*?: )?")
_ZONE_OFFSET = re.compile(r"expected (?:a|no) zone offset in '(.*?)'(?:\. If these .*)?", re.DOTALL)
_MOST_TRIED = 64
"""Line breaks at which a block is tried to be cut."""
_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")


@dataclass(frozen=True)
class CsvDialect:
    """How rows are written."""

    header: bool = True
    """Whether the first row names the columns."""
    names: tuple[str, ...] = ()
    """The columns in their order, where there is no header."""
    delimiter: str = ","
    quote: str | None = '"'
    """None: quotes are part of a value. Two of them stand for one."""
    escape: str | None = None
    """What takes away the meaning of the character behind it; None: there is none."""
    null: tuple[str, ...] = ("",)
    """The texts that are NULL."""
    quoted_null: bool = True
    """Whether they are NULL also in quotes, as for Spark and DuckDB."""
    encoding: str = "utf-8"


@dataclass(frozen=True)
class CsvFile:
    """An open file, and how its text is read."""

    file: pa.NativeFile
    dialect: CsvDialect
    compression: str | None = None

    def stream(self) -> TextStream:
        """Return the text from its beginning; the file stays open."""
        return TextStream(self.file, self.compression, self.dialect.encoding)


@dataclass(frozen=True)
class Header:
    """The columns of a file."""

    names: tuple[str, ...]
    rows: int
    """How many rows stand before the first one with values: the header, and empty lines."""


def header_of(source: CsvFile) -> Header:
    """Read the names of the columns.

    A column without a name gets `_c` and its number, as in Spark. A file without any text has no
    columns.

    Raises:
        pa.ArrowInvalid: it is no text, or the header does not end.
        OSError: the file is damaged.
    """
    dialect = source.dialect
    if not dialect.header:
        return Header(dialect.names, 0)
    stream = source.stream()
    content = b""
    while True:
        content += stream.read(max(_HEADER_BYTES, len(content)))
        # What is no text may stand in a row behind the header.
        text = content.decode("utf-8-sig", errors="surrogateescape")
        lines = io.StringIO(text, newline="")
        empty = 0
        for row in _rows(lines, dialect):
            if row and (lines.tell() < len(text) or stream.has_ended):
                return Header(_named(row), empty + 1)
            empty += not row
        if stream.has_ended:
            return Header((), empty)
        if len(content) > MOST_BYTES:
            problem = f"the header is longer than {MOST_BYTES >> 20} MiB"
            raise pa.ArrowInvalid(problem)


def _named(row: Sequence[str]) -> tuple[str, ...]:
    for name in row:
        try:
            name.encode()
        except UnicodeEncodeError as broken:
            problem = f"the header is no text: {name!r}"
            raise pa.ArrowInvalid(problem) from broken
    return tuple(name or f"_c{index}" for index, name in enumerate(row))


def _rows(lines: io.StringIO, dialect: CsvDialect) -> Iterator[list[str]]:
    reader = csv.reader(
        # One by one, so that `tell` says what was read.
        iter(lines.readline, ""),
        delimiter=dialect.delimiter,
        quotechar=dialect.quote,
        escapechar=dialect.escape,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
    )
    try:
        yield from reader
    except csv.Error as broken:
        problem = f"the header cannot be read: {broken}"
        raise pa.ArrowInvalid(problem) from broken


class CsvRows(StreamedRows):
    """See `PhysicalRows`.

    Args:
        source: the open file, closed with this.
        types: the types of columns by name; others are texts.
        inferred: whether they are only those that the first rows seem to have: a whole number of
            which a double loses digits is an error then.

    Raises:
        OSError, pa.ArrowException: it has no readable header.
    """

    def __init__(
        self, source: CsvFile, types: Mapping[str, pa.DataType], *, inferred: bool = False
    ) -> None:
        self._header = header_of(source)
        super().__init__(source, self._header.rows)
        self._source = source
        self._types = types
        self._is_inferred = inferred

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns in the order of the file."""
        names = self._header.names
        return pa.schema([pa.field(name, self._types.get(name, pa.string())) for name in names])

    def batches(
        self, columns: Sequence[str], start: int, end: int, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Parse the file from its beginning.

        Raises:
            InvalidRow: a row or value does not fit.
        """
        yield from between(self._parsed(columns), start, end, batch_rows)

    def _parsed(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        names = self._header.names
        if not names:
            return
        # One column tells how many rows there are.
        wanted = [names.index(name) for name in columns] or [0]
        parsing = _Parsing(self._source, self._header, inferred=self._is_inferred)
        types = [self._types.get(names[index], pa.string()) for index in wanted]
        kinds = types if columns else [pa.string()]
        for batch in parsing.batches(wanted, kinds):
            if columns:
                yield pa.RecordBatch.from_arrays(batch.columns, names=list(columns))
            else:
                yield counted_rows(batch.num_rows)


class _Parsing:
    """One pass over a file, block by block."""

    def __init__(self, source: CsvFile, header: Header, *, inferred: bool) -> None:
        self._source = source
        self._header = header
        self._is_inferred = inferred
        self._done = 0
        """How many rows were parsed, with the header."""
        self._saw_end = False
        self._unfit: arrow_csv.InvalidRow | None = None

    def batches(
        self, wanted: Sequence[int], types: Sequence[pa.DataType]
    ) -> Iterator[pa.RecordBatch]:
        """Parse all rows; columns have their positions as names."""
        stream = self._source.stream()
        kinds = dict(zip(wanted, types, strict=True))
        left = b""
        while content := left + stream.read(BLOCK_BYTES):
            # What comes next may begin with the line break of a row that seems to be the last one.
            is_last = stream.has_ended
            table, cut = self._first_rows(content, kinds, is_last=is_last)
            if table is not None:
                if self._is_inferred:
                    self._check_digits(content[:cut], table)
                yield from table.to_batches()
                self._done += table.num_rows + self._headers
            left = content[cut:]
            if is_last:
                return
            if len(left) > MOST_BYTES:
                raise self._too_long()

    @property
    def _headers(self) -> int:
        """How many rows of the next block are no rows: the header, if it is the first one."""
        return int(not self._done and self._source.dialect.header)

    def _check_digits(self, content: bytes, table: pa.Table) -> None:
        """Refuse whole numbers that a double would turn into others.

        Raises:
            InvalidRow: there is one.
        """
        large = [name for name in table.column_names if has_large(table[name])]
        texts = self._parsed(content, {int(name): pa.string() for name in large}) if large else None
        lost = [
            (*found, self._header.names[int(name)])
            for name in large
            if texts is not None and (found := first_lost_text(texts[name]))
        ]
        if lost:
            index, number, column = min(lost)
            problem = LOST_DIGITS.format(number, "`string` or a `decimal(P,S)`")
            raise InvalidRow(self._done + self._headers + index + 1, column, problem)

    def _first_rows(
        self, content: bytes, types: Mapping[int, pa.DataType], *, is_last: bool
    ) -> tuple[pa.Table | None, int]:
        """Parse the whole rows at the beginning of a text; return them, and where they end."""
        if is_last:
            table = self._parsed(content, types)
            if table is None:
                problem = "expected the end of a value in quotes, found the end of the file"
                raise InvalidRow(None, None, problem)
            return table, len(content)
        for cut in _ends_of_rows(content, self._source.dialect.quote):
            table = self._parsed(content[:cut], types)
            if table is not None:
                return table, cut
        return None, 0

    def _parsed(self, content: bytes, types: Mapping[int, pa.DataType]) -> pa.Table | None:
        """Parse rows; None if they end within a value.

        Raises:
            InvalidRow: one does not fit.
        """
        dialect, count = self._source.dialect, len(self._header.names)
        ending = _ENDING if count > 1 else _ENDING_OF_ONE.replace(",", dialect.delimiter).encode()
        self._saw_end, self._unfit = False, None
        names = [str(index) for index in types]
        reading = arrow_csv.ReadOptions(
            use_threads=False,
            block_size=len(content) + len(ending) + 1,
            # Names need not be unique, positions are.
            column_names=[str(index) for index in range(count)],
            skip_rows_after_names=0 if self._done else self._header.rows,
        )
        parsing = parse_options(dialect, self._on_unfit)
        converting = convert_options(dialect)
        converting.include_columns = names
        converting.column_types = dict(zip(names, types.values(), strict=True))
        file = memory_file(content + ending)
        try:
            table = arrow_csv.read_csv(file, reading, parsing, converting)
        except pa.ArrowInvalid as refused:
            if self._ended_within_a_value():
                return None
            raise self._named(str(refused), types) from refused
        return table if self._saw_end else None

    def _ended_within_a_value(self) -> bool:
        return _END in self._unfit.text if self._unfit is not None else not self._saw_end

    def _on_unfit(self, row: arrow_csv.InvalidRow) -> str:
        """Look at a row that has another number of values than there are columns."""
        if row.text.startswith(_END):
            self._saw_end = True
            return "skip"
        self._unfit = row
        return "error"

    def _named(self, said: str, types: Mapping[int, pa.DataType]) -> pa.ArrowInvalid:
        """Return the error with its row and column, as far as Arrow says them."""
        if self._unfit is not None:
            row = self._unfit
            problem = (
                f"expected {row.expected_columns} values, found {row.actual_columns}: "
                f"{row.text[:80]!r}"
            )
            return InvalidRow(self._done + row.number, None, problem)
        place = _CONVERSION.match(said)
        if place is None:
            return pa.ArrowInvalid(said)
        index = int(place[1])
        found = said[place.end() :].removeprefix("invalid value ")
        if (zone := _ZONE_OFFSET.fullmatch(found)) is not None:
            found = f"'{zone[1]}'{zone_hint(zone[1], types[index])}"
        problem = f"expected a value of type {types[index]}, found {found}"
        return InvalidRow(self._done + int(place[2]), self._header.names[index], problem)

    def _too_long(self) -> InvalidRow:
        problem = (
            f"expected a row of at most {MOST_BYTES >> 20} MiB, found a longer one; a quote may "
            "have been opened that is never closed"
        )
        return InvalidRow(self._done + 1, None, problem)


def _ends_of_rows(content: bytes, quote: str | None) -> Iterator[int]:
    """Yield where rows may end, the likeliest first: behind a line break outside of quotes.

    Quotes are counted, which is wrong only where they are not around values; whether a row ends
    there is seen when it is parsed.
    """
    mark = (quote or "").encode()
    cut = content.rfind(b"\n") + 1
    likely = cut
    while mark and likely and content.count(mark, 0, likely) % 2:
        likely = content.rfind(b"\n", 0, likely - 1) + 1
    if likely:
        yield likely
    for _ in range(_MOST_TRIED):
        if cut and cut != likely:
            yield cut
        cut = content.rfind(b"\n", 0, max(cut - 1, 0)) + 1


def parse_options(
    dialect: CsvDialect, on_unfit: Callable[[arrow_csv.InvalidRow], str]
) -> arrow_csv.ParseOptions:
    """Return how rows are told apart.

    Args:
        dialect: how they are written.
        on_unfit: called with each row that has another number of values than there are columns.
    """
    return arrow_csv.ParseOptions(
        delimiter=dialect.delimiter,
        quote_char=dialect.quote or False,
        escape_char=dialect.escape or False,
        newlines_in_values=True,
        invalid_row_handler=on_unfit,
    )


def convert_options(dialect: CsvDialect) -> arrow_csv.ConvertOptions:
    """Return how values are read."""
    return arrow_csv.ConvertOptions(
        null_values=list(dialect.null),
        strings_can_be_null=True,
        quoted_strings_can_be_null=dialect.quoted_null,
        true_values=list(_TRUE),
        false_values=list(_FALSE),
    )
