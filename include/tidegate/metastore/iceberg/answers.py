"""Tell a catalog that does not answer from one that refuses. Opens nothing."""

from __future__ import annotations

from pyiceberg.exceptions import (
    CommitStateUnknownException,
    OAuthError,
    RESTError,
)

SILENT = (OSError, RESTError, OAuthError, CommitStateUnknownException)
_CLIENTS = {"sqlalchemy", "thrift", "hive_metastore", "botocore"}
"""Packages with errors of their own, which are not always installed."""


def is_silence(failed: Exception) -> bool:
    """Return whether an error says that a catalog or store gave no answer."""
    return isinstance(failed, SILENT) or type(failed).__module__.split(".")[0] in _CLIENTS
