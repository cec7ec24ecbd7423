"""Which tables there are, and where they are; standard library alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

GROUPS = 4
"""File groups of the merged tables."""
LOG_SHARES = {"logs": 1, "more_logs": 10}
"""Table → how many commits update one row in five."""
MANY_GROUPS = 1_000
"""File groups of the table whose planning is measured, one in each partition."""
UPDATED = 5
"""Each commit updates one row in so many."""
UPSERTED = "hudi-upsert"
"""The contestant that upserts changes into a table."""
UPSERT_OPTIONS = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.recordkey.field": "order_id",
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    ),
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.parquet.compression.codec": "zstd",
}
"""Copy-on-write, and its index, are defaults; so is gzip, which takes longer."""


def table_folder(warehouse: Path, name: str) -> Path:
    """Give the folder of a table."""
    return warehouse / name


def is_made(warehouse: Path, name: str) -> bool:
    """Say whether a table was made to its end."""
    return (warehouse / f"{name}.made").exists()


def mark_made(warehouse: Path, name: str) -> None:
    """Remember that a table was made to its end."""
    (warehouse / f"{name}.made").touch()
