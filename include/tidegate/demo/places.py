"""The folders of the demo, and the environment of its processes."""

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
    """The names of a pipeline's DAGs in Airflow."""

    load: str
    publish: str
    reconcile: str

    @classmethod
    def of(cls, pipeline: str) -> DagIds:
        """Return the names for a pipeline."""
        return cls(*(f"{pipeline}_{kind}" for kind in ("load", "publish", "reconcile")))

    @property
    def all(self) -> tuple[str, str, str]:
        """All three names."""
        return self.load, self.publish, self.reconcile


@dataclass(frozen=True)
class DemoPlaces:
    """The folders of one demo, all below one home; each home is a separate demo."""

    home: Path

    @classmethod
    def here(cls) -> DemoPlaces:
        """Use `TIDEGATE_HOME`, or `.tidegate` in the current folder."""
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
        """The pipeline file, whatever folder of pipelines the user has configured."""
        return Path(config.__file__).parents[2] / "pipelines" / f"{PIPELINE}.yaml"

    def variables(self) -> dict[str, str]:
        """Return the environment of the demo's processes: the ledger is that of the home.

        `TIDEGATE_LEDGER` of the user is not touched.
        """
        return {
            "TIDEGATE_HOME": str(self.home),
            "TIDEGATE_LEDGER": config.ledger_of_home(self.home),
            "TIDEGATE_PIPELINES": str(self.file.parent),
            "TIDEGATE_POLL_SECONDS": "2",
            VARIABLE: str(self.lake),
        }

    @contextlib.contextmanager
    def set_here(self) -> Iterator[None]:
        """Set the same variables in this process, for the duration of the context."""
        variables = self.variables()
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
