"""The work directory of a pipeline: whose it is, and where one partition's files stand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.commit.publisher import Places
from tidegate.config import PipelineConfig, resolve_secret
from tidegate.errors import LedgerLost, TargetOwned, WorkElsewhere, WorkInsideTarget
from tidegate.model.wire import pretty
from tidegate.stage import layout
from tidegate.storage import Storage, same_file_system

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.ledger import Ledger
    from tidegate.model.partition import Partition


@dataclass(frozen=True)
class Roots:
    """Where a pipeline publishes and where it works.

    With `${env:NAME}` resolved in this process.
    """

    target: str
    work: str

    @classmethod
    def of(cls, config: PipelineConfig) -> Roots:
        """Resolve the roots of a pipeline.

        Raises:
            SecretMissing: a variable in one of the paths is not set.
            WorkInsideTarget: the work directory lies below the table root.
        """
        target = resolve_secret(config.target.path, "target.path").rstrip("/")
        work = resolve_secret(config.target.work, "target.work").rstrip("/")
        if f"{work}/".startswith(f"{target}/"):
            raise WorkInsideTarget(work=work, target=target)
        return cls(target, work)

    def partition(self, partition: Partition) -> str:
        """Give a partition's directory; the table root for an unpartitioned target."""
        return f"{self.target}/{partition.path}" if partition.path else self.target

    def places(self, partition: Partition, revision: int) -> Places:
        """Say where one partition's files stand, come from and go."""
        return Places(
            work=self.work,
            table_root=self.target,
            partition_root=self.partition(partition),
            lock=layout.lock_file(self.work, partition),
            scratch=layout.scratch_root(self.work),
            retired=lambda name: layout.retired_part(self.work, partition, revision, name),
        )


def adopt(
    config: PipelineConfig, roots: Roots, ledger: Ledger, storage: Storage, now: datetime
) -> None:
    """Register the pipeline in its ledger and in its work directory, or check that both know it.

    The ledger comes first: a crash in between leaves a ledger entry without an owner file, which
    the
    next call completes, never an owner file that no ledger knows.

    Raises:
        PipelineChanged: a key of the identity differs from what was registered.
        TargetOwned: another pipeline publishes into the target.
        LedgerLost: the target was published with another ledger.
        WorkElsewhere: a rename from the work directory cannot publish (PC-F03).
    """
    if not same_file_system(roots.work, roots.target):
        raise WorkElsewhere(work=roots.work, target=roots.target)
    owner = read_owner(storage, roots.work)
    if owner is not None:
        check_owner(owner, config.name, roots, ledger)
    ledger_id = ledger.pipeline.register(config.identity(), roots.target, now)
    if owner is None:
        content = {
            "format": 1,
            "pipeline": config.name,
            "ledger": ledger_id,
            "target": roots.target,
        }
        storage.write_once(layout.owner_file(roots.work), pretty(content))
        check_owner(read_owner(storage, roots.work) or {}, config.name, roots, ledger)


def read_owner(storage: Storage, work: str) -> dict[str, str] | None:
    """Read who owns a work directory, None if nobody does."""
    path = layout.owner_file(work)
    return json.loads(storage.read_bytes(path)) if storage.exists(path) else None


def check_owner(owner: dict[str, str], name: str, roots: Roots, ledger: Ledger) -> None:
    """Check that a work directory belongs to this pipeline and this ledger.

    Raises:
        TargetOwned: another pipeline publishes into the target.
        LedgerLost: the target was published with another ledger.
    """
    if owner.get("pipeline") != name:
        raise TargetOwned(target=roots.target, owner=str(owner.get("pipeline")), pipeline=name)
    state = ledger.pipeline.find()
    if state is None or state.ledger_id != owner.get("ledger"):
        raise LedgerLost(pipeline=name, target=roots.target, expected=str(owner.get("ledger")))
