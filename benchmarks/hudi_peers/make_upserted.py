"""Make the Hudi table that changes are upserted into: copy-on-write, with default settings.

Run by `spark-submit` in the peers' environment.
"""

from __future__ import annotations

import sys

from benchmarks.hudi_peers.layout import UPSERT_OPTIONS
from benchmarks.hudi_peers.session import open_session


def main(folder: str, rows: str) -> None:
    """Write the rows of a folder into a new table."""
    session = open_session()
    session.sparkContext.setLogLevel("ERROR")
    options = UPSERT_OPTIONS | {"hoodie.datasource.write.operation": "bulk_insert"}
    session.read.parquet(rows).write.format("hudi").options(**options).mode("append").save(folder)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
