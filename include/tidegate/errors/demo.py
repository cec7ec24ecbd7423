"""What the demo refuses."""

from tidegate.errors.base import TerminalError


class LakeForeign(TerminalError):
    """The demo's folder holds another table than the one that the demo makes."""

    root: str
    expected: str
    found: str
    template = (
        "{root}: expected a lake of this demo with {expected}, found {found}. "
        "Nothing was changed. Remove that folder, or give the demo another one."
    )
