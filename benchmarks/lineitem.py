"""Make the second case: TPC-H's `lineitem`, sixteen columns with decimals and free text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.job import Job

FILES = 10
MILLION_ROWS_PER_SCALE = 6


def make_lineitem(folder: Path, million_rows: int) -> Path:
    """Write the table unless it is there.

    Args:
        folder: for the table's folder.
        million_rows: about how many.

    Returns:
        The folder of its files.
    """
    files = folder / "lineitem"
    if len(list(files.glob("*.parquet"))) < FILES:
        subprocess.run(
            [
                str(Path(sys.executable).with_name("tpchgen-cli")),
                *("parquet", "--compression", "ZSTD(1)", "--row-group-bytes", "32MB"),
                *("--scale-factor", f"{million_rows / MILLION_ROWS_PER_SCALE:g}"),
                *("--tables", "lineitem", "--parts", str(FILES), "--overwrite"),
                *("--output-dir", str(folder)),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    return files


def lineitem_job(source: Path) -> Job:
    """Keep three of seven ways to ship, write by month: 84 of them in every file."""
    return Job(
        kind="files",
        source=str(source),
        filter="l_shipmode in ('AIR', 'MAIL', 'SHIP')",
        event_time="l_shipdate",
        unit="month",
        sums=(
            "sum(l_orderkey)",
            "sum(l_partkey * l_linenumber)",
            "sum(l_extendedprice)",
            "sum(l_discount * l_quantity)",
            "bit_xor(hash(l_comment))",
            "sum(length(l_shipinstruct))",
            "min(l_shipmode)",
            "max(l_shipmode)",
            "sum(l_receiptdate - DATE '1970-01-01')",
        ),
    )
