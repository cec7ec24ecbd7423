"""Every condition that Tidegate knows by name; see `base` for what they have in common."""

from tidegate.errors.base import TerminalError, TidegateError, TransientError
from tidegate.errors.demo import *  # noqa: F403
from tidegate.errors.run import *  # noqa: F403 (the package re-exports every condition of its modules)
from tidegate.errors.schedule import *  # noqa: F403
from tidegate.errors.source import *  # noqa: F403
from tidegate.errors.storage import *  # noqa: F403
from tidegate.errors.values import *  # noqa: F403

__all__ = ["TerminalError", "TidegateError", "TransientError"]  # noqa: PLE0604
__all__ += [name for name in TidegateError._known if name not in __all__]  # noqa: SLF001
