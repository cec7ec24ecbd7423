"""A policy of the user's own.

It is named as `module:Class`, built with texts and called with the context (PC-A11).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

from tidegate.errors import PolicyUnknown

if TYPE_CHECKING:
    from tidegate.commit.policies.protocol import CommitPolicy
    from tidegate.config import CustomPolicy


def load_custom(options: CustomPolicy) -> CommitPolicy:
    """Build the policy that a pipeline file names.

    Raises:
        PolicyUnknown: the module or class does not exist or raises, or it has no `commit`.
    """
    reference = options.custom
    module_name, _, class_name = reference.partition(":")
    try:
        policy = getattr(importlib.import_module(module_name), class_name)(*options.parameters)
    except (Exception, SystemExit) as broken:
        # A user's module may raise anything, and the other partitions continue.
        problem = f"{type(broken).__name__}: {broken}"
        raise PolicyUnknown(policy=reference, problem=problem) from broken
    if not callable(getattr(policy, "commit", None)):
        raise PolicyUnknown(policy=reference, problem="it has no method commit(context)")
    return cast("CommitPolicy", policy)
