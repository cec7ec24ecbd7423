"""Logging of the command line: one line per step on stderr, with names and values."""

from __future__ import annotations

import functools
import logging
import sys


def log_to_stderr(*, verbose: bool) -> None:
    """Write warnings, or with `verbose` every step, to stderr.

    Args:
        verbose: include every step of Tidegate; other packages only log warnings.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Aligned())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("tidegate").setLevel(logging.INFO if verbose else logging.WARNING)


class _Aligned(logging.Formatter):
    """Writes lines with structlog, which most commands end without: it takes long to import."""

    def format(self, record: logging.LogRecord) -> str:
        return _formatter().format(record)


@functools.cache
def _formatter() -> logging.Formatter:
    import structlog

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.ExtraAdder(),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
    )
