"""A small lake whose pipeline publishes to an Iceberg table of the same catalog."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import In

from s3_servers import properties_of_tables, section_of_store
from small_lake import DAY_1, NOW, SCHEMA, SmallLake, day, known, stand_as_before
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pyiceberg.table import Table

TABLE = "shop.orders"


@dataclass
class LakeToLake(SmallLake):
    """Rows of one Iceberg table, published into another."""

    def __post_init__(self) -> None:
        """Make the source and the namespace of the target."""
        super().__post_init__()
        self.catalog.create_namespace("shop")
        target = {"kind": "iceberg", "catalog": self.source["catalog"], "table": TABLE}
        self.keys = {"target": target, **self.keys}

    @property
    def shop(self) -> Table:
        """The published table, as anybody else opens it."""
        catalog = self.keys["target"]["catalog"]
        section = {**section_of_store(), **self.keys}.get("s3", {})
        return load_catalog(**catalog, **properties_of_tables(section)).load_table(TABLE)

    @property
    def data(self) -> Path:
        """Where the data files of the published table are."""
        return self.target / "data"

    def rows(self, branch: str | None = None) -> dict[str, list[int]]:
        """Read the ids of the published rows by day, by the catalog."""
        table = self.shop
        ref = table.metadata.refs.get(branch or "main")
        if ref is None:
            return {}
        read = table.scan(snapshot_id=ref.snapshot_id).to_arrow()
        found: dict[str, list[int]] = {}
        for dt, number in zip(read["dt"].to_pylist(), read["id"].to_pylist(), strict=True):
            found.setdefault(dt, []).append(number)
        return {key: sorted(found[key]) for key in sorted(found)}

    def history(self) -> list[dict[str, Any]]:
        """Give the summaries of the published branch's snapshots, oldest first."""
        table = self.shop
        found, at = [], table.metadata.refs["main"].snapshot_id if table.metadata.refs else None
        while at is not None and (snapshot := table.metadata.snapshot_by_id(at)) is not None:
            found.append(dict(snapshot.summary.additional_properties) if snapshot.summary else {})
            at = snapshot.parent_snapshot_id
        return found[::-1]

    def change(self, amounts: Mapping[int, int]) -> None:
        """Replace the amounts of rows of the first day by id in one commit of the source."""
        self.commits += 1
        moment = {"known-at": known(self.commits - 0.5).isoformat()}
        at = [DAY_1 + timedelta(minutes=1) for _ in amounts]
        rows = pa.table({"id": [*amounts], "at": at, "amount": [*amounts.values()]}, SCHEMA)
        with self.table.transaction() as changing:
            changing.overwrite(
                rows, overwrite_filter=In("id", (*amounts,)), snapshot_properties=moment
            )

    @contextmanager
    def as_before(self) -> Iterator[Callable[[], None]]:
        """Give what puts everything back that a publish changes, as it stands now."""
        copied = self.root.parent / f"{self.root.name}-copied"
        shutil.copytree(self.root, copied, dirs_exist_ok=True)
        databases = ("ledger.db", "catalog.db")

        def put_back() -> None:
            for place in (self.target, self.work):
                stand_as_before(place, copied / place.relative_to(self.root))
            for path in (it for name in databases for it in self.root.glob(f"{name}*")):
                path.unlink()
            # A database has what is not written into it yet in a file beside it.
            for path in (it for name in databases for it in copied.glob(f"{name}*")):
                shutil.copy(path, self.root / path.name)

        yield put_back
        shutil.rmtree(copied)


def publish_and_die(moment: str, file: str, ledger: str) -> None:
    """Publish the first day in a process of its own, killed before or after the snapshot."""
    real = SqlCatalog.commit_table

    def commit_table(catalog: SqlCatalog, *args: Any) -> Any:
        if moment == "after":
            real(catalog, *args)
        os.kill(os.getpid(), signal.SIGKILL)

    SqlCatalog.commit_table = commit_table  # type: ignore[method-assign]
    open_pipeline(file, ledger=ledger).publish(day(1), "cli", NOW, by_command=True)
