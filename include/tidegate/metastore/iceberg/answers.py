"""Tell a catalog or store that does not answer from one that refuses. Opens nothing."""

from __future__ import annotations

import re

from pyiceberg.exceptions import (
    BadRequestError,
    CommitStateUnknownException,
    ForbiddenError,
    OAuthError,
    RESTError,
    UnauthorizedError,
)

from tidegate.errors import StoreDenied

SILENT = (OSError, RESTError, OAuthError, CommitStateUnknownException)
REFUSED = (BadRequestError, UnauthorizedError, ForbiddenError, OAuthError)
"""Answers by which a catalog says that asking again is of no use."""
_CLIENTS = {"sqlalchemy", "thrift", "hive_metastore", "botocore"}
"""Packages with errors of their own, which are not always installed."""
_REFUSED = re.compile(
    r"key '(?P<key>[^']*)' in bucket '(?P<bucket>[^']*)'.*AWS Error "
    r"(?:ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|INVALID_CLIENT_TOKEN_ID)\b",
    re.DOTALL,
)
"""How Arrow words that a store will not have these credentials; it has no class for that."""


def is_silence(failed: Exception) -> bool:
    """Return whether an error says that a catalog or store gave no answer."""
    return isinstance(failed, SILENT) or type(failed).__module__.split(".")[0] in _CLIENTS


def denial(failed: Exception) -> StoreDenied | None:
    """Return the error for what a store refuses to these credentials; None for any other."""
    said = _REFUSED.search(str(failed)) if isinstance(failed, OSError) else None
    if said is None:
        return None
    return StoreDenied(path=f"s3://{said['bucket']}/{said['key']}", problem=str(failed).rstrip("."))
