"""One pipeline on one root directory that can be put back to where a run begins.

Everything is the product's own: a pipeline file, a SQLite ledger, local storage. Only what stands
between them and the scheduler is a double.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from race import steps
from race.doubles import RacingSource, RacingStorage, Stage, watch_ledger
from race.moments import Clock
from race.steps import Step
from race.table import SourceTable
from tidegate.ledger import Ledger
from tidegate.ledger.holder import Life
from tidegate.pipeline import Pipeline, open_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import sqlalchemy as sa

    from race.objects import Bucket
    from race.table import RacedTable
    from tidegate.storage import Storage

FINER = {"split": {"max_rows": 1}}
"""Keys of `source` that make another plan, other files and the same rows."""
_LEDGER = "ledger.db"
RUN = "airflow:"
"""Begins the names of owners that are runs: they wait between two tasks."""


@contextmanager
def without_threads() -> Iterator[None]:
    """Let an actor do one thing after the other: the scheduler knows no threads but actors."""
    with (
        patch("tidegate.stage.merged_files._workers", lambda _jobs: 1),
        patch("tidegate.pipeline.publish_steps._AT_ONCE", 1),
    ):
        yield


@dataclass
class World:
    """A folder with a source, a root, and copies of roots that runs begin from."""

    folder: Path
    table: Callable[[Path], RacedTable] = SourceTable
    stage: Stage = field(default_factory=lambda: Stage(Clock()))
    bucket: Bucket | None = None
    """The store in which targets are; None: they are on the disk."""
    landed: int = 0
    """The source commit that can be seen."""
    expired: bool = False
    swapped: int = 0
    """How often the ledger was exchanged for another copy."""
    written: bool = False
    """Whether the ledger changed since somebody looked."""
    alive: set[str] = field(default_factory=set)
    """Owners that have not ended."""
    settled: dict[str, list[str]] = field(default_factory=dict)
    """State that was settled before → what was wrong then."""
    _keeper: sqlite3.Connection | None = None
    _engines: list[sa.Engine] = field(default_factory=list)
    _opened: dict[str, Pipeline] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.source = self.table(self.folder / "source")
        self.instants: list[str] = []

    @property
    def root(self) -> Path:
        """Where every run lives; plans and markers name it."""
        return self.folder / "root"

    @property
    def target(self) -> Path:
        """The published table."""
        return self.root / "published" / "orders"

    @property
    def work(self) -> Path:
        """The work directory of our pipeline."""
        return self.root / "published" / ".tidegate-orders"

    @property
    def clock(self) -> Clock:
        """The time of the run."""
        return self.stage.clock

    def make(self) -> None:
        """Write source and pipeline files, and an empty ledger; nothing was loaded."""
        self.source.make()
        self.instants = self.source.instants()
        (self.root / "published").mkdir(parents=True)
        self._write_file("orders")
        self._write_file("finer", source=FINER)
        (self.root / "link").symlink_to("published")
        self._write_file("twin", name="twin", target={**self._place("twin"), **self._twin})
        self._write_file("other", name="other", target=self._place("other"))
        self.show(1)
        self.open_all()
        self.save_ledger("empty")

    def show(self, number: int, *, expired: bool | None = None) -> None:
        """Let the source stand after a commit."""
        self.landed = number
        self.expired = self.expired if expired is None else expired
        self.stage.reach(Step(f"source commit {number}", writes={steps.SOURCE}))
        self.source.show(self.landed, expired=self.expired)

    def open_all(self) -> None:
        """Read the pipeline files, and connect to the ledger."""
        self._opened = {
            name: open_pipeline(self.root / f"{name}.yaml", ledger=self._url(ledger))
            for name, ledger in (
                ("orders", _LEDGER),
                ("finer", _LEDGER),
                ("twin", _LEDGER),
                ("other", "other.db"),
            )
        }
        self._engines = [self._opened[name].ledger.engine for name in ("orders", "other")]
        for engine in self._engines:
            watch_ledger(engine, self.stage, self._note_written)

    def pipeline(self, name: str = "orders") -> Pipeline:
        """Open a pipeline as a command does, with a source and caches of its own."""
        opened = self._opened[name]
        home = "other" if name == "other" else "orders"
        engine, clock = self._opened[home].ledger.engine, self.clock
        made = replace(
            opened,
            ledger=Ledger(engine, opened.config.name, lambda _connection: clock.time),
            storage=self._storage(),
            life_of=self._life_of,
        )
        vars(made)["source"] = RacingSource(made.source, self.stage)
        return made

    @contextmanager
    def living(self, owner: str) -> Iterator[None]:
        """Let an owner be found alive as long as the context lasts, and gone afterwards."""
        self.alive.add(owner)
        try:
            yield
        finally:
            self.alive.discard(owner)

    def _life_of(self, owner: str) -> Life:
        if owner not in self.alive:
            return Life.GONE
        return Life.WAITING if owner.startswith(RUN) else Life.RENEWING

    # ── Copies ───────────────────────────────────────────────────────────────────────────────

    def save(self, name: str) -> None:
        """Keep the root as it is, for runs to begin from."""
        self._let_go()
        about = {"landed": self.landed, "time": self.clock.time.isoformat()}
        shutil.copytree(self.root, self.folder / "saved" / name, symlinks=True)
        (self.folder / "saved" / f"{name}.json").write_text(json.dumps(about))

    def begin(self, name: str) -> None:
        """Put the root back to a saved one."""
        self._let_go()
        shutil.rmtree(self.root, ignore_errors=True)
        _link_tree(self.folder / "saved" / name, self.root)
        about = json.loads((self.folder / "saved" / f"{name}.json").read_bytes())
        self.clock.time = datetime.fromisoformat(about["time"])
        self.stage.born.clear()
        if self.bucket is not None:
            self.bucket.born.clear()
        self.swapped, self.alive = 0, set()
        self.show(about["landed"], expired=False)

    def save_ledger(self, name: str) -> None:
        """Back the ledger up."""
        folder = self.folder / "ledgers"
        folder.mkdir(exist_ok=True)
        with closing(sqlite3.connect(self.root / _LEDGER)) as connection:
            connection.execute("VACUUM INTO ?", [str(folder / f"{name}.db")])

    def exchange_ledger(self, name: str) -> None:
        """Put a copy in the ledger's place, as somebody does who restores a backup."""
        tables = {steps.table(item) for item in _TABLES}
        self.stage.reach(Step(f"exchange ledger {name}", writes=tables))
        self._let_go()
        for path in self.root.glob(f"{_LEDGER}*"):
            path.unlink()
        shutil.copyfile(self.folder / "ledgers" / f"{name}.db", self.root / _LEDGER)
        self.swapped += 1
        self.written = True

    def progress(self) -> tuple[str | None, str | None] | None:
        """Read checkpoint and watermark past everything; None where the pipeline is not known."""
        if self._keeper is None:
            self._keeper = sqlite3.connect(self.root / _LEDGER, check_same_thread=False)
        query = "select json_extract(checkpoint, '$.id'), watermark from pipeline where name = ?"
        row = self._keeper.execute(query, ["orders"]).fetchone()
        return (row[0], row[1]) if row else None

    def ledger_rows(self) -> list[bytes]:
        """Read all rows past everything."""
        self.progress()
        if self._keeper is None:
            return []
        found = []
        for name in _TABLES:
            rows = self._keeper.execute(f'select * from "{name}"').fetchall()
            found += sorted(f"{name} {row}".encode() for row in rows)
        return found

    def _note_written(self) -> None:
        self.written = True

    def _let_go(self) -> None:
        for engine in self._engines:
            engine.pool.dispose()
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None

    def _storage(self) -> Storage:
        disk = RacingStorage(self.stage)
        return disk if self.bucket is None else self.bucket.beside(disk)

    def _place(self, name: str) -> dict[str, str]:
        """Give the keys of `target` that say where a pipeline publishes and works."""
        published = f"{self.root}/published" if self.bucket is None else self.bucket.published
        return {"path": f"{published}/orders", "work": f"{published}/.tidegate-{name}"}

    @property
    def _twin(self) -> dict[str, str]:
        """Give another spelling of the same target."""
        if self.bucket is not None:
            return {"path": self._place("twin")["path"].replace("s3:", "s3a:")}
        return {"path": f"{self.root}/link/orders"}

    def _url(self, ledger: str) -> str:
        return f"sqlite:///{self.root}/{ledger}"

    def _write_file(self, file: str, **keys: Any) -> None:
        about = {"name": "orders", "commit": {"trigger": "process-time"}, **self.source.keys}
        made = json.loads(json.dumps(about))
        made["source"] |= self.source.place
        made["target"] |= self._place("orders")
        if self.bucket is not None:
            made["s3"] = self.bucket.section
        for key, found in keys.items():
            made[key] = {**made[key], **found} if isinstance(found, dict) else found
        (self.root / f"{file}.yaml").write_text(json.dumps(made))


_TABLES = (
    "pipeline",
    "window",
    "plan",
    "contribution",
    "partition",
    "publication",
    "revision",
)


def _link_tree(source: Path, target: Path) -> None:
    """Copy a directory; files that are never written to again share their bytes."""
    target.mkdir()
    for item in os.scandir(source):
        place = target / item.name
        if item.is_dir(follow_symlinks=False):
            _link_tree(source / item.name, place)
        elif item.is_symlink():
            place.symlink_to(Path(item.path).readlink())
        elif item.name.endswith((".lock", ".db", "-wal", "-shm")):
            shutil.copyfile(item.path, place)
        else:
            os.link(item.path, place)
