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
from tidegate.errors import ConnectionUnfit, ConnectionUnreadable, SecretMissing, StoreOptionWrong
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


@pytest.mark.parametrize("text", [None, ""])
def test_connection_that_cannot_be_found_is_named(
    text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is not None:
        monkeypatch.setenv("AIRFLOW_CONN_LAKE", text)

    with pytest.raises(SecretMissing, match="AIRFLOW_CONN_LAKE"):
        airflow_connection("lake", "s3.connection")


@pytest.mark.follows("ConnectionUnreadable")
@pytest.mark.parametrize(
    "text",
    ["{", "no uri", '{"extra": "{"}', "aws://?__extra__={", "aws://the/key:the+secret@/?region=eu"],
)
def test_connection_that_cannot_be_read_is_told_from_one_that_is_not_there(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", text)

    with pytest.raises(ConnectionUnreadable, match="AIRFLOW_CONN_LAKE is set, but") as refused:
        airflow_connection("lake", "s3.connection")

    assert "the+secret" not in str(refused.value)
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", URI)
    assert airflow_connection("lake", "s3.connection").password == "the+secret"


@pytest.mark.follows("StoreOptionWrong")
@pytest.mark.parametrize(
    "wrong",
    ["http://127.0.0.1:99999", "http://s:9/?token=hidden", "minio:9000", "http:// host", "http://"],
)
def test_endpoint_that_a_variable_has_is_one_before_it_is_asked(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENDPOINT", wrong)

    with pytest.raises(StoreOptionWrong, match="the endpoint is not `https://host`") as refused:
        S3Options("${env:ENDPOINT}").resolved()

    assert "hidden" not in str(refused.value)
    # What the message says to do.
    monkeypatch.setenv("ENDPOINT", "http://store:9/v1/s3")
    assert S3Options("${env:ENDPOINT}").resolved().endpoint == "http://store:9/v1/s3"


@pytest.mark.follows("ConnectionUnfit")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"conn_type": "aws", "login": "the/key"}', "has a login and no password"),
        ('{"conn_type": "aws", "password": "the+secret"}', "has a password and no login"),
        ("aws://the%2Fkey@/?region_name=eu", "has a login and no password"),
        ("http://the%2Fkey:the%2Bsecret@host", "is of type 'http'"),
        (JSON.replace('"aws"', '"spark"'), "is of type 'spark'"),
    ],
)
def test_connection_that_gives_no_credentials_of_a_store_is_refused_by_its_name(
    text: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", text)

    with pytest.raises(ConnectionUnfit, match=problem) as refused:
        S3Options(connection="lake").resolved()

    assert "'lake'" in str(refused.value)
    assert "the/key" not in str(refused.value)
    assert "the+secret" not in str(refused.value)
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", URI)
    assert S3Options(connection="lake").resolved().access_key == "the/key"


@pytest.mark.parametrize("text", ["aws://", "aws:///?profile_name=lake", '{"extra": {}}'])
def test_connection_without_a_pair_leaves_it_to_roles_and_profiles(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", text)

    assert S3Options(connection="lake").resolved().access_key is None


def test_half_a_pair_of_a_connection_is_not_looked_at_if_the_section_has_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", "aws://other@")
    monkeypatch.setenv("LAKE_KEY", "a")
    said = S3Options(access_key="${env:LAKE_KEY}", secret_key="${env:LAKE_KEY}", connection="lake")

    assert said.resolved() == S3Options(access_key="a", secret_key="a")


@pytest.mark.parametrize("by", ["variable", "connection"])
def test_endpoint_with_a_password_is_refused_before_an_error_shows_it(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENDPOINT", "http://user:the-secret@store:9")
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", '{"extra": {"endpoint_url": "http://u:the-secret@s"}}')
    said = S3Options("${env:ENDPOINT}") if by == "variable" else S3Options(connection="lake")

    with pytest.raises(
        StoreOptionWrong, match="a user and a password belong to `access_key`"
    ) as refused:
        said.resolved()

    assert "the-secret" not in str(refused.value)


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
