"""What a commit does besides moving files.

A new policy is a new module and a line in `BUILT_IN`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.commit.policies.protocol import CommitPolicy, PolicyContext
from tidegate.commit.policies.success_file import SuccessFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SUCCESS_FILE = "success-file"

BUILT_IN: Mapping[str, Callable[[], CommitPolicy]] = {SUCCESS_FILE: SuccessFile}

__all__ = ["BUILT_IN", "SUCCESS_FILE", "CommitPolicy", "PolicyContext"]
