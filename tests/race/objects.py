"""Stand before every request to a store whose clock is that of the run.

The store is a real server over a directory, so that the truth is looked up in its files.
"""

from __future__ import annotations

import contextlib
import os
import types
from dataclasses import dataclass, field
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any, ClassVar
from unittest.mock import patch

from race import steps
from race.moments import EARLIER
from s3_servers import KEY, REGION, SECRET, gateway_server
from tidegate.storage import S3Options, Stores
from tidegate.storage.s3 import S3Storage
from tidegate.storage.s3_calls import S3Calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from race.doubles import Stage
    from tidegate.storage import LocalStorage

_BUCKET = "races"
_LOOKS = {"head", "get", "first"}
_LISTS = {"pages", "uploads"}
_CHANGES = {"put", "copy", "delete", "delete_many", "complete_upload"}
"""Requests that change what others see; an upload that is not complete is nobody's business."""
_VARIABLES = {"access_key": "TIDEGATE_TEST_KEY", "secret_key": "TIDEGATE_TEST_SECRET"}


@dataclass(frozen=True)
class Bucket:
    """A store of which the root of all runs is the only bucket."""

    endpoint: str
    stage: Stage
    born: dict[str, datetime] = field(default_factory=dict)
    """Address → when its object was written, by the clock of the run."""

    published: ClassVar[str] = f"s3://{_BUCKET}/published"
    """The address of what is below `published` of the root."""

    @property
    def section(self) -> dict[str, str]:
        """Give the section of a pipeline file that reaches it."""
        secrets = {key: f"${{env:{variable}}}" for key, variable in _VARIABLES.items()}
        return {"endpoint": self.endpoint, "region": REGION, **secrets}

    def beside(self, disk: LocalStorage) -> Stores:
        """Give a session's way to the store, beside its way to a disk."""
        options = S3Options(self.endpoint, REGION, None, KEY, SECRET)
        return Stores(disk, S3Storage(RacingRequests(options, self)))


@contextlib.contextmanager
def bucket_of(folder: Path, stage: Stage) -> Iterator[Bucket]:
    """Run a store whose only bucket is the directory of all runs."""
    with gateway_server(folder / "gateway", beside=False) as server:
        assert server.folder is not None
        (server.folder / _BUCKET).symlink_to(folder / "root")
        os.environ.update(zip(_VARIABLES.values(), (KEY, SECRET), strict=True))
        clock = types.SimpleNamespace(monotonic=lambda: stage.clock.time.timestamp())
        patch("tidegate.storage.s3_lease.time", clock).start()
        # The scheduler knows the threads of actors, and no others.
        for module in ("s3", "s3_files"):
            patch(f"tidegate.storage.{module}.answers", _one_by_one).start()
        yield Bucket(server.endpoint, stage)


@dataclass(frozen=True)
class RacingRequests(S3Calls):
    """`S3Calls` with each request a step that others can see."""

    bucket: Bucket = field(kw_only=False, hash=False, compare=False, default=None)  # type: ignore[assignment]

    def __getattribute__(self, name: str) -> Any:
        """Stand before requests that look and those that change objects."""
        found = super().__getattribute__(name)
        if name not in _LOOKS | _LISTS | _CHANGES:
            return found

        def stepping(path: Any, *rest: Any, **keys: Any) -> Any:
            stage, born = self.bucket.stage, self.bucket.born
            subject = rest[0] if name == "copy" else path
            stage.reach(_step(name, path, subject))
            given = found(path, *rest, **keys)
            if name in _CHANGES:
                born.update(dict.fromkeys(_several(subject), stage.clock.time))
            elif name in {"head", "get"}:
                given["LastModified"] = born.get(path, EARLIER)
                said = format_datetime(stage.clock.time, usegmt=True)
                given["ResponseMetadata"]["HTTPHeaders"]["date"] = said
            return given

        return stepping


def _step(name: str, path: str, subject: Any) -> steps.Step:
    if name in _LISTS:
        return steps.listing(path)
    if name in _LOOKS:
        return steps.reading(name, path)
    step = steps.changing(name, *_several(subject))
    if name == "copy":
        step.reads.add(path)
    return step


def _several(paths: str | Iterable[str]) -> list[str]:
    return [paths] if isinstance(paths, str) else [*paths]


def _one_by_one(do: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    return [do(item) for item in items]
