"""Connections of Airflow, where their id stands for credentials in a pipeline file.

Without Airflow they are found as Airflow spells them: `AIRFLOW_CONN_<ID>`, as a URI or as JSON.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tidegate.errors import ConnectionUnreadable, SecretMissing

_PREFIX = "AIRFLOW_CONN_"


@dataclass(frozen=True)
class Connection:
    """A connection of Airflow; its text shows no secret."""

    login: str | None = None
    password: str | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)
    kind: str | None = field(default=None, repr=False)
    """Its type, such as `aws`; None if nothing says it."""

    def unfit_for_aws(self, *, has_pair: bool) -> str | None:
        """Return why it cannot say who asks AWS, without a value of it; None if it can.

        Args:
            has_pair: whether login and password are not needed, because both are said elsewhere.
        """
        if self.kind and self.kind != "aws":
            return f"is of type '{self.kind}'"
        if not has_pair and bool(self.login) != bool(self.password):
            return "has a login and no password" if self.login else "has a password and no login"
        return None


Asked = Callable[[str], Connection | None]
_lent: dict[str, Connection] = {}
_askers: list[Asked] = []
"""Ways to find a connection that only a process of Airflow has."""


def ask_airflow(asker: Asked) -> None:
    """Find connections by Airflow's own means first; called where Airflow runs."""
    _askers[:] = [asker]


def lend_connection(name: str, connection: Connection) -> None:
    """Let this process use a connection that it does not find itself."""
    _lent[name] = connection


def airflow_connection(name: str, key: str) -> Connection:
    """Return a connection by its id.

    Args:
        name: the id.
        key: of the pipeline file that has it, for the error.

    Raises:
        SecretMissing: there is none.
        ConnectionUnreadable: its variable cannot be read as one.
    """
    for asker in _askers:
        found = asker(name)
        if found is not None:
            return found
    variable = f"{_PREFIX}{name.upper()}"
    text = os.environ.get(variable)
    read = _read(text) if text else None
    if read is None and name in _lent:
        return _lent[name]
    if read is None and text:
        raise ConnectionUnreadable(name=variable, key=key)
    if read is None:
        raise SecretMissing(name=variable, key=key, host=socket.gethostname(), process=os.getpid())
    return read


def _read(text: str) -> Connection | None:
    if text.lstrip().startswith("{"):
        try:
            raw = json.loads(text)
            extra = raw.get("extra") or {}
            extra = json.loads(extra) if isinstance(extra, str) else extra
        except (ValueError, AttributeError):
            return None
        return Connection(raw.get("login"), raw.get("password"), dict(extra), raw.get("conn_type"))
    place = urlsplit(text)
    # A slash in a secret ends the part that has login and password.
    if not place.scheme or "@" in place.path:
        return None
    extra = dict(parse_qsl(place.query))
    if "__extra__" in extra:
        try:
            extra = json.loads(extra["__extra__"])
        except ValueError:
            return None
    login = unquote(place.username) if place.username else None
    password = unquote(place.password) if place.password else None
    return Connection(login, password, extra, place.scheme)
