"""Deliberate mistakes that the crash walk has to catch.

Each is made in the process that calls it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from crash.unsynced import UNSYNCED
from tidegate.commit.publisher import Publisher
from tidegate.ledger import windows
from tidegate.ledger.announcing import Announcing
from tidegate.ledger.windows import Windows
from tidegate.pipeline.load import staging
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from tidegate.model.publication import CommitPlan, Publication


def marker_first() -> None:
    """Write the marker before the files that it lists are there."""
    move = Publisher._move

    def wrong(self: Publisher, publication: Publication, unfinished: Any) -> None:
        self.storage.make_dirs(self.places.partition_root)
        marker_path = f"{self.places.partition_root}/_SUCCESS"
        self.storage.write_once(marker_path, _current[-1].marker.encode())
        move(self, publication, unfinished)

    carry_out = Publisher.carry_out

    def remembering(self: Publisher, plan: CommitPlan, *rest: Any) -> None:
        _current.append(plan)
        carry_out(self, plan, *rest)

    Publisher._move = wrong  # type: ignore[method-assign]
    Publisher.carry_out = remembering  # type: ignore[method-assign]


def checkpoint_before_contributions() -> None:
    """Move the checkpoint and seal the window in a transaction of its own.

    Then add the contributions.
    """
    announce = Windows.announce

    def wrong(self: Windows, announced: Any, now: Any, check: Any) -> Any:
        held = self.get(announced.sequence)
        if not held.sealed:
            with self.engine.begin() as connection:
                Announcing(connection, self.name).seal(announced, announced.summary, now)
                end = held.window.range.end_inclusive.to_json()
                connection.execute(
                    windows.sa.update(windows.pipeline)
                    .where(windows.pipeline.c.name == self.name)
                    .values(checkpoint=end)
                )
            with self.engine.begin() as connection:
                windows.store_watermark(connection, self.name, announced.watermark)
                return tuple(
                    item.partition
                    for item in Announcing(connection, self.name).replace_contributions(
                        announced, now
                    )
                )
        return announce(self, announced, now, check)

    Windows.announce = wrong  # type: ignore[method-assign]


def message_replaced() -> None:
    """Stage a sub-split again although it has a message.

    And let the second message replace the first.
    """
    write_once = LocalStorage.write_once

    def replacing(
        self: LocalStorage, path: str, content: bytes, scratch: str | None = None
    ) -> bool:
        if "/messages/" in path:
            self.delete(path)
        return write_once(self, path, content, scratch)

    def staging_all(storage: Any, plan_uri: str, index: int, attempt: str) -> tuple[Any, ...]:
        scan, splits = staging._plan(storage, plan_uri)
        task = staging._SplitTask(storage, scan, plan_uri, f"{attempt}.{os.urandom(4).hex()}")
        return tuple(map(task.finish, splits[index].sub_splits))

    LocalStorage.write_once = replacing  # type: ignore[method-assign]
    staging.stage_split = staging_all


_current: list[CommitPlan] = []

MISTAKES = {
    "marker-first": marker_first,
    "checkpoint-before-contributions": checkpoint_before_contributions,
    "message-replaced": message_replaced,
    **{name: mistake.make for name, mistake in UNSYNCED.items()},
}
