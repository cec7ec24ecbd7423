"""The `target.metastore` section: the catalog in which readers find the partitions of a target."""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator

from tidegate.config.section import Section, words

OnEmpty = Literal["keep", "drop"]

LISTED_FORMATS = ("parquet", "orc")
"""Formats that engines read by themselves once a metastore names them. Of Avro they would expect
the types of Hive's own files; Spark 4.2 fails at a decimal and at the default partition."""
_TABLE = re.compile(r"\w+\.\w+", re.ASCII)


def _thrift(uri: str) -> str:
    for said in uri.split(","):
        if not _is_thrift(said.strip()):
            msg = f"expected `thrift://host:port`, found '{said.strip()}'"
            raise ValueError(msg)
    return uri


def _is_thrift(said: str) -> bool:
    place = urlsplit(said)
    try:
        return place.scheme == "thrift" and bool(place.hostname) and place.port != 0
    except ValueError:
        # The port is no number, or too large.
        return False


def _named(table: str) -> str:
    if not _TABLE.fullmatch(table):
        msg = f"expected `database.table`, found '{table}'"
        raise ValueError(msg)
    return table.lower()


class MetastoreConfig(Section):
    """A table of a Hive metastore, which the policy `metastore` keeps."""

    uri: Annotated[str, AfterValidator(_thrift)]
    """`thrift://host:port`, or several with commas between, tried in turn."""
    table: Annotated[str, AfterValidator(_named)]
    """`database.table`; a table that is not there is made, as an external one."""
    on_empty: Annotated[OnEmpty, words(OnEmpty)] = "keep"
    """`drop`: a partition whose revision has no files is taken off the list."""
