"""Damaged tables end with a typed error that names the file; a wrong row never comes out."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pytest

from golden_iceberg import Golden, bag, expected, golden, golden_copy
from golden_questions import question
from tidegate import errors
from tidegate.source.iceberg.deletes import loading as deletes
from tidegate.source.iceberg.deletes.cache import DeleteCache

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator
    from pathlib import Path

QUICK = ["eq_pos_mix_v2", "gzip_metadata_v2", "mixed_formats_v2", "mor_v3"]
THOROUGH = ["compaction_v3", "cow_v1", "eq_types_v2", "mor_avro_v2", "mor_orc_v2", "mor_v2"]
FLIPS = 12
"""Bytes that are flipped per file, one after the other."""


def kind_of(file: Path) -> str:
    """What a file of a table is, by its name."""
    if file.parent.name == "metadata":
        if ".metadata.json" in file.name:
            return "metadata"
        return "manifest list" if file.name.startswith("snap-") else "manifest"
    if file.suffix == ".puffin":
        return "vector"
    return "delete file" if "delete" in file.name else "data file"


KINDS = ["metadata", "manifest list", "manifest", "vector", "delete file", "data file"]
CHECKED = {".parquet", ".puffin"}
"""Files whose flipped bytes are found by checksums; ORC and Avro have none."""


@dataclass
class Damaged:
    """One file of a copied table, damaged and mended in turn."""

    table: Golden
    file: Path

    def with_bytes(self, damage: Callable[[bytes], bytes | None]) -> Counter[str] | Exception:
        """Damage the file, read the head as a new process would, mend the file; what came out."""
        whole = self.file.read_bytes()
        made = damage(whole)
        if made is None:
            self.file.unlink()
        else:
            self.file.write_bytes(made)
        try:
            with pytest.MonkeyPatch.context() as fresh:
                fresh.setattr(deletes, "DELETES", DeleteCache())
                return bag(self.table.changes("snapshot"))
        except errors.TidegateError as refused:
            return refused
        finally:
            self.file.write_bytes(whole)


def files_of(table: Golden, kind: str) -> Iterator[Path]:
    """The files of a kind; of the metadata files only the head's, no other is read."""
    for file in sorted(table.folder.rglob("*")):
        if not file.is_file() or file.parent == table.folder or kind_of(file) != kind:
            continue
        if kind != "metadata" or file == table.metadata:
            yield file


def needed(table: Golden) -> set[Path]:
    """The files that a read of the head must open, by the engine's plan."""
    tasks = expected(table.case)["head"]["tasks"]
    names = [name for task in tasks for name in (task, *task["deletes"])]
    return {table.metadata} | {table.folder / "table" / item["file"] for item in names}


def has_key_deletes(case: str) -> bool:
    """Whether values decide which rows of the head are gone."""
    tasks = expected(case)["head"]["tasks"]
    return any(item["content"] == "EQUALITY_DELETES" for task in tasks for item in task["deletes"])


@cache
def ever(case: str) -> frozenset[str]:
    """The rows that stood in any state of a table, as the head's schema shows them."""
    table, kept = golden(case), {"read": {"schema": "table"}}
    states = [item["snapshot_id"] for item in expected(case)["snapshots"]]
    return frozenset().union(*(bag(table.changes("snapshot", end=at, **kept)) for at in states))


def records(case: str) -> int:
    """How many rows stand in the data files of the head."""
    return sum(task["records"] for task in expected(case)["head"]["tasks"])


CASES = [
    question(case, kind, kind, slow=case in THOROUGH)
    for case in (*QUICK, *THOROUGH)
    for kind in KINDS
    if any(files_of(golden(case), kind))
]


@pytest.fixture
def damaged(tmp_path: Path, case: str, kind: str) -> list[Damaged]:
    table = golden_copy(case, tmp_path)
    return [Damaged(table, file) for file in files_of(table, kind)]


def right(case: str) -> Counter[str]:
    """The rows of the undamaged head."""
    return bag(golden(case).changes("snapshot"))


@pytest.mark.parametrize(("case", "kind"), CASES)
def test_removed_file_is_named_and_no_rows_are_read(
    case: str, kind: str, damaged: list[Damaged]
) -> None:
    gone = (errors.SourceNotFound, errors.SourceFileGone)
    for one in damaged:
        outcome = one.with_bytes(lambda _: None)

        if one.file in needed(one.table):
            assert isinstance(outcome, gone)
        if isinstance(outcome, Exception):
            assert isinstance(outcome, gone)
            assert one.file.name in str(outcome)
        else:
            assert outcome == right(case)


@pytest.mark.parametrize(("case", "kind"), CASES)
def test_truncated_file_is_named_and_no_rows_are_read(
    case: str, kind: str, damaged: list[Damaged]
) -> None:
    torn = (errors.SourceFileDamaged, errors.CorruptDeletes)
    for one in damaged:
        for damage in (
            lambda whole: whole[:0],
            lambda whole: whole[:5],
            lambda whole: whole[: len(whole) // 2],
            lambda whole: whole[:-1],
        ):
            outcome = one.with_bytes(damage)

            # Of a Puffin file only the blobs are read; what is left may hold them (ICE-4.13).
            if one.file in needed(one.table) and kind != "vector":
                assert isinstance(outcome, torn)
            if isinstance(outcome, Exception):
                assert isinstance(outcome, torn)
                assert one.file.name in str(outcome)
            else:
                assert outcome == right(case)


@pytest.mark.parametrize(("case", "kind"), [("mor_v3", "manifest")])
def test_damaged_manifest_leaves_no_thread_behind(
    case: str, kind: str, damaged: list[Damaged]
) -> None:
    """The collector of garbage would end it, where a thread begins, and wait there for ever."""
    before = set(threading.enumerate())

    outcome = damaged[0].with_bytes(lambda whole: whole[: len(whole) // 2])

    assert isinstance(outcome, errors.SourceFileDamaged)
    assert outcome.__traceback__ is not None
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(("case", "kind"), CASES)
def test_flipped_byte_ends_with_an_error_of_ours_or_with_the_right_rows(
    case: str, kind: str, damaged: list[Damaged]
) -> None:
    draw = random.Random(f"{case}/{kind}")
    for one in damaged:
        size = one.file.stat().st_size
        places = [0, size - 1, size // 2, *(draw.randrange(size) for _ in range(FLIPS - 3))]
        for place in places:
            outcome = one.with_bytes(
                lambda whole, place=place: (
                    whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
                )
            )

            if isinstance(outcome, Exception):
                continue
            where = f"byte {place} of {one.file.name}"
            if one.file.suffix in CHECKED or kind == "metadata":
                # Metadata is text, in which no byte stands for its complement, or has a checksum.
                assert outcome == right(case), where
            elif kind == "data file":
                # A value may be another one, but manifests know how many rows there are.
                assert outcome.total() <= records(case), where
                if not has_key_deletes(case):
                    assert outcome.total() == right(case).total(), where
            else:
                # Which files and deletes count may be wrong, but each row is one that stood once.
                assert outcome.keys() <= ever(case), where
                if kind == "delete file":
                    assert outcome.total() <= records(case), where


@pytest.mark.parametrize(("case", "kind"), CASES)
def test_file_with_the_content_of_another_kind_is_named(
    case: str, kind: str, damaged: list[Damaged]
) -> None:
    strange = (
        errors.SourceFileDamaged,
        errors.CorruptDeletes,
        errors.SchemaIncompatible,
        errors.UnsupportedFeature,
    )
    for one in damaged:
        for content in (b'{"format-version": 2}', b"PAR1" + bytes(64) + b"PAR1", b"Obj\x01" * 9):
            outcome = one.with_bytes(lambda _, content=content: content)

            if one.file in needed(one.table):
                assert isinstance(outcome, strange)
            assert isinstance(outcome, strange) or outcome == right(case)


@pytest.mark.parametrize("case", ["mor_v2", "mor_v3"])
@pytest.mark.parametrize("field_id", [500, 502, 515, 517])
def test_manifest_list_without_a_field_that_its_version_requires_is_named(
    tmp_path: Path, field_id: int, case: str
) -> None:
    table = golden_copy(case, tmp_path)
    for file in table.folder.rglob("snap-*.avro"):
        whole, named = file.read_bytes(), f'"field-id":{field_id}}}'.encode()
        assert named in whole
        file.write_bytes(whole.replace(named, b'"field-id":999}'))

    with pytest.raises(errors.SourceFileDamaged, match=rf"snap-.*field {field_id}"):
        bag(table.changes("snapshot"))
