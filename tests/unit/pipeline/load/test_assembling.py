"""A plan says which sub-splits hand rows on, and how many buckets they are handed on to."""

from __future__ import annotations

from tidegate.model.assembly import Assembly
from tidegate.model.exchange import Exchange
from tidegate.model.file_slice import CheckedState, FileSlice
from tidegate.model.plan import Piece, Split, SubSplit
from tidegate.pipeline.load.assembling import assembly_in, handing_on


def test_those_hand_on_that_stage_what_they_read() -> None:
    begin = Exchange("g", 1, 1)
    piece, checked = (
        Piece(FileSlice("f", check=check), 1, 1) for check in (None, CheckedState(7, True))
    )
    plain, check = SubSplit((piece,)), SubSplit((checked,))
    spreads, gathers = SubSplit((piece,), begin), SubSplit((), Exchange("g", 1, 1, 1, 0))
    assembles = [SubSplit((), assembly=Assembly(bucket, 2, 2, 32)) for bucket in range(2)]
    splits = [Split((part,), 1) for part in (spreads, plain, gathers, check, *assembles)]

    assert handing_on(splits) == (plain.id, gathers.id)
    assert assembly_in(splits) == assembles[-1].assembly
    assert (assembly_in(splits[:4]), assembly_in([])) == (None, None)
