"""Catalogs in which readers find the partitions of a table: one module per kind of metastore.

Knows tables and partitions as a catalog lists them; decides nothing, and touches no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.metastore.hive import HiveMetastore

if TYPE_CHECKING:
    from tidegate.metastore.protocol import Metastore

__all__ = ["open_metastore"]


def open_metastore(uri: str, table: str) -> Metastore:
    """Return a table's metastore; nothing is connected before the first call.

    Args:
        uri: `thrift://host:port`, or several with commas between, tried in turn.
        table: `database.table`.
    """
    return HiveMetastore(uri, table)
