"""A store on this machine for a measurement: versitygw over a directory (`make setup-s3`)."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3

if TYPE_CHECKING:
    from collections.abc import Iterator

REGION = "us-east-1"
KEY, SECRET = "benchmark", "benchmark-secret"
_GATEWAY = Path(__file__).parent.parent / ".venv" / "go" / "versitygw"
_STARTED_WITHIN_SECONDS = 30


@contextlib.contextmanager
def gateway(folder: Path) -> Iterator[str]:
    """Run a store, and let this process and those that it starts have the keys.

    Args:
        folder: for it, which does not exist yet; its requests are logged in `requests`.

    Yields:
        Its address.
    """
    if not _GATEWAY.exists():
        sys.exit("there is no versitygw: run `make setup-s3`")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)
    buckets, more = folder / "buckets", folder / "more"
    buckets.mkdir(parents=True)
    more.mkdir()
    command = [str(_GATEWAY), "--port", f"127.0.0.1:{port}", "--region", REGION, "--quiet"]
    command += ["--access", KEY, "--secret", SECRET, "--access-log", str(folder / "requests")]
    command += ["posix", "--sidecar", str(more), str(buckets)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            _await(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def client(store: str) -> Any:
    """Return a client of a store."""
    return boto3.client("s3", endpoint_url=store, region_name=REGION)


def _await(port: int) -> None:
    ends = time.monotonic() + _STARTED_WITHIN_SECONDS
    while time.monotonic() < ends:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    sys.exit("versitygw did not start")
