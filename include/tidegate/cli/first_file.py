"""Look at a table and draft a first pipeline file for it. Writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from tidegate.config import (
    absolute_path,
    guess_event_time,
    pipeline_template,
    place_outside,
    read_source,
    refuse_overlap_of,
    source_meant_by,
    work_beside,
)
from tidegate.errors import (
    CredentialsMissing,
    CredentialsUnset,
    PlacesOverlap,
    SourceNotFound,
    TableNotFound,
)
from tidegate.source import guessed_options, open_source
from tidegate.storage import Stores

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


@dataclass(frozen=True)
class DraftFile:
    """A pipeline file that is not written yet."""

    name: str
    text: str
    event_time: str | None
    """The column that was guessed."""
    source: str
    """The address of the source, as the ledger registers it."""
    target: str


def draft_pipeline(table: str, now: datetime, *, name: str | None, target: str | None) -> DraftFile:
    """Look at a table and draft a pipeline file for it.

    Args:
        table: an Iceberg table as `catalog.namespace.table`, directory or metadata file, the
            directory of a Hudi table, or the root directory of plain Parquet files, which may be an
            address in a store that AWS's own variables and files say how to reach.
        now: the clock; the time of a listing of files.
        name: of the pipeline; by default derived from the table's.
        target: where to publish; by default `published/<table>` in the current directory, or beside
            the source if that is the source's own directory.

    Raises:
        PlacesOverlap: `target` is inside the source, or contains it.
        TableNotFound: there is no table of that name.
        CredentialsUnset: it is in a store, and nothing says who asks.
        TidegateError: it cannot be read.
    """
    mapping = source_meant_by(table)
    try:
        mapping |= guessed_options(read_source(mapping), Stores())
        source = open_source(read_source(mapping), Stores())
        schema = source.reading.schema(source.timeline.pin(now))
    except SourceNotFound as absent:
        raise TableNotFound(**absent.values) from absent
    except CredentialsMissing as unset:
        # There is no section `s3` yet that could have them.
        raise CredentialsUnset(**unset.values) from unset
    columns = [(field.name, str(field.type)) for field in schema]
    text = pipeline_template(mapping, columns, target="/", name=name)
    chosen = yaml.safe_load(text)["name"]
    where = _target(chosen, target, source.places())
    text = pipeline_template(mapping, columns, target=where, name=chosen)
    address = read_source(mapping).address
    return DraftFile(chosen, text, guess_event_time(columns), address, where)


def _target(name: str, given: str | None, sources: Sequence[str]) -> str:
    """Return where to publish: the given path, or the current directory, or beside the source."""
    target = absolute_path(given or f"published/{name}")
    known = {"target.path": target, "target.work": work_beside(target)}
    try:
        refuse_overlap_of(name, known, sources)
    except PlacesOverlap:
        if given is not None:
            raise
        return place_outside(name, "target.path", sources)
    return target
