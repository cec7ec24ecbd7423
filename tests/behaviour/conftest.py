"""The two executors, each with a place where golden tables are staged."""

from __future__ import annotations

import pytest

from staged_reads import StagedReads
from tidegate.execute.local import LocalExecutor


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> StagedReads:
    return StagedReads(tmp_path_factory.mktemp("staged"), LocalExecutor(2))


@pytest.fixture(scope="session")
def in_spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> StagedReads:
    from tidegate.execute.spark import SparkExecutor

    executor = SparkExecutor(request.getfixturevalue("spark").sparkContext)
    return StagedReads(tmp_path_factory.mktemp("staged-spark"), executor)
