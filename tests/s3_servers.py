"""Stores that speak S3's protocol on this machine: moto always, and versitygw where it is built.

versitygw keeps objects as files of a directory, so that a test that looks at files sees them too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from catalog_servers import answers, free_port
from tidegate.storage import S3Options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

STORE = "TIDEGATE_TEST_STORE"
"""A variable: the port of a gateway and its folder, where targets of tests are objects of it."""
GATEWAY = Path(__file__).parent.parent / ".venv" / "go" / "versitygw"
"""Where `make setup-s3` puts it."""
KEY, SECRET, REGION = "key-of-tests", "secret-of-tests", "us-east-1"
_STARTED_WITHIN_SECONDS = 60


@dataclass(frozen=True)
class S3Server:
    """A store in a process of its own."""

    kind: str
    port: int
    folder: Path | None = None
    """Where its buckets are directories; None: it keeps them in memory."""

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def options(self) -> S3Options:
        """How it is reached."""
        return S3Options(self.endpoint, REGION, None, KEY, SECRET)

    def bucket(self) -> str:
        """Make a bucket; its address."""
        name = f"b-{uuid.uuid4().hex[:12]}"
        self.client().create_bucket(Bucket=name)
        return f"s3://{name}"

    def client(self) -> object:
        """Give a client of the test's own."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        )


def address_in_store(place: Path, root: Path) -> str:
    """Give the address of a directory: its own path, or that of the same files as objects.

    Args:
        place: a directory.
        root: the directory above that becomes a bucket.
    """
    said = os.environ.get(STORE)
    if said is None:
        return str(place)
    bucket = f"t-{hashlib.sha256(str(root).encode()).hexdigest()[:16]}"
    linked = Path(said.partition(":")[2], bucket)
    if not linked.is_symlink():
        linked.symlink_to(root)
    return f"s3://{bucket}/{place.relative_to(root)}"


def section_of_store() -> dict[str, dict[str, str]]:
    """Give the section of a pipeline file that reaches the store of `address_in_store`."""
    said = os.environ.get(STORE)
    if said is None:
        return {}
    os.environ.update(TIDEGATE_TEST_KEY=KEY, TIDEGATE_TEST_SECRET=SECRET)
    return {
        "s3": {
            "endpoint": f"http://127.0.0.1:{said.partition(':')[0]}",
            "region": REGION,
            "access_key": "${env:TIDEGATE_TEST_KEY}",
            "secret_key": "${env:TIDEGATE_TEST_SECRET}",
        }
    }


def properties_of_tables(section: Mapping[str, str]) -> dict[str, str]:
    """Give the properties by which pyiceberg reads in the store that a section `s3` reaches."""
    if not section:
        return {}
    return {
        "s3.endpoint": section["endpoint"],
        "s3.region": REGION,
        "s3.access-key-id": KEY,
        "s3.secret-access-key": SECRET,
    }


@contextlib.contextmanager
def moto_server() -> Iterator[S3Server]:
    """Run moto's server."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    with _running(command, port):
        yield S3Server("moto", port)


@contextlib.contextmanager
def gateway_server(folder: Path, *, beside: bool = True) -> Iterator[S3Server]:
    """Run versitygw over a directory.

    Args:
        folder: its own, which does not exist yet.
        beside: whether what it knows of objects is beside the buckets; else it is in attributes of
            the files, and copied with them.
    """
    if not GATEWAY.exists():
        pytest.skip("`make setup-s3` has not built versitygw")
    port = free_port()
    buckets, more = folder / "buckets", folder / "more"
    buckets.mkdir(parents=True)
    more.mkdir()
    command = [str(GATEWAY), "--port", f"127.0.0.1:{port}", "--region", REGION]
    command += ["--access", KEY, "--secret", SECRET, "--quiet", "posix"]
    with _running([*command, *(["--sidecar", str(more)] if beside else []), str(buckets)], port):
        yield S3Server("versitygw", port, buckets)


@contextlib.contextmanager
def s3_server(kind: str, folder: Path) -> Iterator[S3Server]:
    """Run a store of a kind, `moto` or `versitygw`, the latter over a folder to be made."""
    with moto_server() if kind == "moto" else gateway_server(folder) as found:
        yield found


@contextlib.contextmanager
def _running(command: Sequence[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(
        command, env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + _STARTED_WITHIN_SECONDS
        while not answers(port):
            if process.poll() is not None or time.monotonic() > until:
                pytest.fail(f"the store did not start: {' '.join(command)}")
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()
