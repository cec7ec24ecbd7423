"""Run a driver on behalf of the process that submitted it with spark-submit.

The driver ends when that process is gone. It writes a typed error where the submitter can read it,
and its exit code tells whether a retry makes sense (AF-4.16, AF-5.5). The files of `jobs/` only
call `run_job`.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidegate.errors import TerminalError, TidegateError
from tidegate.model.wire import pretty
from tidegate.pipeline.pipeline import Pipeline, open_pipeline
from tidegate.pipeline.state.holders import is_gone
from tidegate.storage import Storage, Stores

TERMINAL_EXIT = 65
TRANSIENT_EXIT = 75
ORPHANED_EXIT = 76

SUBMITTER = "TIDEGATE_SUBMITTED_BY"
"""The environment variable with the submitting process, as named by `process_owner`."""

_WATCH_SECONDS = 2.0

Step = Callable[[Pipeline, Mapping[str, Any]], None]


def run_job(step: Step, arguments: Sequence[str] | None = None) -> int:
    """Run one step of a pipeline in this process, on behalf of another one.

    Args:
        step: the step; receives the pipeline and the request.
        arguments: command line, `sys.argv` by default: `--pipeline`, `--request`, `--report`.

    Returns:
        The exit code: 0, or one that distinguishes Terminal from Transient errors. Any other error
        is raised, with code 1.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    for talkative in ("alembic", "py4j"):
        logging.getLogger(talkative).setLevel(logging.WARNING)
    parser = argparse.ArgumentParser(description="One step of a pipeline, in Spark.")
    parser.add_argument("--pipeline", required=True, help="name or file of the pipeline")
    parser.add_argument("--request", required=True, type=json.loads, help="what to do, as JSON")
    parser.add_argument("--report", required=True, help="file that an error is written to")
    given = parser.parse_args(arguments)
    watch_submitter(os.environ.get(SUBMITTER))
    storage: Storage = Stores()
    try:
        pipeline = open_pipeline(given.pipeline)
        storage = pipeline.storage
        step(pipeline, given.request)
    except TidegateError as error:
        storage.write_once(given.report, pretty(error.to_json()))
        # The message is written for people; a traceback would hide it.
        logging.getLogger(__name__).error("%s: %s", error.code, error)  # noqa: TRY400
        return TERMINAL_EXIT if isinstance(error, TerminalError) else TRANSIENT_EXIT
    return 0


def watch_submitter(owner: str | None) -> None:
    """End this process once its submitter is gone, so that no stale driver continues (AF-5.5).

    Without an owner nothing is watched, because the driver runs on another host.
    """
    if owner is None:
        return

    def watch() -> None:
        while not is_gone(owner):
            time.sleep(_WATCH_SECONDS)
        sys.stderr.write(f"{owner} is gone; this driver ends, its successor goes on from here\n")
        sys.stderr.flush()
        # The main thread may wait for the JVM for minutes; work without a message does not count.
        os._exit(ORPHANED_EXIT)

    threading.Thread(target=watch, name="watch-submitter", daemon=True).start()
