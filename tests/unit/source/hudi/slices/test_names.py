"""The names of files tell what they are."""

from __future__ import annotations

import pytest

from tidegate.source.hudi.slices.names import BaseFile, LogFile, parse_name

INSTANT = "20260201000000001"


def test_base_file_is_read_with_its_group_token_and_instant() -> None:
    found = parse_name(f"p/g_with_lines-0_1-2-3_{INSTANT}.parquet", 7)

    assert found == BaseFile(
        f"p/g_with_lines-0_1-2-3_{INSTANT}.parquet",
        7,
        "g_with_lines-0",
        "1-2-3",
        INSTANT,
        "parquet",
    )


@pytest.mark.parametrize(
    ("name", "token", "kind"),
    [
        (f".g-0_{INSTANT}.log.2_1-2-3", "1-2-3", "log"),
        (f".g-0_{INSTANT}.log.2", "", "log"),
        (f".g-0_{INSTANT}.log.2_1-2-3.cdc", "1-2-3", "cdc"),
    ],
)
def test_log_file_is_read_with_its_version(name: str, token: str, kind: str) -> None:
    found = parse_name(f"p/{name}", 7)

    assert isinstance(found, LogFile)
    assert (found.group, found.instant, found.version) == ("g-0", INSTANT, 2)
    assert (found.token, found.kind) == (token, kind)


@pytest.mark.parametrize(
    "name",
    [
        ".hoodie_partition_metadata",
        f".g-0_{INSTANT}.log.2_1-2-3.crc",
        f"..g-0_{INSTANT}.log.2_1-2-3.crc",
        "part-0001.parquet",
        f"g-0_1-2-3_{INSTANT}.csv",
        f"g-0_1-2-3_{INSTANT}.parquet.tmp",
    ],
)
def test_other_files_are_ignored(name: str) -> None:
    assert parse_name(name, 7) is None


def test_logs_are_ordered_by_instant_version_and_token() -> None:
    names = [
        f".g_{INSTANT}.log.10_0-1-1",
        f".g_{INSTANT}.log.2_1-1-1",
        f".g_{INSTANT}.log.2_0-1-1",
        ".g_20250101000000001.log.11_0-1-1",
    ]

    found = [parse_name(name, 1) for name in names]

    order = sorted((it for it in found if isinstance(it, LogFile)), key=lambda it: it.order)
    assert [it.path for it in order] == [names[3], names[2], names[1], names[0]]


@pytest.mark.parametrize("kind", ["log", "deletes", "cdc"])
@pytest.mark.parametrize("file_format", ["parquet", "orc", "hfile"])
def test_native_log_is_no_base_file(kind: str, file_format: str) -> None:
    found = parse_name(f"p/g_with_lines-0_1-2-3_{INSTANT}_4.{kind}.{file_format}", 7)

    assert isinstance(found, LogFile)
    assert (found.group, found.token, found.instant) == ("g_with_lines-0", "1-2-3", INSTANT)
    assert (found.version, found.kind, found.file_format) == (4, kind, file_format)


@pytest.mark.parametrize(
    "name",
    [
        f"g-0_1-2-3_{INSTANT}_4.log.parquet.crc",
        f".g-0_1-2-3_{INSTANT}_4.log.parquet",
        f"g-0_1-2-3_{INSTANT}_4.archive.parquet",
        f"g-0_1-2-3_{INSTANT}_x.log.parquet",
        f"g-0_1-2-3_{INSTANT}.log.parquet",
    ],
)
def test_file_with_nearly_the_name_of_a_native_log_is_ignored(name: str) -> None:
    assert parse_name(name, 7) is None


def test_native_logs_of_one_version_are_ordered_by_their_kind() -> None:
    names = [
        f"g_0-1-1_{INSTANT}_2.log.parquet",
        f".g_{INSTANT}.log.1_0-1-1",
        f"g_0-1-1_{INSTANT}_1.deletes.parquet",
        f"g_0-1-1_{INSTANT}_10.log.parquet",
        f"g_0-1-1_{INSTANT}_1.cdc.parquet",
        f"g_0-1-1_{INSTANT}_2.deletes.parquet",
        "g_9-9-9_20250101000000001_11.deletes.parquet",
    ]

    found = [parse_name(name, 1) for name in names]

    order = sorted((it for it in found if isinstance(it, LogFile)), key=lambda it: it.order)
    assert [names.index(it.path) for it in order] == [6, 1, 2, 4, 0, 5, 3]
