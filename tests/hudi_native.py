"""Turn golden tables of version 9 into version 10: log blocks become native logs with their rows.

Blocks are found by their lengths and decoded by fastavro, not by the code under test.
"""

from __future__ import annotations

import io
import json
import re
import struct
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import fastavro
import javaproperties
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from hudi_logs import AVRO, DELETE, MAGIC, PARQUET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CDC = 6
HEADER = (
    "INSTANT_TIME",
    "TARGET_INSTANT_TIME",
    "SCHEMA",
    "COMMAND_BLOCK_TYPE",
    "COMPACTED_BLOCK_TIMES",
    "RECORD_POSITIONS",
    "BLOCK_IDENTIFIER",
    "IS_PARTIAL",
    "BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS",
)
_KIND = {AVRO: "log", PARQUET: "log", DELETE: "deletes", CDC: "cdc"}
_LOG = re.compile(r"[.](.+)_(\d{14}|\d{17})[.]log[.](\d+)_([^_.]*)([.]cdc)?")
_VALUES = {
    "Boolean": "boolean",
    "Int": "int",
    "Long": "long",
    "Float": "float",
    "Double": "double",
    "Bytes": "bytes",
    "String": "string",
    "Date": {"type": "int", "logicalType": "date"},
    "Decimal": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15},
    "TimeMicros": {"type": "long", "logicalType": "time-micros"},
    "TimestampMicros": {"type": "long", "logicalType": "timestamp-micros"},
    "LocalDate": {"type": "int", "logicalType": "date"},
}


def _record(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": key, "type": kind} for key, kind in fields.items()],
    }


_WRAPPERS = [_record(f"{name}Wrapper", value=kind) for name, kind in _VALUES.items()]
_NAMES = [f"{name}Wrapper" for name in _VALUES]
_WRAPPED = ["null", {"type": "array", "items": ["null", *_NAMES[:-1], _WRAPPERS[-1]]}]
_ORDERING = ["null", *_WRAPPERS[:-1], _record("ArrayWrapper", wrappedValues=_WRAPPED)]
_TEXT = ["null", "string"]
_DELETED = _record("Deleted", recordKey=_TEXT, partitionPath=_TEXT, orderingVal=_ORDERING)
_DELETES: Any = fastavro.parse_schema(
    _record("Deletes", deleteRecordList={"type": "array", "items": _DELETED})
)


class KeptAsBlocks(Exception):
    """A log that stays as it is: damaged, of several instants, or without a native form."""


@dataclass(frozen=True)
class Written:
    """One block of a log."""

    kind: int
    header: Mapping[int, str]
    content: bytes

    @property
    def instant(self) -> str:
        return self.header.get(0, "")

    @property
    def entries(self) -> dict[str, str]:
        """The header as a native log has it."""
        return {"VERSION": "2", **{HEADER[key]: text for key, text in self.header.items()}}


@dataclass
class Twin:
    """A table that is turned into version 10 in its place.

    Args:
        table: its folder.
        is_one_entry: whether the header is one JSON text in the footer, or one text per entry.
        share: of so many writes of a file group each, one is turned.
        file_format: of the native logs.
        without: entries of headers that are left out.
    """

    table: Path
    is_one_entry: bool = False
    share: int = 1
    file_format: str = "parquet"
    without: tuple[str, ...] = ()
    logs: dict[str, list[Path]] = field(default_factory=dict)
    """Name of a log that was turned → its native logs."""

    def __post_init__(self) -> None:
        path = self.table / ".hoodie" / "hoodie.properties"
        self.properties = javaproperties.loads(path.read_text())
        self.properties["hoodie.table.version"] = "10"
        path.write_text(javaproperties.dumps(self.properties))
        self.ordering = [
            name
            for name in self.properties.get(
                "hoodie.table.ordering.fields",
                self.properties.get("hoodie.table.precombine.field", ""),
            ).split(",")
            if name
        ]
        self.types = self._columns()
        for place, (_, logs) in enumerate(sorted(self._by_write().items())):
            if place % self.share == 0:
                self._turn(logs)
        for path in (self.table / ".hoodie" / "timeline").iterdir():
            if path.suffix in {".commit", ".deltacommit", ".replacecommit"}:
                self._rename(path)

    def _columns(self) -> dict[str, pa.DataType]:
        """The columns of the newest schema that a write names."""
        found: dict[str, pa.DataType] = {}
        for path in sorted((self.table / ".hoodie" / "timeline").glob("*.*commit")):
            content = path.read_bytes()
            if content.startswith(b"Obj"):
                (raw,) = fastavro.reader(io.BytesIO(content))
                text = (raw.get("extraMetadata") or {}).get("schema")
                if text:
                    found |= dict(_fields(json.loads(text), {}))
        return found

    def _by_write(self) -> dict[tuple[str, str], list[Path]]:
        """The logs of each write in each file group: those of one write are turned together."""
        found: defaultdict[tuple[str, str], list[Path]] = defaultdict(list)
        for path in sorted(self.table.rglob(".*.log.*")):
            named = _LOG.fullmatch(path.name)
            if named and ".hoodie" not in path.relative_to(self.table).parts:
                found[f"{path.parent}/{named[1]}", named[2]].append(path)
        return found

    def _turn(self, logs: Sequence[Path]) -> None:
        try:
            read = {path: self._read(path) for path in sorted(logs, key=_version)}
        except KeptAsBlocks:
            return
        versions: defaultdict[str, int] = defaultdict(int)
        for path, blocks in read.items():
            named = _LOG.fullmatch(path.name)
            assert named
            place = str(path.parent)
            before = None
            self.logs[path.name] = []
            for one, rows in blocks:
                kind = _KIND[one.kind]
                # An append writes its rows and its deletes as two files of one version.
                if (before, kind) != ("log", "deletes"):
                    versions[place] += 1
                before = kind
                name = f"{named[1]}_{named[4]}_{named[2]}_{versions[place]}.{kind}"
                target = path.parent / f"{name}.{self.file_format}"
                assert not target.exists()
                self._write(target, rows, one.entries)
                self.logs[path.name].append(target)
            path.unlink()

    def _read(self, path: Path) -> list[tuple[Written, pa.Table]]:
        blocks = framed(path.read_bytes())
        named = _LOG.fullmatch(path.name)
        assert named
        if any(one.instant != named[2] or one.kind not in _KIND for one in blocks):
            raise KeptAsBlocks
        return [(one, self._rows(one)) for one in blocks]

    def _rows(self, one: Written) -> pa.Table:
        if one.kind == PARQUET:
            return pq.read_table(io.BytesIO(one.content), coerce_int96_timestamp_unit="us")
        try:
            return self._deletes(one) if one.kind == DELETE else data_rows(one)
        except (pa.ArrowException, OverflowError, TypeError) as refused:
            raise KeptAsBlocks from refused

    def _deletes(self, one: Written) -> pa.Table:
        version, size = struct.unpack_from(">II", one.content)
        assert version == 3
        file = io.BytesIO(one.content[8 : 8 + size])
        found: Any = fastavro.schemaless_reader(
            file, _DELETES, None, return_record_name=True, return_named_type=True
        )
        records = found["deleteRecordList"]
        columns = {"_hoodie_record_key": pa.array([it["recordKey"] for it in records], pa.string())}
        values = [_ordering_values(it["orderingVal"], len(self.ordering)) for it in records]
        for place, name in enumerate(self.ordering):
            kind = self.types[name]
            columns[name] = _typed([row[place] for row in values], kind)
        return pa.table(columns)

    def _write(self, target: Path, rows: pa.Table, entries: Mapping[str, str]) -> None:
        entries = {key: text for key, text in entries.items() if key not in self.without}
        texts = {f"hudi.log.format.{key}": text for key, text in entries.items()}
        if self.is_one_entry:
            texts = {"hudi.log.format.metadata": json.dumps(entries)}
        made = parquet_log(rows, texts) if self.file_format == "parquet" else orc_log(rows, texts)
        target.write_bytes(made)

    def _rename(self, path: Path) -> None:
        """Name the native logs in what a write says that it wrote."""
        content = path.read_bytes()
        if not content.startswith(b"Obj"):
            return
        reader = fastavro.reader(io.BytesIO(content))
        (raw,) = reader
        for partition, stats in (raw.get("partitionToWriteStats") or {}).items():
            renamed = [one for stat in stats for one in self._stats(stat)]
            raw["partitionToWriteStats"][partition] = renamed
        made = io.BytesIO()
        schema: Any = reader.writer_schema
        fastavro.writer(made, schema, [raw])
        path.write_bytes(made.getvalue())

    def _stats(self, stat: dict[str, Any]) -> list[dict[str, Any]]:
        changes = dict(stat.get("cdcStats") or {})
        for path in list(changes):
            for native in self.logs.get(path.rpartition("/")[2], ()):
                changes.pop(path, None)
                changes[str(native.relative_to(self.table))] = native.stat().st_size
        stat = {**stat, "cdcStats": changes} if changes else stat
        found = self.logs.get(stat["path"].rpartition("/")[2])
        if found is None:
            return [stat]
        nothing = {"numWrites": 0, "numDeletes": 0, "numInserts": 0, "numUpdateWrites": 0}
        return [
            {
                **stat,
                **(nothing if number else {}),
                "path": str(native.relative_to(self.table)),
                "fileSizeInBytes": native.stat().st_size,
            }
            for number, native in enumerate(found)
        ]


def parquet_log(rows: pa.Table, texts: Mapping[str, str]) -> bytes:
    """A Parquet file with texts in its footer, and without Arrow's own schema."""
    plain = rows.replace_schema_metadata()
    file = pa.BufferOutputStream()
    with pq.ParquetWriter(file, plain.schema, store_schema=False) as writer:
        writer.write_table(plain)
        writer.add_key_value_metadata(dict(texts))
    return bytes(file.getvalue())


def orc_log(rows: pa.Table, texts: Mapping[str, str]) -> bytes:
    """An ORC file with texts in its footer, where Arrow writes none."""
    file = pa.BufferOutputStream()
    orc.write_table(rows, file, compression="uncompressed")
    whole = bytes(file.getvalue())
    postscript = whole[-1 - whole[-1] : -1]
    length, rest = _varint(postscript[1:])
    assert postscript[0] == 1 << 3
    items = [
        _field(1, key.encode()) + _field(2, text.encode()) for key, text in sorted(texts.items())
    ]
    added = b"".join(_field(5, item) for item in items)
    postscript = postscript[:1] + _number(length + len(added)) + rest
    return whole[: -1 - whole[-1]] + added + postscript + bytes([len(postscript)])


def _field(key: int, content: bytes) -> bytes:
    """A field of a message of Protocol Buffers that has a length."""
    return bytes([key << 3 | 2]) + _number(len(content)) + content


def _number(value: int) -> bytes:
    made = b""
    while value > 127:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])


def _varint(content: bytes) -> tuple[int, bytes]:
    value = place = 0
    while content[place] > 127:
        value |= (content[place] & 127) << 7 * place
        place += 1
    return value | content[place] << 7 * place, content[place + 1 :]


def framed(content: bytes) -> list[Written]:
    """The blocks of a log.

    Raises:
        KeptAsBlocks: it is not made of whole blocks.
    """
    found: list[Written] = []
    place = 0
    while place < len(content):
        if content[place : place + 6] != MAGIC or place + 14 > len(content):
            raise KeptAsBlocks
        (size,) = struct.unpack_from(">Q", content, place + 6)
        end = place + 14 + size
        if end > len(content) or struct.unpack_from(">Q", content, end - 8)[0] != size + 6:
            raise KeptAsBlocks
        file = io.BytesIO(content[place + 14 : end])
        _, kind, count = struct.unpack(">III", file.read(12))
        header = {}
        for _ in range(count):
            key, width = struct.unpack(">II", file.read(8))
            header[key] = file.read(width).decode()
        (width,) = struct.unpack(">Q", file.read(8))
        found.append(Written(kind, header, file.read(width)))
        place = end
    if not found:
        raise KeptAsBlocks
    return found


def data_rows(one: Written) -> pa.Table:
    """Decode a block of Avro rows."""
    written = json.loads(one.header[2])
    schema = fastavro.parse_schema(written)
    file = io.BytesIO(one.content)
    _, count = struct.unpack(">II", file.read(8))
    rows: list[dict[str, Any]] = []
    for _ in range(count):
        file.read(4)
        row: Any = fastavro.schemaless_reader(file, schema, None)
        rows.append(row)
    fields = _fields(written, {})
    columns = [pa.array([row[name] for row in rows], kind) for name, kind in fields]
    return pa.Table.from_arrays(columns, names=[name for name, _ in fields])


def _version(path: Path) -> int:
    named = _LOG.fullmatch(path.name)
    assert named
    return int(named[3])


def _ordering_values(found: Any, width: int) -> list[Any]:
    if found is None:
        return [None] * width
    name, record = found
    if name == "ArrayWrapper":
        wrapped = record["wrappedValues"] or []
        return [None if it is None else it[1]["value"] for it in wrapped]
    is_none = name == "IntWrapper" and record["value"] == 0
    return [None] * width if is_none else [record["value"]]


def _typed(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind) and all(isinstance(it, (int, type(None))) for it in values):
        return pa.array(values, pa.int64()).cast(pa.timestamp("us", kind.tz)).cast(kind)
    if pa.types.is_decimal(kind):
        return pa.array(values, pa.decimal128(38, 15)).cast(kind)
    return pa.array(values, kind)


_PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: dict[str, pa.DataType] = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
}


def _fields(record: Mapping[str, Any], known: dict[str, Any]) -> list[tuple[str, pa.DataType]]:
    known[record["name"]] = record
    return [(it["name"], _arrow(it["type"], known)) for it in record["fields"]]


def _arrow(avro: Any, known: dict[str, Any]) -> pa.DataType:
    if isinstance(avro, list):
        rest = [it for it in avro if it != "null"]
        if len(rest) != 1:
            raise KeptAsBlocks
        return _arrow(rest[0], known)
    if isinstance(avro, str):
        return _PLAIN[avro] if avro in _PLAIN else _arrow(known[avro.rpartition(".")[2]], known)
    if avro.get("logicalType") == "decimal":
        return pa.decimal128(avro["precision"], avro.get("scale", 0))
    if avro.get("logicalType") in _LOGICAL:
        return _LOGICAL[avro["logicalType"]]
    return _nested(avro, known)


def _nested(avro: Mapping[str, Any], known: dict[str, Any]) -> pa.DataType:
    made: pa.DataType
    match avro["type"]:
        case "record":
            made = pa.struct(_fields(avro, known))
        case "array":
            made = pa.list_(_arrow(avro["items"], known))
        case "map":
            made = pa.map_(pa.string(), _arrow(avro["values"], known))
        case "enum":
            made = pa.string()
        case "fixed":
            made = pa.binary(avro["size"])
        case plain:
            made = _arrow(plain, known)
    return made
