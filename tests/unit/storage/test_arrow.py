"""The files of an Iceberg table are reached as the section says, but for what the catalog says."""

from __future__ import annotations

import pytest

from tidegate.storage import S3Options, table_properties

OPTIONS = S3Options("http://127.0.0.1:9", "eu-central-1", None, "one", "secret", "token")
PLACE = {"s3.endpoint": "http://127.0.0.1:9", "s3.region": "eu-central-1"}
WHO = {
    "s3.access-key-id": "one",
    "s3.secret-access-key": "secret",
    "s3.session-token": "token",
}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param({}, {**PLACE, **WHO}, id="nothing"),
        pytest.param({"s3.region": "us"}, {**PLACE, **WHO, "s3.region": "us"}, id="region"),
        pytest.param(
            {"client.region": "us"},
            {"s3.endpoint": PLACE["s3.endpoint"], **WHO, "client.region": "us"},
            id="region for all",
        ),
        pytest.param(
            {"glue.access-key-id": "two"},
            {**PLACE, **WHO, "glue.access-key-id": "two"},
            id="of the catalog alone",
        ),
        *(
            pytest.param({name: "two"}, {**PLACE, name: "two"}, id=name)
            for name in (
                "s3.access-key-id",
                "s3.secret-access-key",
                "s3.session-token",
                "s3.anonymous",
                "client.access-key-id",
            )
        ),
    ],
)
def test_properties_of_a_catalog_win_and_no_pair_is_mixed(
    said: dict[str, str], expected: dict[str, str]
) -> None:
    assert table_properties(OPTIONS, {"uri": "x", **said}) == {"uri": "x", **expected}
