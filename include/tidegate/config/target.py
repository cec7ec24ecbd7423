"""The `target` and `rows` sections of a pipeline file: what is written, and where."""

from __future__ import annotations

import operator
import posixpath
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    model_serializer,
    model_validator,
)

from tidegate.config.iceberg_target import check_table_keys
from tidegate.config.metastore import MetastoreConfig
from tidegate.config.part_files import (
    DEFAULT_FORMAT,
    CompactionConfig,
    Compression,
    CsvConfig,
    RollingConfig,
    RowGroupConfig,
    SortBy,
    TargetFormat,
)
from tidegate.config.partition_keys import PartitionBy, field_text, literal
from tidegate.config.s3 import S3Config
from tidegate.config.section import (
    Duration,
    Section,
    StorePath,
    absolute_path,
    folder_of,
    is_in_store,
    lies_inside,
    read_word,
    real_place,
    unique,
    words,
)
from tidegate.config.sources import CatalogConfig
from tidegate.config.target_kinds import TARGET_KINDS, TargetKind, TargetWord
from tidegate.config.words import NOT_BUILT, KeyProblem, suggest
from tidegate.errors import WorkInsideTarget
from tidegate.model.part_format import KINDS, CsvForm, PartFormat
from tidegate.model.partition import DEFAULT_NAME, Partition, Transform
from tidegate.model.partition_value import INTERVALS, value_format

RowEffect = Literal["quarantine", "hold", "warn"]
WriteMode = Literal["append", "overwrite", "upsert"]
Evolve = Literal["widen", "add_columns", "none"]
CopyWholeFiles = Literal["auto", "never"]
TargetLayout = Literal["in_place", "revisions"]

_KEEP_REVISIONS = 2
"""The current revision, and the one that readers may be in the middle of."""
_UPLOAD_AGE = timedelta(days=1)
ForeignChange = Literal["fail", "replace"]

OWNER_FILE = ".tidegate.owner"
"""The file at the target's root that names the pipeline that owns it (design §4).

It has the ending of no data, because `**/*.json` also finds hidden files, and a name that no work
directory has: these are called `.tidegate-<name>`.
"""


class RowRule(Section):
    """A predicate on single rows, applied while staging (PC-C05)."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")
    """Also the name of a directory of the quarantine."""
    where: str = Field(min_length=1)
    """SQL predicate that good rows satisfy; NULL does not."""
    on_failure: Annotated[RowEffect, words(RowEffect)] = "quarantine"


def _word(choices: object) -> BeforeValidator:
    """Return a validator for a word that need not be said."""
    valid = get_args(choices)
    return BeforeValidator(lambda found: found if found is None else read_word(found, valid, {}))


def _is_unsaid(default: object) -> Callable[[object], bool]:
    """Return the test by which a key with its default stays out of plans, as in early versions."""
    return lambda said: said == default


class TargetConfig(Section):
    """The published table."""

    kind: Annotated[TargetWord, words(TargetWord)] = Field("files", exclude_if=_is_unsaid("files"))
    """`files`: folders of files; `iceberg`: an Iceberg table, to which each commit adds a snapshot.
    """
    path: StorePath
    """The table's folder; for an Iceberg table its location."""
    table: str | None = Field(None, exclude_if=_is_unsaid(None))
    """`namespace.table` of an Iceberg table; one that is not there is made."""
    catalog: CatalogConfig | None = Field(None, exclude_if=_is_unsaid(None))
    """The catalog of an Iceberg table, as of a source."""
    branch: str = Field("main", min_length=1, exclude_if=_is_unsaid("main"))
    """The branch of an Iceberg table that is published to."""
    on_foreign_change: Annotated[ForeignChange, words(ForeignChange)] = Field(
        "fail", exclude_if=_is_unsaid("fail")
    )
    """What happens if another writer changed a partition of an Iceberg table: `replace` puts the
    revision in the place of what it has now."""
    work: StorePath = ""
    """Staging, plans, journal; by default `.tidegate-<name>` beside the target."""
    format: Annotated[TargetFormat, words(TargetFormat)] = "parquet"
    """`json` is JSON lines: one object per row."""
    compression: Annotated[Compression | None, _word(Compression)] = Field(
        None, exclude_if=_is_unsaid(None)
    )
    """By default zstd for Parquet and ORC, deflate for Avro, and none for CSV and JSON."""
    row_group: RowGroupConfig = Field(RowGroupConfig(), exclude_if=_is_unsaid(RowGroupConfig()))
    csv: CsvConfig = Field(CsvConfig(), exclude_if=_is_unsaid(CsvConfig()))
    metastore: MetastoreConfig | None = Field(None, exclude_if=_is_unsaid(None))
    """The catalog of the policy `metastore`."""
    layout: Annotated[TargetLayout, words(TargetLayout)] = Field(
        "in_place", exclude_if=_is_unsaid("in_place")
    )
    """`in_place`: the files of a partition are in its directory, where a revision replaces them;
    `revisions`: each revision has a directory of its own, and readers come by the metastore or by
    markers."""
    keep_revisions: int | None = Field(None, gt=0, exclude_if=_is_unsaid(None))
    """How many of a partition's newest directories `tidegate gc` leaves; by default 2."""
    multipart_max_age: Duration | None = Field(None, exclude_if=_is_unsaid(None))
    """How long the store keeps an upload that nobody completes; by default a day. Part files of
    partitions that can be committed before are sent to where they are published, instead of being
    staged and copied; `0s`: none are."""
    evolve: Annotated[Evolve | None, _word(Evolve)] = Field(None, exclude_if=_is_unsaid(None))
    """What a window may do to the columns of the table. `widen`, the default: columns may come, go
    and change their types; `add_columns`: they may only come; `none`, the default for CSV: they
    stay as they are."""
    partition_by: PartitionBy = ()
    static_partition: dict[str, str] = Field(default_factory=dict, exclude=True)
    """Keys of `partition_by` whose value is given here instead of by a column (PC-O22)."""
    write: Annotated[WriteMode, words(WriteMode)] = "append"
    """`append`: rows of a window come on top of those of earlier ones; `overwrite`: they replace
    those of the partitions that they belong to (PC-F30); `upsert`: they replace the row of their
    key, or remove it (design §4a)."""
    keys: Annotated[tuple[str, ...], unique("column")] = ()
    """The columns that identify a row of an upsert; none of them may be NULL."""
    keys_stay: bool = False
    """Whether no key ever moves to another partition, where the source could not tell it."""
    rolling: RollingConfig = RollingConfig()
    compaction: CompactionConfig | None = None
    """Joins small files while revisions are published; `tidegate compact` does it by command."""
    max_open_partitions: int = Field(64, gt=0)
    """The most open files per task; rows of further partitions wait in a temporary file."""
    sort_by: SortBy = Field((), exclude_if=operator.not_)
    """The order of the rows in each part file: `[region, -ordered_at]`, the largest first after
    `-`; NULL comes last."""
    shuffle_by_partition: bool = Field(False, exclude_if=operator.not_)
    """Whether the rows of a partition are brought together before they are written, so that it gets
    as few files as `rolling.file_size` allows."""
    copy_whole_files: Annotated[CopyWholeFiles, words(CopyWholeFiles)] = "auto"
    """`auto`: a source file whose rows all belong to one partition and are published unchanged is
    copied byte by byte instead of being decoded; `never`: every row is decoded, so that damage
    inside a page is found."""
    default_partition_name: str = Field(DEFAULT_NAME, min_length=1)
    """The directory value for NULL (PC-P08); no other value may be written like it."""
    _store: S3Config = PrivateAttr(S3Config())

    @property
    def store(self) -> S3Config:
        """How the store of its path is reached: the pipeline's section `s3`.

        It is no key of the target, so that no plan has it.
        """
        return self._store

    def reached_by(self, store: S3Config) -> None:
        """Take over the section `s3` of the pipeline that this target is of."""
        self._store = store

    @property
    def is_of_kind(self) -> TargetKind:
        """What distinguishes its kind from others."""
        return TARGET_KINDS[self.kind]

    @property
    def root(self) -> str:
        """The folder that has the partitions."""
        folder = self.is_of_kind.data_folder
        return posixpath.join(self.path, folder) if folder else self.path

    @property
    def is_static(self) -> bool:
        """Whether the pipeline file names the only partition, so that a result is all of it."""
        return all(field.transform is Transform.STATIC for field in self.partition_by)

    @property
    def only_partition(self) -> Partition:
        """The partition of a static target, or that of one without partitions."""
        named = tuple((field.name, field.column) for field in self.partition_by)
        return Partition(named, self.default_partition_name)

    @model_validator(mode="before")
    @classmethod
    def _static_among_keys(cls, found: Any) -> Any:
        said = found.get("static_partition") if isinstance(found, Mapping) else None
        if not isinstance(said, Mapping) or not said:
            return found
        keys = found.get("partition_by")
        fields = dict(keys) if isinstance(keys, Mapping) else {}
        for name, value in said.items():
            fields[name] = _static_value(str(name), value, fields)
        return {**found, "partition_by": fields}

    @model_validator(mode="before")
    @classmethod
    def _work_beside(cls, found: Any, info: ValidationInfo) -> Any:
        path = found.get("path") if isinstance(found, Mapping) else None
        if not isinstance(path, str) or found.get("work"):
            return found
        place = absolute_path(path, folder_of(info))
        is_other = "://" in place and not is_in_store(place)
        return found if is_other else {**found, "work": work_beside(place)}

    @model_validator(mode="after")
    def _place_fits(self) -> TargetConfig:
        kind = self.is_of_kind
        if not kind.is_laid_out and self.layout != "in_place":
            problem = (
                f"belongs to `kind: files`; readers of `kind: {self.kind}` see whole revisions"
            )
            raise KeyProblem(problem, key="layout")
        if _is_told(self.work + self.path) and ("://" in self.work) != ("://" in self.path):
            problem = (
                f"'{self.work}' and `target.path` have to be both in a store, or both on a disk"
            )
            raise KeyProblem(problem, key="work")
        return self

    @model_validator(mode="after")
    def _default_is_no_time(self) -> TargetConfig:
        name, fields = self.default_partition_name, self.partition_by
        for field in fields:
            if field.transform in INTERVALS and _reads_as(name, value_format(field, fields)):
                problem = f"'{name}' is what `{field.name}: {field_text(field)}` writes for a time"
                raise KeyProblem(problem, key="default_partition_name")
        return self

    @model_validator(mode="after")
    def _keys_fit(self) -> TargetConfig:
        if self.write != "upsert":
            for name, said in (("keys", self.keys), ("keys_stay", self.keys_stay)):
                if said:
                    problem = f"belongs to `write: upsert`; the mode is '{self.write}'"
                    raise KeyProblem(problem, key=name)
            return self
        if not self.keys:
            problem = "is required for `write: upsert`: the columns that identify a row"
            raise KeyProblem(problem, key="keys")
        fixed = {
            column
            for field in self.partition_by
            if field.transform not in INTERVALS
            for column in (*field.columns, field.name)
        }
        if fixed.issuperset(self.keys):
            problem = "are partition keys, so that every partition would have one row"
            raise KeyProblem(problem, key="keys")
        return self

    @model_serializer(mode="wrap")
    def _without_unsaid(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # What no pipeline file says must not change the plans of earlier versions.
        said: dict[str, Any] = write(self)
        unsaid: dict[str, Any] = {"compaction": None, "keys": [], "keys_stay": False}
        return {key: item for key, item in said.items() if unsaid.get(key, ...) != item}

    @model_validator(mode="after")
    def _options_fit(self) -> TargetConfig:
        kind, format_ = KINDS[self.format], self.format
        compression = self.compression
        if compression is not None and compression not in kind.extensions:
            problem = f"'{compression}' is none of {format_}; known: {', '.join(kind.extensions)}"
            raise KeyProblem(problem, key="compression")
        if not kind.has_row_groups and self.row_group != RowGroupConfig():
            problem = f"belongs to parquet and orc, not to `format: {format_}`; remove it"
            raise KeyProblem(problem, key="row_group")
        if format_ != "csv" and self.csv != CsvConfig():
            problem = f"belongs to `format: csv`, not to `format: {format_}`; remove it"
            raise KeyProblem(problem, key="csv")
        if not kind.is_assembled and self.write == "upsert":
            problem = f"'upsert' {NOT_BUILT} for `format: {format_}`; use 'append', or parquet"
            raise KeyProblem(problem, key="write")
        if not kind.is_assembled and self.compaction is not None:
            problem = f"{NOT_BUILT} for `format: {format_}`; remove it, or use parquet"
            raise KeyProblem(problem, key="compaction")
        if not kind.may_widen and self.evolve not in {None, "none"}:
            problem = (
                f"readers of {format_} take the columns of one file for those of all; use 'none', "
                "or a format whose columns are found by name, as parquet"
            )
            raise KeyProblem(problem, key="evolve")
        return self

    @property
    def part_format(self) -> PartFormat:
        """How part files are written."""
        kind = KINDS[self.format]
        compression = self.compression or kind.default_compression
        said = self.csv
        csv = CsvForm(said.header, said.delimiter, said.null_value, said.quote)
        is_read_back = self.write == "upsert"
        return PartFormat(
            self.format,
            compression,
            csv if self.format == "csv" else None,
            is_read_back=(kind.may_be_unreadable and is_read_back) or None,
        )

    @property
    def format_identity(self) -> dict[str, str]:
        """What no file of the table may have otherwise: key → value; empty for Parquet."""
        said = self.csv.model_dump(exclude_defaults=True)
        found: dict[str, str] = {}
        if self.format != DEFAULT_FORMAT:
            found["target.format"] = self.format
        table = f"{self.catalog.name if self.catalog else ''}.{self.table} branch {self.branch}"
        if self.is_of_kind.shown_by is not None:
            found |= {"target.kind": self.kind, "target.table": table}
        return {**found, **({"target.csv": str(said)} if said else {})}

    @property
    def evolution(self) -> str:
        """What a window may do to the columns of the table."""
        return self.evolve or ("widen" if KINDS[self.format].may_widen else "none")

    @model_validator(mode="after")
    def _layout_fits(self) -> TargetConfig:
        if self.multipart_max_age is not None and not self.is_in_store and _is_told(self.path):
            problem = f"belongs to a target in a store; '{self.path}' is on a disk"
            raise KeyProblem(problem, key="multipart_max_age")
        if self.keep_revisions is not None and self.layout == "in_place":
            problem = "belongs to `layout: revisions`; the layout is 'in_place'"
            raise KeyProblem(problem, key="keep_revisions")
        return self

    @property
    def is_in_store(self) -> bool:
        """Whether part files are objects of a store."""
        return is_in_store(self.path)

    @property
    def upload_age(self) -> timedelta:
        """How long an upload can wait for the commit."""
        return _UPLOAD_AGE if self.multipart_max_age is None else self.multipart_max_age

    @property
    def kept_directories(self) -> int:
        """How many of a partition's newest revisions keep a directory of their own."""
        return self.keep_revisions or _KEEP_REVISIONS

    @model_validator(mode="after")
    def _rows_in_order(self) -> TargetConfig:
        same = {
            {Transform.IDENTITY: it.column, Transform.STATIC: it.name}.get(it.transform)
            for it in self.partition_by
        }
        for key in self.sort_by:
            if key.column in same:
                problem = f"'{key.column}' is a partition key: it is the same in all rows of a file"
                raise KeyProblem(problem, key="sort_by")
        if self.write == "upsert" and self.shuffle_by_partition:
            problem = "would lose the order of changes, which `write: upsert` needs"
            raise KeyProblem(problem, key="shuffle_by_partition")
        if self.shuffle_by_partition and not self.partition_by:
            problem = "needs partition keys; `target.partition_by` names none"
            raise KeyProblem(problem, key="shuffle_by_partition")
        return self

    @model_validator(mode="after")
    def _is_whole_table(self) -> TargetConfig:
        check_table_keys(vars(self), self.model_fields_set)
        return self

    @model_validator(mode="after")
    def _work_outside(self) -> TargetConfig:
        refuse_work_inside(self.work, self.path)
        return self


def _is_told(place: str) -> bool:
    return "${env:" not in place


def _static_value(name: str, value: Any, fields: Mapping[str, Any]) -> str:
    """Return the definition of a static key.

    Raises:
        KeyProblem: it is no key of the target, or its value names no directory.
    """
    key = f"static_partition.{name}"
    if name not in fields:
        problem = f"'{name}' is no key of `target.partition_by`; {suggest(name, fields)}"
        raise KeyProblem(problem, key=key)
    if not isinstance(value, str) or not value:
        problem = (
            f"expected the text of the directory, found {value!r}; write a date or a number in "
            "quotes, as it stands in the path"
        )
        raise KeyProblem(problem, key=key)
    return literal(value)


def _reads_as(text: str, form: str) -> bool:
    try:
        datetime.strptime(text, form)  # noqa: DTZ007 (partition values are wall clock)
    except ValueError:
        return False
    return True


def work_beside(target: str) -> str:
    """Return the default work directory of a target.

    Raises:
        KeyProblem: the target is a bare `${env:…}`, so that no path beside it can be written.
    """
    parent, name = posixpath.split(target.rstrip("/"))
    if "${env:" in name or not name or parent.endswith(":"):
        problem = f"is required, because `target.path: {target}` has no plain name at its end"
        raise KeyProblem(problem, key="work")
    return posixpath.join(parent, f".tidegate-{name}")


def refuse_work_inside(work: str, target: str) -> None:
    """Check that readers who list the target never see the work directory, by real path (PC-F03).

    Raises:
        WorkInsideTarget: it is the target, or is below it.
    """
    if lies_inside(work, target) or lies_inside(real_place(work), real_place(target)):
        raise WorkInsideTarget(work=work, target=target)
