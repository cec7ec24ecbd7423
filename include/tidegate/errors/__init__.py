"""Every error of Tidegate; see `base` for what they have in common."""

from tidegate.errors.base import TerminalError, TidegateError, TransientError
from tidegate.errors.columns import *
from tidegate.errors.contending import *
from tidegate.errors.demo import *
from tidegate.errors.erasing import *
from tidegate.errors.iceberg_target import *
from tidegate.errors.listing import *
from tidegate.errors.owning import *
from tidegate.errors.published import *
from tidegate.errors.publishing import *
from tidegate.errors.revisions import *
from tidegate.errors.schedule import *
from tidegate.errors.sources import *
from tidegate.errors.storage import *
from tidegate.errors.values import *
from tidegate.errors.windows import *

__all__ = ["TerminalError", "TidegateError", "TransientError"]
__all__ += [name for name in TidegateError._known if name not in __all__]
