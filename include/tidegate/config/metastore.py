"""The `target.metastore` section: the catalog in which readers find the partitions of a target."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, ValidationInfo, model_validator

from tidegate.config.section import Section, words
from tidegate.config.words import KeyProblem

OnEmpty = Literal["keep", "drop"]
Through = Literal["thrift", "spark"]

LISTED_FORMATS = ("parquet", "orc")
"""Formats that engines read by themselves once a metastore names them. Of Avro they would expect
the types of Hive's own files; Spark 4.2 fails at a decimal and at the default partition."""
_TABLE = re.compile(r"(\w+\.)?\w+\.\w+", re.ASCII)


def _thrift(uri: str | None) -> str | None:
    for said in uri.split(",") if uri is not None else ():
        if "@" in said:
            msg = "expected `thrift://host:port`, found one with a user or a password"
            raise ValueError(msg)
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


def _named(table: str, info: ValidationInfo) -> str:
    if not _TABLE.fullmatch(table):
        msg = f"expected `database.table`, found '{table}'"
        raise ValueError(msg)
    # Hive knows no case; a catalog of Spark may.
    return table if info.data.get("through") == "spark" else table.lower()


class MetastoreConfig(Section):
    """A table of a catalog, which the policy `metastore` keeps."""

    through: Annotated[Through, words(Through)] = "thrift"
    """`thrift`: the Hive metastore at `uri` is asked; `spark`: the catalog of the Spark that this
    process has or starts, whatever that is."""
    uri: Annotated[str | None, AfterValidator(_thrift)] = None
    """`thrift://host:port`, or several with commas between, tried in turn."""
    table: Annotated[str, AfterValidator(_named)]
    """`database.table`, through Spark also `catalog.database.table`; a table that is not there is
    made, as an external one."""
    on_empty: Annotated[OnEmpty, words(OnEmpty)] = "keep"
    """`drop`: a partition whose revision has no files is taken off the list."""

    @property
    def runs_side_by_side(self) -> bool:
        """Whether one process may list several partitions at once: a session of Spark may not.

        It adds a column, or refuses it because another thread just did.
        """
        return self.through == "thrift"

    @property
    def server(self) -> str:
        """Whom errors name."""
        return self.uri or "of Spark"

    @property
    def place(self) -> str:
        """The table, and through what it is kept."""
        through = "Spark's catalog" if self.uri is None else self.uri
        return f"{self.table} through {through}"

    @model_validator(mode="after")
    def _is_found(self) -> Self:
        if self.through == "thrift" and self.uri is None:
            problem = (
                "is required: `thrift://host:port` of a Hive metastore; or write `through: spark` "
                "for the catalog of Spark"
            )
            raise KeyProblem(problem, key="uri")
        if self.through == "spark" and self.uri is not None:
            problem = (
                "is not asked with `through: spark`: Spark knows its catalog by its own settings; "
                "remove one of the two"
            )
            raise KeyProblem(problem, key="uri")
        if self.through == "thrift" and self.table.count(".") > 1:
            problem = f"expected `database.table`, found '{self.table}'"
            raise KeyProblem(problem, key="table")
        return self
