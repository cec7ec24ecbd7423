"""Tell how a file in the work directory is written, and which columns it has."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.model.part_format import form_of_name
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.part_format import PartFormat
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class StagedForms:
    """Tells the form of files by their names, and their columns by the plans that wrote them."""

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents

    def of(self, path: str) -> tuple[PartFormat, pa.Schema | None]:
        """Return how a file is written, and its columns if it does not say them itself."""
        form = form_of_name(path)
        if form.kind.has_columns:
            return form, None
        digest = layout.digest_of_part(path)
        columns = None if digest is None else self._columns_of(digest)
        return self.config.target.part_format.of_file(path), columns

    @cached_property
    def _columns_of(self) -> Callable[[str], pa.Schema | None]:
        """Looks for each plan once, whose files are many."""
        return functools.cache(self._planned_columns)

    def _planned_columns(self, digest: str) -> pa.Schema | None:
        """Return the columns of the files that a plan writes; None if it is lost."""
        for state in self.ledger.windows.all():
            window = state.window.sequence
            if self.storage.exists(layout.plan_root(self.roots.work, window, digest)):
                return self.contents.columns_of_plan(window, digest)
        return None
