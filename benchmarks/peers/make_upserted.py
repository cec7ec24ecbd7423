"""Make the Iceberg table that changes are merged into: copy-on-write, else with default settings.

Run by `spark-submit` in the peers' environment.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.peers.layout import UPSERTED_TABLE
from benchmarks.peers.session import open_session


def main(warehouse: str, rows: str) -> None:
    """Write the rows of a folder into a new table."""
    session = open_session(Path(warehouse))
    session.sparkContext.setLogLevel("ERROR")
    session.sql(
        f"CREATE TABLE lake.{UPSERTED_TABLE} USING iceberg "
        "TBLPROPERTIES ('write.merge.mode'='copy-on-write') "
        f"AS SELECT * FROM parquet.`{rows}`"
    )
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
