"""A pipeline's life in six steps, each of which may be done again.

What stands at the end can be compared.

`APPENDS`: three windows of up to three partitions; each window is cut into two splits of two
sub-splits. The third window brings late rows for the first day; the second day is held by a row
rule and approved; then the second window is replayed with a changed pipeline file, which puts the
offending row aside. `ASSEMBLED` is the same with rows that are handed on. What else can be lived is
a `Scenario` of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from pyiceberg.catalog import load_catalog

from crash.promises import visible_below
from tidegate.config import OWNER_FILE
from tidegate.errors import DecisionRefused, NotHeld, PublicationLapsed
from tidegate.ledger.schema import metadata
from tidegate.model.assembly import MANY_PARTITIONS
from tidegate.model.message import CommitMessage
from tidegate.model.partition import Partition
from tidegate.model.run import Run
from tidegate.pipeline import Pipeline, open_pipeline
from tidegate.pipeline.state.holders import process_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from tidegate.pipeline.executors import ExecutorFactory
    from tidegate.storage import Storage

DAY_1 = datetime(2026, 2, 1, tzinfo=UTC)
# Rows per day of each source commit. Two row groups a file make two splits, ten rows a sub-split.
COMMITS: tuple[dict[int, int], ...] = (
    {1: 24, 2: 16},
    {1: 6, 2: 20, 3: 14},
    {1: 10, 3: 24, 4: 6},
)
BAD_AMOUNT = 5_000
HELD = Partition((("dt", "2026-02-02"),))

PIPELINE = """
name: orders
source:
  kind: iceberg
  metadata: {metadata}
  split: {{target_size: 1KiB, open_cost: 1B, max_rows: 10}}
event_time: at
rows:
  - {{name: sane, where: "amount < 1000", on_failure: {variant}}}
target:
  path: {root}/published/orders
  partition_by: {{dt: day(at)}}
"""


class InTurn:
    """An executor that does one split after the other in this process."""

    def run(
        self,
        task: Callable[[str, int, str], tuple[CommitMessage, ...]],
        plan_uri: str,
        indexes: Sequence[int],
        attempt: str,
    ) -> Iterator[CommitMessage]:
        """Do the splits in order, so that changes have the same numbers each time."""
        for index in indexes:
            yield from task(plan_uri, index, attempt)


@contextmanager
def in_turn(_engine: str) -> Iterator[InTurn]:
    """Give the executor, whatever engine is asked for."""
    yield InTurn()


def make_source(folder: Path) -> tuple[str, tuple[datetime, ...]]:
    """Make the Iceberg table, one commit a window.

    Its metadata file, and when each commit was made.
    """
    folder.mkdir(parents=True)
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh"
    )
    catalog.create_namespace("raw")
    made = 0
    table = None
    for number, days in enumerate(COMMITS):
        rows: dict[str, list[Any]] = {"id": [], "at": [], "amount": []}
        for day, count in days.items():
            for row in range(count):
                made += 1
                rows["id"].append(made)
                rows["at"].append(DAY_1 + timedelta(days=day - 1, minutes=row))
                bad = (number, day, row) == (1, 2, 3)
                rows["amount"].append(BAD_AMOUNT if bad else row)
        batch = pa.table(
            {
                "id": pa.array(rows["id"], pa.int64()),
                "at": pa.array(rows["at"], pa.timestamp("us", "UTC")),
                "amount": pa.array(rows["amount"], pa.int64()),
            }
        )
        if table is None:
            table = catalog.create_table(
                "raw.orders",
                schema=batch.schema,
                properties={"write.parquet.row-group-limit": "20"},
            )
        table.append(batch)
    if table is None:
        msg = "there are no commits"
        raise AssertionError(msg)
    times = tuple(datetime.fromtimestamp(item.timestamp_ms / 1000, UTC) for item in table.history())
    return table.metadata_location, times


@dataclass(frozen=True)
class Scenario:
    """What a life is lived on: a source, and a pipeline file that changes before the replay."""

    make_source: Callable[[Path], tuple[str, tuple[datetime, ...]]]
    """Makes the table: its metadata file, and when each commit was made."""
    file: str
    """The pipeline file, with `{metadata}`, `{root}` and `{variant}` to fill in."""
    variants: tuple[str, str]
    """How the file is before the replay, and for it."""
    replayed: int
    """Number of the window that is replayed."""
    held: Partition | None = None
    """Partition that somebody has to approve."""
    many: int = MANY_PARTITIONS
    """From how many partitions of a sub-split on its rows are handed on to be assembled."""
    in_store: bool = False
    """Whether the target is in a store, of which the root of a life is a bucket."""
    is_listed: bool = False
    """Whether partitions are listed in a metastore."""


APPENDS = Scenario(make_source, PIPELINE, ("hold", "quarantine"), 2, HELD)
ASSEMBLED = replace(APPENDS, many=2)


def apart(scenario: Scenario) -> Scenario:
    """Give a scenario in which each revision has a directory of its own."""
    by_day = "partition_by: {{dt: day(at)}}"
    assert by_day in scenario.file
    return replace(scenario, file=scenario.file.replace(by_day, f"{by_day}\n  layout: revisions"))


BUCKET = "lives"
_REACHED = """
s3:
  endpoint: "${{env:TIDEGATE_TEST_ENDPOINT}}"
  region: us-east-1
  access_key: "${{env:TIDEGATE_TEST_KEY}}"
  secret_key: "${{env:TIDEGATE_TEST_SECRET}}"
"""


def in_store(scenario: Scenario) -> Scenario:
    """Give a scenario whose target is in a store."""
    on_disk = "path: {root}/published/orders"
    assert on_disk in scenario.file
    file = scenario.file.replace(on_disk, f"path: s3://{BUCKET}/published/orders") + _REACHED
    return replace(scenario, file=file, in_store=True)


@dataclass(frozen=True)
class Life:
    """A scenario on one root directory."""

    root: Path
    metadata: str
    """The source table's metadata file."""
    times: tuple[datetime, ...]
    """When each source commit was made."""
    scenario: Scenario = APPENDS

    def pipeline(
        self, storage: Storage | None, variant: str, watch: Callable[[sa.Engine], None] | None
    ) -> Pipeline:
        """Open the pipeline with its file as it is in this step."""
        path = self.root / f"orders-{variant}.yaml"
        pipeline = open_pipeline(path, ledger=f"sqlite:///{self.root}/ledger.db", storage=storage)
        if watch is not None:
            watch(pipeline.ledger.engine)
        return pipeline

    def prepare(self) -> None:
        """Write the pipeline files and make the ledger: what a user does before the first run."""
        self.root.mkdir(parents=True)
        (self.root / "published").mkdir()
        for variant in self.scenario.variants:
            text = self.scenario.file.format(
                metadata=self.metadata,
                root=self.root,
                variant=variant,
                metastore=os.environ.get("TIDEGATE_TEST_METASTORE_PORT", ""),
            )
            (self.root / f"orders-{variant}.yaml").write_text(text)
        self.pipeline(None, self.scenario.variants[0], None).ledger.engine.dispose()

    def live(
        self,
        storage: Storage | None = None,
        watch: Callable[[sa.Engine], None] | None = None,
        executors: ExecutorFactory = in_turn,
    ) -> None:
        """Do every step; what is done already changes nothing."""
        with (
            patch("tidegate.plan.assembly.MANY_PARTITIONS", self.scenario.many),
            # Changes have the same numbers each time only if one file is written after the other,
            # and one partition published after the other.
            patch("tidegate.stage.merged_files._workers", lambda _jobs: 1),
            patch("tidegate.pipeline.publish_steps._AT_ONCE", 1),
        ):
            self._live(storage, watch, executors)

    def _live(
        self,
        storage: Storage | None,
        watch: Callable[[sa.Engine], None] | None,
        executors: ExecutorFactory,
    ) -> None:
        owner = process_owner("cli")
        first, second = self.scenario.variants
        pipeline = self.pipeline(storage, first, watch)
        for time in (*self.times[1:], None):
            run = Run("load", owner, until=time)
            pipeline.load(run, _now(), executors)
            self._publish(pipeline, owner)
            self._approve(pipeline, owner)
        changed = self.pipeline(storage, second, watch)
        run = Run("replay", owner)
        planned = changed.replay(self.scenario.replayed, run, _now())
        changed.finish_load(planned, _now(), executors)
        self._publish(changed, owner)

    def _publish(self, pipeline: Pipeline, owner: str) -> None:
        for outcome in pipeline.publish_all(owner, _now()):
            if outcome.error is not None:
                raise AssertionError(outcome.error)

    def _approve(self, pipeline: Pipeline, owner: str) -> None:
        held = self.scenario.held
        state = pipeline.ledger.partitions.find(held) if held else None
        if held is None or state is None or state.pending != "held":
            return
        shown = pipeline.ledger.publications.proposed(held)
        if shown is None:
            msg = f"{held} is held without a publication"
            raise AssertionError(msg)
        try:
            pipeline.decide(
                held,
                publication=shown.publication.digest,
                approved=True,
                by="ada",
                comment="looked at it",
                now=_now(),
            )
        except (DecisionRefused, NotHeld, PublicationLapsed) as refused:
            raise AssertionError(str(refused)) from refused
        self._publish(pipeline, owner)


VOLATILE = {
    "registered_at",
    "taken_at",
    "sealed_at",
    "planned_at",
    "announced_at",
    "proposed_at",
    "committed_at",
    "ledger_id",
    "run",
    "attempt",
    "claim_fence",
    "uri",
    "messages_uri",
    "next_number",
    "number",
    "reserved",
    "first_fence",
}
"""Columns that tell when, by whom and how often something was done."""

IS_SET = {"claim_expires", "claim_owner", "expires", "first_seen", "owner"}
"""Columns of which only this is the same each time."""

MOMENTS = {"at", "checked_at", "evaluated_at", "last_data_at", "seconds"}
"""Keys of values that tell when something was done, and how long it took."""


def ending(root: Path) -> dict[str, Any]:
    """Give everything that has to be equal at the end.

    Files with their bytes, markers, the ledger, and what sub-splits handed each other.
    """
    published = root / "published" / "orders"
    files = {
        str(path.relative_to(published)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(published.rglob("*"))
        if path.is_file() and path.name not in {"_SUCCESS", OWNER_FILE}
    }
    markers = {}
    for path in sorted(published.rglob("_SUCCESS")):
        marker = json.loads(path.read_bytes())
        del marker["provenance"]
        markers[str(path.relative_to(published))] = marker
    owner = json.loads((published / OWNER_FILE).read_bytes())
    # Every life has a ledger of its own.
    owner["ledger"] = owner["ledger"] == json.loads(_owner_of_work(root))["ledger"]
    return {
        "files": files,
        "markers": markers,
        "owner": owner,
        "ledger": ledger_content(root),
        "rows": listed_rows(published),
        "visible rows": visible_rows(published),
        "quarantined": quarantined(root),
        "exchanged": exchanged(root),
    }


def _owner_of_work(root: Path) -> bytes:
    return (root / "published" / ".tidegate-orders" / "owner.json").read_bytes()


def quarantined(root: Path) -> list[tuple[str, str, str]]:
    """Give what a message says was put aside: its file, by rule and name, as said and as found."""
    found = []
    for path in root.rglob("windows/*/*/messages/*.json"):
        for part in CommitMessage.from_text(path.read_bytes()).staged.quarantined:
            file = path.parent.parent / part.staged
            content = hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else "no file"
            found.append((f"{file.parent.name}/{file.name}", part.sha256, content))
    return sorted(found)


def exchanged(root: Path) -> list[str]:
    """List the files of changed rows that stand between sub-splits."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("exchange/**/*.arrow"))


def ledger_content(root: Path) -> dict[str, list[dict[str, Any]]]:
    """Read all tables but for what tells when and by whom.

    Staged paths without the attempt's name, uploads without what names them, commit plans without
    the digest of all that they tell.
    """
    engine = sa.create_engine(f"sqlite:///{root}/ledger.db")
    content = {}
    with engine.connect() as connection:
        for table in metadata.sorted_tables:
            rows = connection.execute(sa.select(table)).mappings()
            content[table.name] = sorted(
                (
                    {key: _plain(key, item) for key, item in row.items() if key not in VOLATILE}
                    for row in rows
                    if row.get("state") != "dropped"
                ),
                key=lambda row: json.dumps(row, sort_keys=True, default=str),
            )
    engine.dispose()
    return content


def _plain(key: str, item: Any) -> Any:
    if key == "commit_plan" and item is not None:
        return item.rpartition("-")[0]
    if key in IS_SET:
        return item is not None
    if isinstance(item, dict):
        return {key: value for key, value in item.items() if key not in MOMENTS}
    if isinstance(item, list):
        return [
            {
                # Whether it was sent to its place; the store names each upload anew.
                key: value is not None if key == "upload" else value
                for key, value in entry.items()
                if key != "staged"
            }
            if isinstance(entry, dict)
            else entry
            for entry in item
        ]
    return item


def listed_rows(published: Path) -> list[str]:
    """Read the rows of all files that a marker lists."""
    files = [
        marker.parent / file["name"]
        for marker in published.rglob("_SUCCESS")
        for file in json.loads(marker.read_bytes())["files"]
    ]
    return _rows(files)


def visible_rows(published: Path) -> list[str]:
    """Read the rows of all files that an engine sees when it lists the table."""
    return _rows(visible_below(published))


def _rows(files: Iterable[Path]) -> list[str]:
    return sorted(
        str(row)
        for file in files
        for row in pq.read_table(file, partitioning=None).to_pylist(maps_as_pydicts="strict")
    )


def _now() -> datetime:
    return datetime.now(UTC)
