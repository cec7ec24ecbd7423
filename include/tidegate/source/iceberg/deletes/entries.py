"""Turn manifest entries of delete files into delete files, and refuse corrupt ones (ICE-4.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyiceberg.types import DoubleType, FloatType

from tidegate.errors import CorruptDeletes, UnsupportedFeature
from tidegate.model.file_slice import Delta, DeltaKind
from tidegate.source.iceberg.manifests.entries import Content, Entry
from tidegate.source.iceberg.manifests.matching import partition_key, path_key

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from tidegate.source.iceberg.deletes.rules import DeleteRules
    from tidegate.source.iceberg.manifests.metrics import Metrics

FILE_PATH_ID = 2147483546
"""Reserved field id of the path column of position delete files."""
EVERYWHERE: Hashable = "every partition"
_NO_IDS = "known equality ids"


class FoundDelete(NamedTuple):
    """A delete file, with everything that decides where it applies."""

    entry: Entry
    file: Delta
    target: str | None
    """The only data file that it applies to."""
    target_key: str | None
    """The part of that path that is compared."""
    partition: Hashable
    scope: Hashable
    """The partition in which it applies if it names no file, or `EVERYWHERE`."""
    path_bounds: tuple[str, str] | None
    """First and last data file that its rows name, if known."""


def found_delete(entry: Entry, rules: DeleteRules) -> FoundDelete:
    """Describe a delete file.

    Raises:
        CorruptDeletes: a vector without reference, offset or size; equality deletes with no or
            unknown ids.
        UnsupportedFeature: it is encrypted, or deletes by a floating point number (ICE-4.8).
    """
    if entry.encrypted:
        raise UnsupportedFeature(source=rules.source, feature=f"{entry.path}: an encrypted file")
    kind = _kind(entry)
    bounds = _path_bounds(entry.metrics) if kind is DeltaKind.POSITIONS else None
    target = entry.referenced
    if kind is DeltaKind.VECTOR:
        _check_vector(entry)
    elif kind is DeltaKind.KEYS:
        _check_keys(entry, rules)
        target = None
    elif target is None and bounds and bounds[0] == bounds[1]:
        target = bounds[0]
    file = Delta(
        path=entry.path,
        kind=kind,
        file_format=entry.file_format,
        file_bytes=entry.size_bytes,
        rows=entry.rows,
        sequence=entry.sequence_number,
        field_ids=entry.equality_ids if kind is DeltaKind.KEYS else (),
        offset=entry.content_offset if kind is DeltaKind.VECTOR else None,
        blob_bytes=entry.content_size if kind is DeltaKind.VECTOR else None,
        referenced=target,
    )
    partition = partition_key(entry.spec_id, entry.partition)
    is_global = kind is DeltaKind.KEYS and entry.spec_id in rules.global_specs
    return FoundDelete(
        entry=entry,
        file=file,
        target=target,
        target_key=None if target is None else compared_path(target, rules),
        partition=partition,
        scope=EVERYWHERE if is_global else partition,
        path_bounds=bounds,
    )


def compared_path(path: str, rules: DeleteRules) -> str:
    """Return the part of a path that is compared (ICE-4.14)."""
    return path if rules.exact_paths else path_key(path)


def concerning(
    deletes: Iterable[FoundDelete], entries: Iterable[Entry], rules: DeleteRules
) -> Iterator[FoundDelete]:
    """Keep only deletes of the files and partitions of some data files."""
    asked = list(entries)
    if not asked:
        return
    keys = {compared_path(entry.path, rules) for entry in asked}
    scopes = {partition_key(entry.spec_id, entry.partition) for entry in asked} | {EVERYWHERE}
    for found in deletes:
        if (found.scope in scopes) if found.target_key is None else (found.target_key in keys):
            yield found


def _kind(entry: Entry) -> DeltaKind:
    if entry.content == Content.EQUALITY_DELETES:
        return DeltaKind.KEYS
    if entry.content != Content.POSITION_DELETES:
        raise CorruptDeletes(
            path=entry.path, expected="a delete file", found=f"content {entry.content}"
        )
    return DeltaKind.VECTOR if entry.file_format == "puffin" else DeltaKind.POSITIONS


def _check_vector(entry: Entry) -> None:
    parts = {
        "referenced_data_file": entry.referenced,
        "content_offset": entry.content_offset,
        "content_size_in_bytes": entry.content_size,
    }
    absent = [name for name, value in parts.items() if value is None]
    if absent:
        raise CorruptDeletes(
            path=entry.path,
            expected="a deletion vector that says file, offset and size",
            found=f"no {' and no '.join(absent)}",
        )


def _check_keys(entry: Entry, rules: DeleteRules) -> None:
    if not entry.equality_ids:
        raise CorruptDeletes(path=entry.path, expected=_NO_IDS, found="none")
    for field_id in entry.equality_ids:
        field = rules.key_fields.get(field_id)
        if field is None:
            raise CorruptDeletes(
                path=entry.path,
                expected=_NO_IDS,
                found=f"{field_id}, which no schema of the table has",
            )
        kind = (entry.metrics.types if entry.metrics else {}).get(field_id, field.kind)
        if isinstance(kind, DoubleType | FloatType):
            raise UnsupportedFeature(
                source=rules.source,
                feature=f"{entry.path}: equality deletes by field {field_id}, a {kind},",
            )


def _path_bounds(metrics: Metrics | None) -> tuple[str, str] | None:
    if metrics is None:
        return None
    *_, lower, upper = metrics.of(FILE_PATH_ID)
    if lower is None or upper is None:
        return None
    try:
        return lower.decode(), upper.decode()
    except UnicodeDecodeError:
        return None
