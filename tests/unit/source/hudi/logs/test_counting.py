"""Which blocks count, and in which order their records are merged."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.source.hudi.logs.blocks import Block, BlockType, Header
from tidegate.source.hudi.logs.counting import counted_blocks


@dataclass
class Admits:
    """Admits some instants; all of them by default."""

    instants: str = "123456789"

    def admits(self, instant: str) -> bool:
        return instant in self.instants


def rows(instant: str, *compacted: str) -> Block:
    header = {int(Header.INSTANT_TIME): instant}
    if compacted:
        header[int(Header.COMPACTED_BLOCK_TIMES)] = ",".join(compacted)
    return Block("log", BlockType.AVRO, header, 0, 0)


def rollback(instant: str, target: str) -> Block:
    header = {Header.INSTANT_TIME: instant, Header.TARGET_INSTANT_TIME: target}
    return Block("log", BlockType.COMMAND, {int(key): it for key, it in header.items()}, 0, 0)


def order(*blocks: Block, admits: str = "123456789", **options: object) -> str:
    found = counted_blocks(blocks, Admits(admits), **options)  # type: ignore[arg-type]
    return "".join(block.instant for block in found.blocks)


def test_blocks_count_in_the_order_of_their_instants_first_block() -> None:
    assert order(rows("1"), rows("2"), rows("1"), rows("3")) == "1123"


def test_rollback_takes_back_its_target_at_any_distance() -> None:
    assert order(rows("1"), rows("2"), rows("3"), rollback("4", "2")) == "13"


def test_rollback_that_is_not_visible_counts_all_the_same() -> None:
    assert order(rows("1"), rows("2"), rollback("9", "2"), admits="12") == "1"


def test_what_comes_after_a_rollback_of_its_instant_counts() -> None:
    assert order(rows("1"), rollback("2", "1"), rows("1")) == "1"


def test_originals_of_a_log_compaction_of_a_log_compaction_are_preferred_if_all_are_there() -> None:
    blocks = [rows("1"), rows("2"), rows("3", "1", "2"), rows("4"), rows("5", "3", "4")]

    assert order(*blocks, originals=True) == "124"
    assert order(*blocks) == "5"
    assert order(*blocks[1:], originals=True) == "34"
    assert order(*blocks[3:], originals=True) == "5"


def test_blocks_of_instants_that_are_not_done_do_not_count() -> None:
    found = counted_blocks([rows("1"), rows("2")], Admits("1"))

    assert [block.instant for block in found.blocks] == ["1"]


def test_window_has_blocks_of_its_instants_only() -> None:
    assert order(rows("1"), rows("2"), rows("3"), exact={"2", "3"}) == "23"


def test_corrupt_spans_are_counted() -> None:
    corrupt = Block("log", BlockType.CORRUPT, {}, 0, 9)

    assert counted_blocks([corrupt, rows("1"), corrupt], Admits()).corrupt == {"log": 2}


def test_log_compaction_stands_where_the_newest_of_its_originals_did() -> None:
    assert order(rows("1"), rows("2"), rows("3"), rows("4", "1", "2")) == "43"


def test_log_compaction_of_a_log_compaction_stands_for_all_of_them() -> None:
    blocks = (rows("1"), rows("2"), rows("3", "1", "2"), rows("4"), rows("5", "3", "4"))

    assert order(*blocks, rows("6")) == "56"


def test_log_compaction_whose_originals_are_gone_stands_for_itself() -> None:
    assert order(rows("3"), rows("4", "1", "2")) == "34"


def test_originals_are_preferred_if_all_are_there() -> None:
    blocks = (rows("1"), rows("2"), rows("3", "1", "2"))

    assert order(*blocks, originals=True) == "12"
    assert order(*blocks[1:], originals=True) == "3"


def test_header_that_names_itself_or_younger_ones_makes_no_circle() -> None:
    assert sorted(order(rows("1", "2"), rows("2", "1"), rows("3", "3"))) == ["2", "3"]
