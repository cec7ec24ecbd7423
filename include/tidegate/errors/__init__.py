"""Every condition that Tidegate knows by name; see `base` for what they have in common."""

from tidegate.errors.base import TerminalError, TidegateError, TransientError
from tidegate.errors.demo import *
from tidegate.errors.run import *
from tidegate.errors.schedule import *
from tidegate.errors.source import *
from tidegate.errors.storage import *
from tidegate.errors.values import *

__all__ = ["TerminalError", "TidegateError", "TransientError"]
__all__ += [name for name in TidegateError._known if name not in __all__]
