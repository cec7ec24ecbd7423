"""Open tables of catalogs whose answer pyiceberg cannot parse for a variant column (ICE-1.3).

They are static tables, because a commit would write the marked columns into the table's metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pydantic import ValidationError as ShapeError
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.catalog.rest import Endpoints, RestCatalog, TableResponse
from pyiceberg.exceptions import ValidationError
from pyiceberg.io import PY_IO_IMPL
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StaticTable

from tidegate.source.iceberg.table.variants import load_metadata, mark_variants

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

_REFUSED = "Unsupported field type: 'variant'"
_SNAPSHOTS = "snapshot-loading-mode"


def load_table(catalog: Catalog, identifier: str) -> Table:
    """Load a table; raises the catalog's errors, except those about a variant alone."""
    try:
        return catalog.load_table(identifier)
    except (ShapeError, ValidationError, ValueError) as refused:
        if _REFUSED not in str(refused):
            raise
    if isinstance(catalog, RestCatalog):
        return _from_answer(catalog, identifier)
    return load_metadata(_located(catalog, identifier), dict(catalog.properties))


class LocatingFileIO(PyArrowFileIO):
    """Opens nothing, but raises an error with the metadata file that a catalog would read."""

    def new_input(self, location: str) -> NoReturn:
        """Raise the error for the first file that a catalog opens."""
        raise _LocatedError(location)


class _LocatedError(Exception):
    """A catalog named a table's metadata file."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


def _located(catalog: Catalog, identifier: str) -> str:
    """Ask a catalog that stores locations for that of a table, without parsing the file."""
    configured = catalog.properties
    locating = f"{LocatingFileIO.__module__}.{LocatingFileIO.__qualname__}"
    catalog.properties = {**configured, PY_IO_IMPL: locating}
    try:
        # If there is no variant any more, the table was replaced meanwhile, and its location is as
        # good.
        return catalog.load_table(identifier).metadata_location
    except _LocatedError as found:
        return found.location
    finally:
        catalog.properties = configured


def _from_answer(catalog: RestCatalog, identifier: str) -> StaticTable:
    """Read the answer of a REST catalog, which has metadata, settings and credentials in it."""
    mode = catalog.properties.get(_SNAPSHOTS)
    response = catalog._session.get(
        catalog.url(
            Endpoints.load_table, prefixed=True, **catalog._split_identifier_for_path(identifier)
        ),
        params={"snapshots": mode} if mode else {},
    )
    response.raise_for_status()
    answer = response.json()
    mark_variants(answer["metadata"])
    table = catalog._response_to_table(
        catalog.identifier_to_tuple(identifier), TableResponse.model_validate(answer)
    )
    return StaticTable(
        identifier=table.name(),
        metadata=table.metadata,
        metadata_location=table.metadata_location,
        io=table.io,
        catalog=NoopCatalog("static-table"),
        config=table.config,
    )
