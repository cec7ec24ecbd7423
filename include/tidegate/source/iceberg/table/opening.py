"""Open a table by catalog or metadata file, with the secrets of this process."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError as ShapeError
from pyiceberg.exceptions import (
    NoSuchNamespaceError,
    NoSuchTableError,
    NotInstalledError,
    ValidationError,
)
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.utils.config import Config

from tidegate.config import resolve_secret
from tidegate.errors import (
    SourceFileDamaged,
    SourceNotFound,
    SourceRefuses,
    SourceUnreachable,
    UnsupportedFeature,
)
from tidegate.metastore.iceberg.answers import REFUSED, SILENT, is_silence
from tidegate.source.iceberg.table.paths import REWRITE_PROPERTY, REWRITING_IO, rewrite
from tidegate.source.iceberg.table.variants import load_metadata
from tidegate.source.iceberg.table.version_hint import is_metadata_file, newest_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table import Table

    from tidegate.config import IcebergSourceConfig

_IO_PROPERTY = "py-io-impl"
_MISSING = (NoSuchTableError, NoSuchNamespaceError)
# Of compressed metadata; the first is an OSError of its own.
_TORN = (gzip.BadGzipFile, zlib.error, EOFError)
_PLANNING = "scan-planning-mode"
# pyiceberg refuses these while it parses metadata, in words of its own.
_FEATURES = (
    (re.compile(r"Unsupported field type: '?(variant|geometry|geography)"), "a column of type {}"),
    (
        re.compile(
            r"Unknown format version:? ?v?(\d+)|Input tag '(\d+)' found using 'format_version'"
        ),
        "format {}",
    ),
    (re.compile(r"manifest-list\s+Field required"), "v1 metadata with inline manifests{}"),
)


class TableOpener:
    """Opens one table; every call looks again."""

    def __init__(self, config: IcebergSourceConfig) -> None:
        self._config = config
        self._catalog_name = config.catalog.name if config.catalog else None

    @property
    def source(self) -> str:
        """The table's name for people."""
        if self._config.metadata is not None:
            return str(self._config.metadata)
        return f"{self._catalog_name}.{self._config.table}"

    def open(self) -> Table:
        """Load the table's newest metadata.

        Raises:
            SourceNotFound: there is no catalog, table or metadata file of that name.
            SourceUnreachable: catalog or store did not answer (Transient).
            SourceRefuses: the catalog answered that it will not.
            UnsupportedFeature: the metadata or the catalog requires a feature that this version
                refuses (ICE-1.3).
            SourceFileDamaged: the metadata cannot be parsed.
        """
        if self._config.metadata is not None:
            return self.open_metadata(str(self._config.metadata))
        # Catalogs bring their clients along, and a task asks none.
        from pyiceberg.catalog import load_catalog

        from tidegate.source.iceberg.table.unparsed import load_table

        try:
            catalog = load_catalog(self._catalog_name, **self._properties())
            table = load_table(catalog, str(self._config.table))
        except _MISSING as absent:
            raise SourceNotFound(source=self.source, problem=str(absent)) from absent
        except (ShapeError, ValidationError, *_TORN) as refused:
            raise self._refusal(refused) from refused
        except (ValueError, NotInstalledError) as unknown:
            raise SourceNotFound(
                source=self.source, problem=f"catalog '{self._catalog_name}': {unknown}"
            ) from unknown
        except FileNotFoundError as absent:
            raise SourceNotFound(source=self.source, problem=str(absent)) from absent
        except REFUSED as refused:
            raise SourceRefuses(source=self.source, problem=str(refused)) from refused
        except SILENT as silent:
            raise SourceUnreachable(source=self.source, problem=str(silent)) from silent
        except Exception as failed:
            # Catalogs raise errors of their client libraries, which are not always installed.
            if not is_silence(failed):
                raise
            raise SourceUnreachable(source=self.source, problem=str(failed)) from failed
        self._check_planning({**catalog.properties, **table.config})
        return table

    def _check_planning(self, said: Mapping[str, Any]) -> None:
        # The server then does not expose its manifests, or filters rows by user (ICE-1.3).
        if str(said.get(_PLANNING, "")).lower() == "server":
            raise UnsupportedFeature(
                source=self.source, feature="a table that only its catalog may plan scans of"
            )

    def open_metadata(self, location: str) -> Table:
        """Load one metadata file, or the one that a table directory's version hint names.

        Raises:
            SourceNotFound: there is none; else as `open`.
        """
        # The resolver also serves what pyiceberg opens by a FileIO of its own choice (ICE-4.17).
        location = rewrite(location, self._config.location_rewrite)
        try:
            properties = self._properties()
            if not is_metadata_file(location):
                location = newest_metadata(load_file_io(properties, location), location)
            return load_metadata(location, properties)
        except FileNotFoundError as absent:
            raise SourceNotFound(source=self.source, problem=str(absent)) from absent
        except (ShapeError, ValidationError, ValueError, *_TORN) as refused:
            raise self._refusal(refused) from refused
        except SILENT as silent:
            raise SourceUnreachable(source=self.source, problem=str(silent)) from silent

    def files(self, location: str) -> FileIO:
        """Return access to the table's files without asking the catalog: what tasks use.

        Args:
            location: the metadata file; its scheme chooses the store.
        """
        configured: Mapping[str, Any] = {}
        if self._catalog_name:
            configured = Config().get_catalog_config(self._catalog_name) or {}
        return load_file_io({**configured, **self._properties()}, location)

    def _properties(self) -> dict[str, str]:
        properties = self._config.catalog.properties if self._config.catalog else {}
        given = {
            key: resolve_secret(value, f"source.catalog.{key}") for key, value in properties.items()
        }
        if self._config.location_rewrite or _IO_PROPERTY not in given:
            given[_IO_PROPERTY] = REWRITING_IO
            given[REWRITE_PROPERTY] = json.dumps(dict(self._config.location_rewrite))
        return given

    def _refusal(self, refused: Exception) -> UnsupportedFeature | SourceFileDamaged:
        text = str(refused)
        for pattern, feature in _FEATURES:
            match = pattern.search(text)
            if match:
                word = (
                    next((group for group in match.groups() if group), "") if match.groups() else ""
                )
                return UnsupportedFeature(source=self.source, feature=feature.format(word))
        return SourceFileDamaged(path=self.source, problem=f"no Iceberg metadata: {text}")
