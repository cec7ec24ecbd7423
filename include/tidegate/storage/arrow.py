"""The file system by which Arrow's datasets, and tables on top of them, reach a storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.storage.addresses import S3, is_object
from tidegate.storage.s3_client import arrow_options, arrow_place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow.fs as pafs

    from tidegate.storage.s3_client import S3Options
    from tidegate.storage.stores import Stores

_TABLE_KEYS = {
    "s3.access-key-id": "access_key",
    "s3.secret-access-key": "secret_key",
    "s3.session-token": "session_token",
    "s3.region": "region",
}
_CREDENTIALS = {
    f"{of}.{part}"
    for of in ("s3", "client")
    for part in ("access-key-id", "secret-access-key", "session-token", "anonymous")
}
"""Those of `client.…` are for the files of tables, too; others, as of `glue.…`, are not."""


def arrow_files(storage: Stores, root: str) -> tuple[pafs.FileSystem, Callable[[str], str]]:
    """Return a file system, and how it names the files below a root.

    It has the credentials of now, and does not renew them.
    """
    import pyarrow.fs as pafs

    if not is_object(root):
        return pafs.LocalFileSystem(), str
    options = arrow_options(storage.objects.calls.options)
    return pafs.S3FileSystem(**options), lambda path: path.removeprefix(S3)


def table_properties(options: S3Options, said: Mapping[str, str]) -> dict[str, str]:
    """Return the properties by which the files of an Iceberg table are reached in a store.

    They have the credentials of now, and do not renew them.

    Args:
        options: how Tidegate reaches the store.
        said: properties of the catalog, which win one by one; if one of them is a part of
            credentials, the options give none, so that no pair is mixed.

    Raises:
        CredentialsMissing: there are no credentials.
    """
    found = arrow_options(options) if _CREDENTIALS.isdisjoint(said) else arrow_place(options)
    properties = {key: found[name] for key, name in _TABLE_KEYS.items() if found.get(name)}
    if "client.region" in said:
        # The library would ask for the other name first.
        del properties["s3.region"]
    if "endpoint_override" in found:
        properties["s3.endpoint"] = f"{found['scheme']}://{found['endpoint_override']}"
    return {**properties, **said}
