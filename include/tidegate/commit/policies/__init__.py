"""The policies of a commit: what it does besides moving files.

A new policy needs a module and a line in `OPENERS`; its options are in `config/policies.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.commit.policies.custom import load_custom
from tidegate.commit.policies.explaining import policy_named
from tidegate.commit.policies.foreseeing import foreseen
from tidegate.commit.policies.metastore import ListInMetastore
from tidegate.commit.policies.protocol import (
    CommitAhead,
    CommitPolicy,
    ListingPolicy,
    PolicyContext,
)
from tidegate.commit.policies.snapshot import CommitSnapshot
from tidegate.commit.policies.success_file import SuccessFile
from tidegate.config import CustomPolicy, MetastorePolicy, SnapshotPolicy, SuccessFilePolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidegate.config import PolicyConfig, TargetConfig
    from tidegate.metastore.protocol import SparkCatalog

OPENERS: Mapping[str, Callable[[Any, TargetConfig, SparkCatalog], CommitPolicy]] = {
    SuccessFilePolicy.word: lambda _options, _target, _catalog: SuccessFile(),
    SnapshotPolicy.word: lambda options, target, _catalog: CommitSnapshot.of(options, target),
    MetastorePolicy.word: ListInMetastore.of,
    CustomPolicy.word: lambda options, _target, _catalog: load_custom(options),
}
"""Word of a policy → the function that makes it from its options, the target's, and Spark's
catalog."""

__all__ = [
    "OPENERS",
    "CommitAhead",
    "CommitPolicy",
    "CommitSnapshot",
    "ListingPolicy",
    "PolicyContext",
    "SuccessFile",
    "foreseen",
    "open_policy",
    "policy_named",
    "shown_table",
]


def open_policy(options: PolicyConfig, target: TargetConfig, catalog: SparkCatalog) -> CommitPolicy:
    """Make the policy that a pipeline file describes.

    Args:
        options: of the policy.
        target: of the pipeline.
        catalog: opens tables of Spark's catalog, for a policy that asks it.

    Raises:
        PolicyUnknown: its module or class does not exist or raises, or it has no `commit`.
    """
    return OPENERS[options.word](options, target, catalog)


def shown_table(target: TargetConfig) -> CommitSnapshot | None:
    """Return the table by which readers find a target's revisions; None: they find the files."""
    word = target.is_of_kind.shown_by
    return None if word is None else CommitSnapshot(target)
