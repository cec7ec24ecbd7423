"""A target and a work directory belong to one pipeline of one ledger, by the files they hold."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tidegate.config import OWNER_FILE
from tidegate.errors import (
    LedgerLost,
    OwnerInvalid,
    OwnersDiffer,
    PlaceOwned,
    TargetGone,
    TargetOwned,
    WorkOwned,
    WorkUnfit,
)
from tidegate.storage import LocalStorage
from tidegate.target.owner import Grounds, Owner
from tidegate.target.retired import Retirement, record_retirement

MINE, OTHERS = Owner("orders", "L1"), Owner("other", "L2")
MARKER = {"pipeline": "orders", "revision": 1, "files": []}


def _grounds(folder: Path, target: str = "out", work: str = "work") -> Grounds:
    place, beside = folder / target, folder / work
    place.mkdir(exist_ok=True)
    scratch = str(beside / "scratch")
    return Grounds(LocalStorage(), str(place), str(beside), f"{beside}/owner.json", scratch)


def _check(
    grounds: Grounds, pipeline: str, ledger: str | None, worked_in: str | None = None, **how: bool
) -> bool:
    return grounds.check(pipeline, ledger, grounds.read(), worked_in, **how)


def _mark(folder: Path, **changed: Any) -> None:
    marker = folder / "out" / "dt=1" / "_SUCCESS"
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.write_text(json.dumps({**MARKER, **changed}))


def test_grounds_that_were_put_are_the_pipelines(tmp_path: Path) -> None:
    grounds = _grounds(tmp_path)
    assert not _check(grounds, "orders", "L1")

    grounds.put(MINE)
    grounds.put(MINE)

    assert _check(grounds, "orders", "L1")
    claims = grounds.read()
    assert claims.target == claims.work == MINE


def test_place_of_the_ledger_is_told_by_the_work_directory_alone(tmp_path: Path) -> None:
    grounds = _grounds(tmp_path)
    grounds.put(Owner("orders", "L1", "/home/ledger.db"))
    first = grounds.read()

    grounds.note(Owner("orders", "L1", "/moved/ledger.db"))

    second = grounds.read()
    assert [first.work.place, second.work.place] == ["/home/ledger.db", "/moved/ledger.db"]
    assert first.target.place is second.target.place is None
    assert _check(grounds, "orders", "L1")
    assert not list((tmp_path / "work" / "scratch").iterdir())


def test_work_directory_of_the_version_before_tells_no_place(tmp_path: Path) -> None:
    _grounds(tmp_path).put(MINE)

    claims = _grounds(tmp_path).read()

    assert claims.work.place is None
    assert claims.work == Owner("orders", "L1", "/home/ledger.db")


@pytest.mark.parametrize(
    ("pipeline", "ledger", "error"),
    [
        ("other", "L1", TargetOwned),
        ("orders", "L2", LedgerLost),
        ("orders", None, LedgerLost),
    ],
    ids=["another pipeline", "another ledger", "a ledger that knows nothing"],
)
def test_whoever_else_comes_is_refused(
    tmp_path: Path, pipeline: str, ledger: str | None, error: type[Exception]
) -> None:
    _grounds(tmp_path).put(MINE)

    with pytest.raises(error):
        _check(_grounds(tmp_path), pipeline, ledger)


@pytest.mark.parametrize(
    ("ledger", "stranger"),
    [("L1", "work/owner.json"), ("L2", "out/.tidegate.owner"), (None, "out/.tidegate.owner")],
    ids=["the target's", "the work directory's", "neither"],
)
def test_two_files_of_two_ledgers_are_refused_with_the_one_that_does_not_fit(
    tmp_path: Path, ledger: str | None, stranger: str
) -> None:
    _grounds(tmp_path).put(MINE)
    file = tmp_path / "work" / "owner.json"
    file.write_text(file.read_text().replace('"L1"', '"L2"'))

    with pytest.raises(OwnersDiffer) as refused:
        _check(_grounds(tmp_path), "orders", ledger)

    found = refused.value
    assert (found.target_ledger, found.work_ledger) == ("L1", "L2")
    assert found.stranger == str(tmp_path / stranger)


def test_second_that_puts_its_file_finds_the_first_one(tmp_path: Path) -> None:
    _grounds(tmp_path).put(MINE)
    second = _grounds(tmp_path, work="work-2")

    second.put(OTHERS)

    claims = second.read()
    assert claims.target == MINE
    assert claims.work is None


def test_target_is_owned_through_a_link_too(tmp_path: Path) -> None:
    _grounds(tmp_path).put(MINE)
    (tmp_path / "link").symlink_to(tmp_path / "out")

    with pytest.raises(TargetOwned):
        _check(_grounds(tmp_path, "link", "work-2"), "other", "L2")


def test_target_above_or_below_an_owned_one_is_refused(tmp_path: Path) -> None:
    _grounds(tmp_path).put(MINE)
    (tmp_path / "out" / "deep").mkdir()

    with pytest.raises(TargetOwned):
        _check(_grounds(tmp_path, "out/deep", "work-2"), "other", "L2")
    with pytest.raises(TargetOwned):
        _check(_grounds(tmp_path, ".", "work-2"), "other", "L2")


@pytest.mark.parametrize(("work", "named"), [("work-2", "work"), ("deep/work", "work")])
def test_work_directory_that_does_not_fit_is_refused_with_the_one_that_does(
    tmp_path: Path, work: str, named: str
) -> None:
    _grounds(tmp_path).put(MINE)

    with pytest.raises(WorkUnfit) as unfit:
        _check(_grounds(tmp_path, work=work), "orders", "L1")

    assert unfit.value.values["fits"] == str(tmp_path / named)


def test_target_and_work_directory_may_move_together(tmp_path: Path) -> None:
    _grounds(tmp_path).put(MINE)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("out", "work"):
        shutil.move(tmp_path / name, moved / name)

    assert _check(_grounds(moved), "orders", "L1")


def test_work_directory_is_found_through_a_link_too(tmp_path: Path) -> None:
    _grounds(tmp_path).put(MINE)
    (tmp_path / "link").symlink_to(tmp_path / "work")

    assert _check(_grounds(tmp_path, work="link"), "orders", "L1")


@pytest.mark.parametrize(
    ("moved", "fits"), [("elsewhere/out", "work"), ("out", "work")], ids=["moved alone", "stayed"]
)
def test_work_directory_that_fits_is_the_one_that_is_there(
    tmp_path: Path, moved: str, fits: str
) -> None:
    _grounds(tmp_path).put(MINE)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").rename(tmp_path / moved)
    worked_in = str(tmp_path / ("work" if moved != "out" else "unknown"))

    with pytest.raises(WorkUnfit) as unfit:
        _check(_grounds(tmp_path, moved, "elsewhere"), "orders", "L1", worked_in)

    assert unfit.value.values["fits"] == str(tmp_path / fits)


def test_markers_of_a_pipeline_that_ended_leave_the_target_to_others(tmp_path: Path) -> None:
    _mark(tmp_path, pipeline="other")
    ended = Retirement("other", "L2", "ada", datetime(2026, 6, 1, tzinfo=UTC), {"dt=1": 1})
    record_retirement(LocalStorage(), str(tmp_path / "out"), ended, str(tmp_path / "scratch"))

    assert not _check(_grounds(tmp_path), "orders", "L1")


def test_work_directory_of_another_pipeline_is_refused(tmp_path: Path) -> None:
    _grounds(tmp_path).put(OTHERS)

    with pytest.raises(WorkOwned):
        _check(_grounds(tmp_path, "out-2"), "orders", "L1")


@pytest.mark.parametrize(
    ("target", "work", "error"),
    [
        ("out-2", "out", PlaceOwned),
        ("out-2", "out/deep/w", PlaceOwned),
        ("out-2", "work/w", PlaceOwned),
        ("work", "work-2", PlaceOwned),
        ("work/t", "work-2", PlaceOwned),
        (".", "../work-2", TargetOwned),
    ],
)
def test_place_inside_or_around_what_is_anothers_is_refused(
    tmp_path: Path, target: str, work: str, error: type[Exception]
) -> None:
    _grounds(tmp_path).put(OTHERS)

    with pytest.raises(error):
        _check(_grounds(tmp_path, target, work), "orders", None)


def test_target_without_its_file_is_missed_only_if_something_was_published(tmp_path: Path) -> None:
    _grounds(tmp_path).put(MINE)
    (tmp_path / "out" / OWNER_FILE).unlink()

    with pytest.raises(TargetGone):
        _check(_grounds(tmp_path), "orders", "L1")
    assert not _check(_grounds(tmp_path), "orders", "L1", was_published=False)


@pytest.mark.parametrize(
    ("marker", "worked_in", "error"),
    [
        ({}, "work", None),
        ({}, None, WorkUnfit),
        ({}, "work-2", WorkUnfit),
        ({"pipeline": "other"}, "work", TargetOwned),
    ],
    ids=["its own", "no work known", "another work directory", "another pipeline"],
)
def test_target_with_markers_alone_is_whose_they_name(
    tmp_path: Path, marker: dict[str, str], worked_in: str | None, error: type[Exception] | None
) -> None:
    _mark(tmp_path, **marker)
    known = None if worked_in is None else str(tmp_path / worked_in)

    if error is None:
        assert not _check(_grounds(tmp_path), "orders", "L1", known)
    else:
        with pytest.raises(error):
            _check(_grounds(tmp_path), "orders", "L1", known)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"format": 9, "pipeline": "a", "ledger": "b"}']
)
@pytest.mark.parametrize("place", ["target_file", "work_file"])
def test_file_that_says_something_else_is_refused(tmp_path: Path, place: str, content: str) -> None:
    grounds = _grounds(tmp_path)
    grounds.put(MINE)
    Path(getattr(grounds, place)).write_text(content)

    with pytest.raises(OwnerInvalid):
        _check(grounds, "orders", "L1")
