"""The metastore of a target: an address, a table, and the policy that keeps it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tidegate.config import MetastoreConfig, PipelineConfig

METASTORE = {"uri": "thrift://metastore:9083", "table": "shop.orders"}


def pipeline(policies: list[str], **target: Any) -> PipelineConfig:
    return PipelineConfig.model_validate(
        {
            "name": "orders",
            "source": {"kind": "files", "path": "/lake/landing"},
            "target": {"path": "/lake/published/orders", **target},
            "commit": {"policies": policies},
        },
        context={"folder": "/"},
    )


def test_metastore_before_the_marker_is_taken_and_decides_no_staged_byte() -> None:
    listed = pipeline(["metastore", "success-file"], metastore=METASTORE)

    assert listed.target.metastore == MetastoreConfig(**METASTORE, on_empty="keep")
    assert listed.plan_inputs() == pipeline(["success-file"]).plan_inputs()
    assert PipelineConfig.from_resolved(listed.resolved()) == listed


@pytest.mark.parametrize(
    ("policies", "target", "said"),
    [
        (["metastore"], {}, "needs `target.metastore"),
        (["success-file"], {"metastore": METASTORE}, "is used by no policy"),
        (["success-file", "metastore"], {"metastore": METASTORE}, "the marker is written last"),
        (["metastore"], {"metastore": METASTORE, "format": "csv"}, "use parquet, orc"),
        (["metastore"], {"metastore": METASTORE, "format": "json"}, "lists no json files"),
    ],
)
def test_metastore_that_cannot_be_kept_is_refused(
    policies: list[str], target: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        pipeline(policies, **target)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"uri": "metastore:9083"}, "expected `thrift://host:port`, found 'metastore:9083'"),
        ({"uri": "thrift://one:9083, http://two"}, "found 'http://two'"),
        ({"uri": "thrift://"}, "found 'thrift://'"),
        ({"uri": "thrift://host:abc"}, "found 'thrift://host:abc'"),
        ({"uri": "thrift://host:99999"}, "found 'thrift://host:99999'"),
        ({"table": "orders"}, "expected `database.table`, found 'orders'"),
        ({"table": "a.b.c"}, "found 'a.b.c'"),
        ({"on_empty": "delete"}, "drop"),
        ({"uri": None}, "is required: `thrift://host:port` of a Hive metastore; or write"),
        ({"through": "spark"}, "is not asked with `through: spark`.*remove one of the two"),
        ({"through": "spark", "uri": None, "table": "a.b.c.d"}, "found 'a.b.c.d'"),
        ({"through": "glue"}, "thrift, spark"),
    ],
)
def test_address_and_table_are_checked(keys: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        MetastoreConfig.model_validate({**METASTORE, **keys})


def test_name_of_a_table_is_read_without_case() -> None:
    assert MetastoreConfig.model_validate({**METASTORE, "table": "Shop.Orders"}).table == (
        "shop.orders"
    )


def test_catalog_of_spark_needs_a_table_alone_and_may_be_named() -> None:
    listed = pipeline(
        ["metastore", "success-file"],
        metastore={"through": "spark", "table": "Lake.shop.Orders"},
    )

    found = listed.target.metastore
    assert found is not None
    assert (found.uri, found.table) == (None, "Lake.shop.Orders")
    assert found.place == "Lake.shop.Orders through Spark's catalog"
    assert PipelineConfig.from_resolved(listed.resolved()) == listed
    assert MetastoreConfig.model_validate(METASTORE).place == (
        "shop.orders through thrift://metastore:9083"
    )
    # A session of Spark refuses a column that another thread has just added.
    assert not found.runs_side_by_side
    assert MetastoreConfig.model_validate(METASTORE).runs_side_by_side
