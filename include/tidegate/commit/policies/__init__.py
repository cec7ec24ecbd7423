"""What a commit does besides moving files; a new policy is a new module and a line in `BUILT_IN`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidegate.commit.policies.protocol import CommitPolicy, PolicyContext
from tidegate.commit.policies.success_file import SuccessFile

SUCCESS_FILE = "success-file"

BUILT_IN: Mapping[str, Callable[[], CommitPolicy]] = {SUCCESS_FILE: SuccessFile}

__all__ = ["BUILT_IN", "SUCCESS_FILE", "CommitPolicy", "PolicyContext"]
