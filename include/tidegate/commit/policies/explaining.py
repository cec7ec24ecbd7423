"""Name a policy in whatever it raises that is none of Tidegate's errors."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.errors import PolicyFailed, PolicyRefused


@contextmanager
def policy_named(
    error: type[PolicyFailed | PolicyRefused], pipeline: str, partition: str, policy: str
) -> Iterator[None]:
    """Raise an error that names a policy in place of what it raises itself.

    A user's policy may raise anything, also what would end the process, and the other partitions
    continue.
    """
    try:
        yield
    except TidegateError:
        raise
    except (Exception, SystemExit) as broken:
        raise error(
            pipeline=pipeline,
            partition=partition,
            policy=policy,
            problem=f"{type(broken).__name__}: {broken}",
        ) from broken
