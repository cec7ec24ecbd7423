"""Keep the last failure of a load in the work directory, until a load succeeds.

A load that fails before it has a window has no row in the ledger that could say so.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import (
    FenceLost,
    PartitionPathInvalid,
    TidegateError,
    WindowNotFound,
    WindowOpen,
)
from tidegate.errors.commands import naming
from tidegate.ledger.clock import database_time
from tidegate.model.wire import pretty
from tidegate.stage import layout
from tidegate.target.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.ledger import Ledger
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class LoadFailure:
    """The last failure of a pipeline's load.

    *Runs on:* every process that takes a step of a load. *Called:* once per step. *Failure:* what
    cannot be written is left out, because the error itself is raised all the same.
    """

    roots: Roots
    ledger: Ledger
    storage: Storage

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Keep an error that ends a step of a load.

        A run that only has to wait has not failed, nor has one that was asked for what is not
        there.
        """
        try:
            yield
        except (WindowOpen, FenceLost, WindowNotFound, PartitionPathInvalid):
            raise
        except TidegateError as failure:
            with contextlib.suppress(TidegateError):
                self._keep(failure)
            raise

    def forget(self) -> None:
        """Forget it, because a load has succeeded."""
        if self.storage.exists(self._path):
            self.storage.delete(self._path)

    def said(self) -> str | None:
        """Return when and why the last load failed; None if it did not."""
        if not self.storage.exists(self._path):
            return None
        with contextlib.suppress(TidegateError, ValueError, KeyError):
            found = json.loads(self.storage.read_bytes(self._path))
            return f"{found['at']}, {found['code']}: {found['message']}"
        return None

    def _keep(self, failure: TidegateError) -> None:
        state = self.ledger.pipeline.find()
        own = state and Owner(state.name, state.ledger_id)
        if own is None or self.roots.grounds(self.storage).read().work != own:
            # Nothing is written into a directory of which it is not known whose it is.
            return
        with self.ledger.engine.connect() as connection:
            now = database_time(connection)
        said = {
            "at": f"{now:%Y-%m-%d %H:%M}Z",
            "code": failure.code,
            "message": naming(str(failure), self.ledger.name),
        }
        self.forget()
        self.storage.write_once(self._path, pretty(said))

    @property
    def _path(self) -> str:
        return layout.load_failure_file(self.roots.work)
