"""Logging of the command line: one line per step on stderr, with names and values."""

from __future__ import annotations

import logging
import sys

import structlog


def log_to_stderr(*, verbose: bool) -> None:
    """Write warnings, or with `verbose` every step, to stderr.

    Args:
        verbose: include every step of Tidegate; other packages only log warnings.
    """
    formatter = structlog.stdlib.ProcessorFormatter(
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
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("tidegate").setLevel(logging.INFO if verbose else logging.WARNING)
