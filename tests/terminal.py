"""Reads what would stand on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from rich.console import RenderableType


def text_of(renderable: RenderableType, width: int = 400) -> str:
    """Print as into a file, by default a wide one, without colours."""
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()
