"""A pytest plugin: where all that tests need is there, a skipped test is a failed one.

CI sets `CI=true`. It has PostgreSQL, Java, the public tables, root and mounts; a test that is
skipped there would be missed by nobody.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

ALLOWED = {
    "`make setup-s3`": "it needs Go, which may not be there; moto's server is tried everywhere",
    "a file does not go away": "one of the catalogs in test_catalogs.py has no server to stop",
    "moto lets every key in": "only versitygw, which CI builds, refuses a key",
}
"""How the reason of a skip may begin in CI, and why."""


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI") != "true" or not report.skipped or hasattr(report, "wasxfail"):
        return
    told = report.longrepr
    reason = (told[2] if isinstance(told, tuple) else str(told)).removeprefix("Skipped: ")
    if not reason.startswith(tuple(ALLOWED)):
        report.outcome = "failed"
        report.longrepr = f"skipped, which nothing is in CI: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Look at what became of a test."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Look at what became of a module."""
    report = yield
    _refuse_skip(report)
    return report
