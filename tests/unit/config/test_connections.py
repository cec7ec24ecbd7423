"""Connections of Airflow are found as Airflow spells them."""

from __future__ import annotations

import pytest

from tidegate.config import connections
from tidegate.config.connections import (
    Connection,
    airflow_connection,
    ask_airflow,
    lend_connection,
)
from tidegate.errors import SecretMissing
from tidegate.storage import S3Options

URI = "aws://the%2Fkey:the%2Bsecret@/?region_name=eu&endpoint_url=http%3A%2F%2Fstore%3A9"
JSON = (
    '{"conn_type": "aws", "login": "the/key", "password": "the+secret", '
    '"extra": {"region_name": "eu", "endpoint_url": "http://store:9"}}'
)


@pytest.fixture(autouse=True)
def _of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests of this process said is not known here."""
    monkeypatch.setattr(connections, "_askers", [])
    monkeypatch.setattr(connections, "_lent", {})


@pytest.mark.parametrize("text", [URI, JSON])
def test_connection_gives_what_the_section_does_not_say(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", text)

    found = S3Options(region="us", connection="lake").resolved()

    assert found == S3Options("http://store:9", "us", None, "the/key", "the+secret")


@pytest.mark.parametrize("text", [None, "", "{", "no uri", '{"extra": "{"}', "aws://?__extra__={"])
def test_connection_that_cannot_be_found_is_named(
    text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is not None:
        monkeypatch.setenv("AIRFLOW_CONN_LAKE", text)

    with pytest.raises(SecretMissing, match="AIRFLOW_CONN_LAKE"):
        airflow_connection("lake", "s3.connection")


def test_airflow_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", URI)
    known = Connection("a", "b")
    ask_airflow({"lake": known}.get)

    assert airflow_connection("lake", "s3.connection") is known
    assert repr(known) == "Connection(login='a')"


def test_connection_that_was_lent_is_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    lend_connection("lake", Connection("lent"))

    assert airflow_connection("lake", "s3.connection").login == "lent"
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", URI)
    assert airflow_connection("lake", "s3.connection").login == "the/key"
