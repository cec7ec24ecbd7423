"""Where the demo keeps its things, and what its processes are told about them."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate import config
from tidegate.demo.lake import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

PIPELINE = "flights"


@dataclass(frozen=True)
class DagIds:
    """The names that Airflow knows a pipeline's DAGs by."""

    load: str
    publish: str
    reconcile: str

    @classmethod
    def of(cls, pipeline: str) -> DagIds:
        """Name the DAGs of a pipeline."""
        return cls(*(f"{pipeline}_{kind}" for kind in ("load", "publish", "reconcile")))

    @property
    def all(self) -> tuple[str, str, str]:
        """All three."""
        return self.load, self.publish, self.reconcile


@dataclass(frozen=True)
class DemoPlaces:
    """The folders of one demo, all below one home; two homes are two demos."""

    home: Path

    @classmethod
    def here(cls) -> DemoPlaces:
        """Take `TIDEGATE_HOME`, or `.tidegate` in the current folder."""
        return cls(config.home())

    @property
    def lake(self) -> Path:
        """The raw table and the published one."""
        return self.home / "demo"

    @property
    def airflow(self) -> Path:
        """`AIRFLOW_HOME`."""
        return self.home / "airflow"

    @property
    def file(self) -> Path:
        """The pipeline file, whatever folder of pipelines the user has set."""
        return Path(config.__file__).parents[2] / "pipelines" / f"{PIPELINE}.yaml"

    def variables(self) -> dict[str, str]:
        """Return what every process of the demo is told; the user's own ledger is not touched."""
        return {
            "TIDEGATE_HOME": str(self.home),
            "TIDEGATE_LEDGER": f"sqlite:///{self.home / 'ledger.db'}",
            "TIDEGATE_PIPELINES": str(self.file.parent),
            "TIDEGATE_POLL_SECONDS": "2",
            VARIABLE: str(self.lake),
        }

    @contextlib.contextmanager
    def set_here(self) -> Iterator[None]:
        """Tell this process, too, for as long as the context lasts."""
        before = {name: os.environ.get(name) for name in self.variables()}
        os.environ.update(self.variables())
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
