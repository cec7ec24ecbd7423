"""The properties of a table (HUDI-T1): `.hoodie/hoodie.properties`, typed. Opens nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import javaproperties

from tidegate.errors import HudiPropertyUnsupported

if TYPE_CHECKING:
    from collections.abc import Mapping

_VERSION = "hoodie.table.version"
_TYPE = "hoodie.table.type"
_LAYOUT = "hoodie.timeline.layout.version"
_BASE_FORMAT = "hoodie.table.base.file.format"
_DROPS_COLUMNS = "hoodie.datasource.write.drop.partition.columns"
_PARTITION_FIELDS = "hoodie.table.partition.fields"
_KEY_FIELDS = "hoodie.table.recordkey.fields"
_HIVE = "hoodie.datasource.write.hive_style_partitioning"
_ENCODES = "hoodie.datasource.write.partitionpath.urlencode"
_GENERATORS = ("hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type")
_DATES_AS_FOLDERS = "hoodie.datasource.write.slash.separated.date.partitioning"
_NAMING = (_PARTITION_FIELDS, _KEY_FIELDS, _HIVE, _ENCODES, *_GENERATORS, _DATES_AS_FOLDERS)
_FORMATS = re.compile("timestamp", re.IGNORECASE)
"""Key generators that format values; a custom one says so for each column."""
_NAMES_LONE_KEYS = re.compile("complex|global_?delete", re.IGNORECASE)
"""Key generators that are made for several columns, and may name a single one as well."""
_VERSIONS = frozenset({5, 6, 8, 9, 10})
_LAYOUTS = {"1": 1, "2": 2}
_LAYOUT_2_SINCE = 8
_ONE_INSTANT_PER_LOG = 8
_META_FIELDS = "hoodie.populate.meta.fields"
_META_MODE = "hoodie.meta.fields.mode"
_ALL = "ALL"
_META_MODES = (_ALL, "NONE", "COMMIT_TIME_ONLY", "FILE_NAME_ONLY", "COMMIT_TIME_AND_FILE_NAME")
_META_MODE_SINCE = 10
_STORAGE_LAYOUT = "hoodie.table.storage.layout"
_IMAGES = "hoodie.table.cdc.supplemental.logging.mode"
_ORDERING = ("hoodie.table.ordering.fields", "hoodie.table.precombine.field")
_MARKERS = ("hoodie.payload.delete.", "hoodie.record.merge.property.hoodie.payload.delete.")


class LoggedImages(StrEnum):
    """Which values of rows a log of changes has, besides what was done to which key."""

    NONE = "op_key_only"
    BEFORE = "data_before"
    BEFORE_AND_AFTER = "data_before_after"


@dataclass(frozen=True)
class DeleteMarker:
    """A column whose value marks a record as a delete (HUDI-M11)."""

    column: str
    value: str


@dataclass(frozen=True)
class TableProperties:
    """The properties of one table.

    Raises:
        HudiPropertyUnsupported: the table needs something that is not read (HUDI-S3).
    """

    source: str
    raw: Mapping[str, str]

    @classmethod
    def parse(cls, source: str, text: str) -> TableProperties:
        """Read the file's text, in the syntax of Java properties, and check what it says."""
        made = cls(source, javaproperties.loads(text))
        made._check()
        return made

    @property
    def version(self) -> int:
        """The version of the table's format."""
        return int(self.raw.get(_VERSION, "0"))

    @property
    def has_mixed_logs(self) -> bool:
        """Whether a log file may have blocks of several instants, done and pending (HUDI-F5).

        It may since the table was created before version 8, although it was upgraded.
        """
        created = self.raw.get("hoodie.table.initial.version", "")
        since = int(created) if created.isdecimal() else 0
        return min(self.version, since) < _ONE_INSTANT_PER_LOG

    @property
    def is_merge_on_read(self) -> bool:
        """Whether updates are written to log files; otherwise base files are rewritten."""
        return self.raw.get(_TYPE) == "MERGE_ON_READ"

    @property
    def layout(self) -> int:
        """The layout of the timeline: 1 knows requested times only, 2 completion times as well.

        0 is none that is known.
        """
        default = "2" if self.version >= _LAYOUT_2_SINCE else "1"
        said = self.raw.get(_LAYOUT, default)
        return _LAYOUTS.get(said, 0)

    @property
    def timeline_folder(self) -> str:
        """The folder of the active timeline, below the table."""
        if self.layout == 1:
            return ".hoodie"
        return f".hoodie/{self.raw.get('hoodie.timeline.path') or 'timeline'}"

    @property
    def history_folder(self) -> str:
        """The folder of archived instants, below the table."""
        if self.layout == 1:
            return f".hoodie/{self.raw.get('hoodie.archivelog.folder') or 'archived'}"
        return f"{self.timeline_folder}/{self.raw.get('hoodie.timeline.history.path') or 'history'}"

    @property
    def is_utc(self) -> bool:
        """Whether instants are times in UTC; otherwise in the zone of the writers (HUDI-T3)."""
        return self.raw.get("hoodie.table.timeline.timezone", "LOCAL").upper() == "UTC"

    @property
    def has_meta_fields(self) -> bool:
        """Whether rows have their key and commit time in `_hoodie_` columns, as all or none have.

        Modes with some of the columns count as one with none (HUDI-W17).
        """
        if self.meta_fields_key == _META_MODE:
            return self._meta_mode == _ALL
        return self.raw.get(_META_FIELDS, "true").lower() != "false"

    @property
    def meta_fields_key(self) -> str:
        """The property that says whether rows have these columns."""
        has_mode = self.version >= _META_MODE_SINCE and self.raw.get(_META_MODE)
        return _META_MODE if has_mode else _META_FIELDS

    @property
    def key_fields(self) -> tuple[str, ...]:
        """The columns of the record key; empty if the writer makes keys."""
        return _names(self.raw.get(_KEY_FIELDS, ""))

    @property
    def record_key(self) -> str:
        """The property that names the columns of the record key."""
        return _KEY_FIELDS

    @property
    def ordering_key(self) -> str:
        """The property that names the columns that order records."""
        return next((key for key in _ORDERING if self.raw.get(key)), _ORDERING[0])

    @property
    def names_lone_keys(self) -> bool:
        """Whether a key of one column may be `column:value`, other than the value alone."""
        return any(_NAMES_LONE_KEYS.search(self.raw.get(key, "")) for key in _GENERATORS)

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """The columns that order the records of a key; empty if there are none."""
        found = (self.raw.get(key, "") for key in _ORDERING)
        return _names(next((text for text in found if text), ""))

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """The columns that partition the table, without the kind of their key generator."""
        said = self.raw.get(_PARTITION_FIELDS, "")
        return tuple(name.partition(":")[0] for name in _names(said))

    @property
    def has_hive_folders(self) -> bool:
        """Whether the folders of partitions are named `column=value`."""
        return self.raw.get(_HIVE, "") == "true"

    @property
    def encodes_folders(self) -> bool:
        """Whether the values in the names of folders are URL-encoded."""
        return self.raw.get(_ENCODES, "") == "true"

    @property
    def formats_folders(self) -> str | None:
        """The property by which folders are named by formatted values; None: by the values."""
        for key in _GENERATORS:
            if _FORMATS.search(self.raw.get(key, "")):
                return key
        if self.raw.get(_DATES_AS_FOLDERS, "").lower() == "true":
            return _DATES_AS_FOLDERS
        kinds = (it.partition(":")[2] for it in _names(self.raw.get(_PARTITION_FIELDS, "")))
        return None if all(kind in {"", "SIMPLE"} for kind in kinds) else _PARTITION_FIELDS

    @property
    def naming(self) -> Mapping[str, str]:
        """The properties that say how keys and folders are named, without all others."""
        return {key: self.raw[key] for key in _NAMING if key in self.raw}

    @property
    def created_schema(self) -> str | None:
        """The Avro schema that the table was created with."""
        return self.raw.get("hoodie.table.create.schema") or None

    @property
    def writes_changes(self) -> bool:
        """Whether the writer keeps a log of changes (CDC)."""
        return self.raw.get("hoodie.table.cdc.enabled", "false").lower() == "true"

    @property
    def logged_images(self) -> LoggedImages:
        """Which values of rows the writer's log of changes has.

        Raises:
            HudiPropertyUnsupported: it is a value that is not known.
        """
        try:
            return LoggedImages(self.raw.get(_IMAGES, LoggedImages.BEFORE_AND_AFTER).lower())
        except ValueError:
            raise self.refusal(_IMAGES, ", ".join(LoggedImages)) from None

    @property
    def delete_marker(self) -> DeleteMarker | None:
        """The marker that the table names itself; see `merge_rules` for implied ones."""
        for prefix in _MARKERS:
            column, value = self.raw.get(f"{prefix}field"), self.raw.get(f"{prefix}marker")
            if column and value:
                return DeleteMarker(column, value)
        return None

    def refusal(self, key: str, expected: str) -> HudiPropertyUnsupported:
        """Return the error for a property whose value is not supported."""
        return HudiPropertyUnsupported(
            source=self.source, property=key, value=self.raw.get(key, "nothing"), expected=expected
        )

    def _check(self) -> None:
        version = self.raw.get(_VERSION, "")
        if not version.isdecimal() or int(version) not in _VERSIONS:
            known = ", ".join(map(str, sorted(_VERSIONS)))
            raise self.refusal(_VERSION, f"one of {known}")
        if self.raw.get(_TYPE) not in {"COPY_ON_WRITE", "MERGE_ON_READ"}:
            raise self.refusal(_TYPE, "COPY_ON_WRITE or MERGE_ON_READ")
        if not self.layout:
            raise self.refusal(_LAYOUT, "1 or 2")
        self._check_of_version_10()
        if self.raw.get(_BASE_FORMAT, "PARQUET").upper() not in _BASE_FORMATS:
            raise self.refusal(_BASE_FORMAT, "PARQUET or ORC")
        for key in ("hoodie.table.bootstrap.base.path", "hoodie.bootstrap.base.path"):
            if self.raw.get(key):
                raise self.refusal(key, "no bootstrapped table: its rows lie in another one")
        if self.raw.get(_DROPS_COLUMNS, "").lower() == "true":
            raise self.refusal(_DROPS_COLUMNS, "false")

    @property
    def _meta_mode(self) -> str:
        return self.raw.get(_META_MODE, "").strip().upper()

    def _check_of_version_10(self) -> None:
        if self.meta_fields_key == _META_MODE:
            if self._meta_mode not in _META_MODES:
                raise self.refusal(_META_MODE, f"one of {', '.join(_META_MODES)}")
            # Versions of Hudi differ in which of the two they believe.
            said = self.raw.get(_META_FIELDS, "").lower()
            if said and (said != "false") != self.has_meta_fields:
                expected = f"what `{_META_FIELDS}` says, which is {said}"
                raise self.refusal(_META_MODE, expected)
        # Hudi merges sorted logs with the base row one after the other, not among themselves first.
        layout = self.raw.get(_STORAGE_LAYOUT, "") or "default"
        if self.is_merge_on_read and layout.lower() != "default":
            raise self.refusal(_STORAGE_LAYOUT, "default")


_BASE_FORMATS = frozenset({"PARQUET", "ORC"})


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
