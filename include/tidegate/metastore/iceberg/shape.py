"""Compare a table with the one that a pipeline publishes, make it, and widen its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.exceptions import (
    CommitFailedException,
    ResolveError,
    TableAlreadyExistsError,
    ValidationError,
)
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException
from pyiceberg.table.name_mapping import parse_mapping_from_json
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.transforms import IdentityTransform

from tidegate.errors import (
    TableColumnUnfit,
    TargetBranchMissing,
    TargetTableDiffers,
    TargetTableOwned,
)
from tidegate.metastore.agreement import same_place
from tidegate.model.held_branch import HELD

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.metadata import TableMetadata

    from tidegate.metastore.iceberg.catalog import TableAddress

OWNER = "tidegate.pipeline"
_DATA_PATH = "write.data.path"
"""The property by which other writers put data files elsewhere than below the location."""
_MAPPING = "schema.name-mapping.default"
"""Part files have no field ids, so that readers find their columns by name."""
_UNFIT = (ValidationError, ResolveError, ValueError, TypeError, NotImplementedError)


@dataclass(frozen=True)
class Shape:
    """The table as a pipeline publishes it."""

    pipeline: str
    location: str
    data: str
    """Where its data files are, below the location."""
    branch: str
    keys: tuple[str, ...]
    """The columns that it is partitioned by, as they are."""
    evolution: str
    """`widen`, `add_columns` or `none`: what may become of the columns that it has."""

    def check(self, address: TableAddress, table: Table) -> None:
        """Check owner, place, partitioning and branch of a table that is there.

        Raises:
            TargetTableOwned: another pipeline publishes to it.
            TargetTableDiffers: it or its data files are elsewhere, or it is partitioned otherwise.
            TargetBranchMissing: it does not have the branch.
        """
        owner = table.properties.get(OWNER)
        if owner not in {None, self.pipeline}:
            raise TargetTableOwned(table=address.name, owner=owner, pipeline=self.pipeline)
        if not same_place(table.location(), self.location):
            self._refuse(address, "location", self.location, table.location())
        data, elsewhere = self.data, table.properties.get(_DATA_PATH)
        if elsewhere is not None and not same_place(elsewhere, data):
            self._refuse(address, f"property `{_DATA_PATH}`", f"none, or {data}", elsewhere)
        spec = table.spec()
        names = [
            str(table.schema().find_column_name(field.source_id))
            if isinstance(field.transform, IdentityTransform)
            else str(field)
            for field in spec.fields
        ]
        if names != [*self.keys]:
            wanted = ", ".join(self.keys) or "none"
            self._refuse(address, "partitioning", wanted, ", ".join(names) or "none")
        # A table without a snapshot has no branch at all; the first commit makes it.
        known = [name for name in sorted(table.metadata.refs) if not name.startswith(HELD)]
        if known and self.branch not in {MAIN_BRANCH, *known}:
            found = ", ".join(known)
            raise TargetBranchMissing(table=address.name, branch=self.branch, known=found)

    def make(self, address: TableAddress, columns: pa.Schema) -> None:
        """Make the table; another commit may do so at the same time.

        Raises:
            TableColumnUnfit: Iceberg has no type for a column.
            TableNamespaceMissing, TableCatalogSilent: see `TableAddress`.
        """
        address.check_namespace()
        with address.answering():
            try:
                made = address.opened.create_table_transaction(
                    address.table,
                    schema=columns,
                    location=self.location,
                    properties={OWNER: self.pipeline},
                )
            except TableAlreadyExistsError:
                return
            except (UnsupportedPyArrowTypeException, TypeError, ValueError) as unfit:
                raise self._unfit(address, columns, unfit) from unfit
            with made.update_spec() as spec:
                for key in self.keys:
                    spec.add_identity(key)
            made.set_properties({_MAPPING: _mapping(made.table_metadata.schema())})
            try:
                made.commit_transaction()
            except (CommitFailedException, TableAlreadyExistsError):
                return

    def agree(self, address: TableAddress, transaction: Transaction, columns: pa.Schema) -> None:
        """Give the table the columns of the files, and the marks by which they are read.

        Raises:
            TableColumnUnfit: Iceberg has no type for a column.
            TargetTableDiffers: it has a column that rules out the files', or may not change; or
                another writer took one away; or readers would not find one.
        """
        metadata = transaction.table_metadata
        before = metadata.schema()
        self._check_required(address, before)
        try:
            with transaction.update_schema() as update:
                update.union_by_name(columns)
        except UnsupportedPyArrowTypeException as unfit:
            raise self._unfit(address, columns, unfit) from unfit
        except _UNFIT as unfit:
            self._refuse(address, "columns", _told(columns), f"{_listed(before)}: {unfit}")
        after = transaction.table_metadata.schema()
        self._check_new(address, metadata, after)
        self._check_evolution(address, before, after)
        self._mark(address, transaction, after)

    def _check_new(self, address: TableAddress, metadata: TableMetadata, after: Schema) -> None:
        """Refuse to add what another writer renamed or dropped, or spelled otherwise.

        The new column would take the name from the rows that stand, or give them old values back.
        """
        before = metadata.schema()
        alike = {field.name.casefold(): field.name for field in before.fields}
        former = {field.name for schema in metadata.schemas for field in schema.fields}
        known = {field.field_id for field in before.fields}
        for field in after.fields:
            if field.field_id in known:
                continue
            found = alike.get(field.name.casefold())
            if found is not None:
                self._refuse(address, "columns", f"a column '{field.name}'", f"one named '{found}'")
            elif field.name in former:
                said = f"none any more: it was renamed or dropped; there are {_listed(before)}"
                self._refuse(address, "columns", f"a column '{field.name}'", said)

    def _mark(self, address: TableAddress, transaction: Transaction, after: Schema) -> None:
        said = transaction.table_metadata.properties
        wanted = {} if OWNER in said else {OWNER: self.pipeline}
        mapping = said.get(_MAPPING)
        if mapping is None:
            wanted[_MAPPING] = _mapping(after)
        else:
            self._check_mapping(address, mapping, after)
        if wanted:
            transaction.set_properties(wanted)

    def _check_mapping(self, address: TableAddress, mapping: str, after: Schema) -> None:
        """Check that readers find each column of files without field ids."""
        named = {
            (field.field_id, name)
            for field in parse_mapping_from_json(mapping).root
            for name in field.names
        }
        lacking = [
            field.name
            for field in after.fields
            if (field.field_id, field.name) not in named and field.name not in self.keys
        ]
        if lacking:
            part, wanted = f"property `{_MAPPING}`", "the name of each column"
            self._refuse(address, part, wanted, f"none of {', '.join(lacking)}")

    def _check_required(self, address: TableAddress, found: Schema) -> None:
        for field in found.fields:
            if field.required and field.name not in self.keys:
                self._refuse(
                    address, f"column '{field.name}'", "a column that may be NULL", "required"
                )

    def _check_evolution(self, address: TableAddress, before: Schema, after: Schema) -> None:
        if self.evolution == "widen" or before.as_struct() == after.as_struct():
            return
        kept = after.as_struct().fields[: len(before.fields)]
        if self.evolution == "add_columns" and kept == before.as_struct().fields:
            return
        part = f"columns, under `target.evolve: {self.evolution}`"
        self._refuse(address, part, _listed(after), _listed(before))

    def _unfit(
        self, address: TableAddress, columns: pa.Schema, problem: Exception
    ) -> TableColumnUnfit:
        said = getattr(problem, "field", None)
        name = said.name if said is not None else ", ".join(columns.names)
        return TableColumnUnfit(table=address.name, column=name, problem=str(problem).rstrip("."))

    def _refuse(self, address: TableAddress, part: str, expected: str, found: str) -> None:
        raise TargetTableDiffers(
            table=address.name, part=part, expected=expected, found=found
        ) from None


def _mapping(schema: Schema) -> str:
    return schema.name_mapping.model_dump_json()


def _listed(schema: Schema) -> str:
    return ", ".join(f"{field.name} {field.field_type}" for field in schema.fields) or "none"


def _told(columns: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in columns)
