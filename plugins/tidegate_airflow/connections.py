"""Let pipeline files name connections of this Airflow (`s3.connection`)."""

from __future__ import annotations

import json
import logging
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowRuntimeError

from tidegate.config import Connection, PipelineConfig, lend_connection


def find(name: str) -> Connection | None:
    """Return a connection by its id; None if this Airflow has none, or this process no access.

    A scheduler's parser has none, and does not need it: it reads no table.
    """
    from airflow.sdk import Connection as Known

    try:
        found = Known.get(name)
    except (AirflowException, AirflowRuntimeError) as refused:
        logging.getLogger(__name__).debug("no connection %s: %s", name, refused)
        return None
    return _read(found)


def _read(found: Any) -> Connection:
    return Connection(found.login, found.password, found.extra_dejson, found.conn_type)


async def lend(name: str) -> None:
    """Let what runs in this process use a connection, where only its event loop may ask for it."""
    found = await BaseHook.aget_connection(name)
    lend_connection(name, _read(found))


def driver_variables(config: PipelineConfig) -> dict[str, str]:
    """Return the variables by which a driver outside Airflow finds a pipeline's connection.

    As JSON the password is one that Airflow masks in its logs, should a command line show it.
    """
    name = config.s3.connection
    found = find(name) if name is not None else None
    if name is None or found is None:
        return {}
    said = {"login": found.login, "password": found.password, "extra": dict(found.extra)}
    return {f"AIRFLOW_CONN_{name.upper()}": json.dumps({"conn_type": found.kind or "aws", **said})}
