"""The policies of a commit: what it does besides moving files.

A new policy needs a module and a line in `OPENERS`; its options are in `config/policies.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.commit.policies.custom import load_custom
from tidegate.commit.policies.protocol import CommitPolicy, PolicyContext
from tidegate.commit.policies.success_file import SuccessFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidegate.config import PolicyConfig

OPENERS: Mapping[str, Callable[[Any], CommitPolicy]] = {
    "success-file": SuccessFile,
    "custom": load_custom,
}
"""Word of a policy → the function that makes it from its options."""

__all__ = ["OPENERS", "CommitPolicy", "PolicyContext", "SuccessFile", "open_policy"]


def open_policy(options: PolicyConfig) -> CommitPolicy:
    """Make the policy that a pipeline file describes.

    Raises:
        PolicyUnknown: its module or class does not exist or raises, or it has no `commit`.
    """
    return OPENERS[options.word](options)
