"""A life whose partitions are listed in a real Hive metastore, which outlives whoever dies.

A reader who is sent somewhere by the metastore finds a whole revision there, at any moment.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow.parquet as pq
from hive_metastore.ThriftHiveMetastore import Client
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from crash.promises import visible_files
from tidegate.metastore.hive import HiveMetastore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crash.faults import Stopper
    from crash.scenario import Scenario

METASTORE = "TIDEGATE_TEST_METASTORE_PORT"
"""A variable: the port of the metastore of all lives."""
_DATABASE, _TABLE = "default", "orders"
_CHANGES = ("create", "drop", "put", "widen", "set_location")


def listed(scenario: Scenario) -> Scenario:
    """Give a scenario whose partitions are listed."""
    table = f"{{{{uri: 'thrift://127.0.0.1:{{metastore}}', table: {_DATABASE}.{_TABLE}}}}}"
    policies = "policies: [metastore, success-file]"
    commit = "commit: {{trigger: process-time}}"
    assert "\ntarget:\n" in scenario.file
    file = scenario.file.replace("\ntarget:\n", f"\ntarget:\n  metastore: {table}\n")
    if commit in file:
        file = file.replace(commit, f"commit: {{{{trigger: process-time, {policies}}}}}")
    else:
        file += f"commit: {{{{{policies}}}}}\n"
    return replace(scenario, file=file, is_listed=True)


def forget() -> None:
    """Drop the table: a life that has not begun has listed nothing."""
    with _client() as client:
        if _TABLE in client.get_all_tables(_DATABASE):
            client.drop_table(_DATABASE, _TABLE, False)


def broken_listing() -> str:
    """Say which partition is found where its revision is not whole; empty if none is."""
    with _client() as client:
        if _TABLE not in client.get_all_tables(_DATABASE):
            return ""
        found = client.get_partitions(_DATABASE, _TABLE, -1)
    for each in found:
        place, told = each.sd.location.removeprefix("file:"), each.parameters
        files = visible_files(place)
        rows = sum(pq.read_metadata(file).num_rows for file in files)
        if (str(len(files)), str(rows)) != (told["numFiles"], told["numRows"]):
            return f"{each.values} is listed at {place} with {told}, found {rows} rows in {files}"
    return ""


@contextmanager
def numbered_calls(stopper: Stopper) -> Iterator[None]:
    """Make each call that changes the metastore one that a life may end at."""

    def numbered(name: str) -> Any:
        found = getattr(HiveMetastore, name)

        def call(self: HiveMetastore, *arguments: Any) -> Any:
            with stopper.change(f"list {name}"):
                return found(self, *arguments)

        return call

    with patch.multiple(HiveMetastore, **{name: numbered(name) for name in _CHANGES}):
        yield


@contextmanager
def _client() -> Iterator[Client]:
    transport = TBufferedTransport(TSocket("127.0.0.1", int(os.environ[METASTORE])))
    transport.open()
    try:
        yield Client(TBinaryProtocol(transport))
    finally:
        transport.close()
