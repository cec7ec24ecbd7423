"""A Spark of a test, which finds tables by a Hive metastore, and answers until it is stopped."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from catalog_servers import CatalogServer

_QUERY = Path(__file__).with_name("hive_query.py")


@dataclass(frozen=True)
class HiveSpark:
    """Asks a process that was started once: starting takes longer than most queries."""

    process: subprocess.Popen[str]

    def ask(self, *queries: str) -> list[list[dict[str, Any]]]:
        """Give the rows of each query."""
        answers = [self.answer(query) for query in queries]
        assert all(isinstance(answer, list) for answer in answers), answers
        return answers

    def answer(self, query: str) -> Any:
        """Give the rows of a query, or the text of its error."""
        asks, answers = self.process.stdin, self.process.stdout
        assert asks is not None
        assert answers is not None
        asks.write(f"{json.dumps(query)}\n")
        asks.flush()
        # What Spark says besides comes before.
        return json.loads(next(line for line in answers if line.startswith(("[", '"'))))


@contextlib.contextmanager
def hive_spark(server: CatalogServer, conf: Mapping[str, str] | None = None) -> Iterator[HiveSpark]:
    """Run Spark over a metastore as long as the context lasts."""
    words = [f"{key}={text}" for key, text in (conf or {}).items()]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            [sys.executable, str(_QUERY), server.properties["uri"], *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        yield HiveSpark(process)
        assert process.stdin is not None
        process.stdin.close()
