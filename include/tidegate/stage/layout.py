"""Name every path below a work directory. Touches no storage, and knows no file content.

`work` is the work directory beside the target; `plan_root` is the directory of one plan below it,
as `plan_root(work, sequence, digest)` returns it. Paths are text with `/`, as storage expects them
(design §4).
"""

from __future__ import annotations

import posixpath
import re

from tidegate.model.part_format import EXTENSIONS, PARQUET
from tidegate.model.partition import UNPARTITIONED_KEY, Partition

WINDOWS = "windows"
START = "start"
PUBLICATIONS = "publications"
RETIRED = "retired"
LOCKS = "locks"
LISTINGS = "listings"
SCRATCH = "scratch"
UNITS = "units"
ERASURES = "erasures"
STAGED = "staged"
QUARANTINE = "quarantine"
LATE_QUARANTINE = f"{QUARANTINE}/late"
"""Beside the directories of sub-splits, whose names are digests."""
MESSAGES = "messages"
EXCHANGE = "exchange"

TREES = (WINDOWS, PUBLICATIONS, UNITS, RETIRED, LISTINGS, SCRATCH)
"""Every directory of a work directory that has files of its pipeline, which locks are not."""

_EXTENSIONS = "|".join(map(re.escape, EXTENSIONS))
_PART = re.compile(rf"part-[0-9a-f]+-[0-9a-f]+-\d+(?:{_EXTENSIONS})")


def owner_file(work: str) -> str:
    """Return the path of the file that names the pipeline and ledger of this directory."""
    return posixpath.join(work, "owner.json")


def reset_file(work: str) -> str:
    """Return the path of the file that stands while a pipeline is being reset."""
    return posixpath.join(work, "reset.json")


def retire_file(work: str) -> str:
    """Return the path of the file that stands until a retirement is recorded in the target."""
    return posixpath.join(work, "retire.json")


def load_failure_file(work: str) -> str:
    """Return the path of the file that says why the last load failed."""
    return posixpath.join(work, "load-failed.json")


def start_file(work: str, source: str) -> str:
    """Return the path of the file with the start of a source's first window.

    Args:
        work: the work directory.
        source: a digest of the source's identity: a corrected source starts anew.
    """
    return posixpath.join(work, f"{START}-{source}.json")


def is_start_file(path: str) -> bool:
    """Return whether a path is one of `start_file`."""
    return posixpath.basename(path).startswith(f"{START}-")


def windows_root(work: str) -> str:
    """Return the directory with one directory per window."""
    return posixpath.join(work, WINDOWS)


def window_root(work: str, sequence: int) -> str:
    """Return the directory of one window; six digits keep listings in window order."""
    return posixpath.join(work, WINDOWS, f"{sequence:06d}")


def plan_root(work: str, sequence: int, digest: str) -> str:
    """Return the directory of one plan of one window."""
    return posixpath.join(window_root(work, sequence), digest)


def work_of_plan(plan_root: str) -> str:
    """Return the work directory that the directory of a plan is in."""
    window = posixpath.dirname(plan_root)
    return posixpath.dirname(posixpath.dirname(window))


def plan_file(plan_root: str) -> str:
    """Return the path of the file with the plan itself."""
    return posixpath.join(plan_root, "plan.json")


def splits_file(plan_root: str) -> str:
    """Return the path of the file with one split per line, in plan order."""
    return posixpath.join(plan_root, "splits.jsonl")


def sealed_file(plan_root: str, number: int | None = None) -> str:
    """Return the path of the file from which a lost ledger is restored.

    Args:
        plan_root: directory of the plan.
        number: the number of the announce if the plan was announced before, else None.
    """
    return posixpath.join(plan_root, "sealed.json" if number is None else f"sealed-{number}.json")


def is_sealed_file(name: str) -> bool:
    """Return whether a file name in the directory of a plan is one of `sealed_file`."""
    return name == "sealed.json" or (name.startswith("sealed-") and name.endswith(".json"))


def abandoned_file(plan_root: str, number: int | None = None) -> str:
    """Return the path of the file that says that the window of a plan was given up.

    Args:
        plan_root: directory of the plan.
        number: the number of the record if there is one already, else None.
    """
    name = "abandoned.json" if number is None else f"abandoned-{number}.json"
    return posixpath.join(plan_root, name)


def is_abandoned_file(name: str) -> bool:
    """Return whether a file name in the directory of a plan is one of `abandoned_file`."""
    return name == "abandoned.json" or (name.startswith("abandoned-") and name.endswith(".json"))


def window_of(path: str) -> int | None:
    """Return the window whose directory contains a path; None if there is none."""
    number, *rest = path.rpartition(f"/{WINDOWS}/")[2].split("/")
    return int(number) if number.isdecimal() and PUBLICATIONS not in rest else None


def messages_root(plan_root: str) -> str:
    """Return the directory with one commit message per finished sub-split."""
    return posixpath.join(plan_root, MESSAGES)


def message_file(plan_root: str, sub_split: str) -> str:
    """Return the path of the commit message of one sub-split; the first one written wins."""
    return posixpath.join(messages_root(plan_root), f"{sub_split}.json")


def sub_split_of_message(name: str) -> str:
    """Return the sub-split of a message from its file name."""
    return posixpath.basename(name).removesuffix(".json")


def attempt_staged(sub_split: str, attempt: str) -> str:
    """Return one attempt's directory of part files, relative to the plan's directory."""
    return posixpath.join(STAGED, sub_split, attempt)


def attempt_quarantine(sub_split: str, attempt: str) -> str:
    """Return one attempt's directory of quarantined rows, relative to the plan's directory."""
    return posixpath.join(QUARANTINE, sub_split, attempt)


def late_quarantine(plan_root: str, partition: Partition) -> str:
    """Return the directory of a window's rejected late rows of one partition (PC-L06)."""
    return posixpath.join(plan_root, LATE_QUARANTINE, partition.path)


def exchange_root(plan_root: str) -> str:
    """Return the directory of rows that sub-splits of a plan exchange."""
    return posixpath.join(plan_root, EXCHANGE)


def attempt_exchange(sub_split: str, attempt: str) -> str:
    """Return one attempt's file of rows for other sub-splits, relative to the plan's directory."""
    return posixpath.join(EXCHANGE, sub_split, f"{attempt}.arrow")


def part_name(digest: str, sub_split: str, counter: int, extension: str = PARQUET.extension) -> str:
    """Return the final name of a part file, equal for equal plans only (design §4)."""
    return f"part-{digest}-{sub_split}-{counter}{extension}"


def digest_of_part(path: str) -> str | None:
    """Return the digest in the name of a part file; None if it is not one of `part_name`."""
    name = posixpath.basename(path)
    return name.split("-")[1] if _PART.fullmatch(name) else None


def is_part_file(path: str) -> bool:
    """Return whether the name of a file is one of `part_name`."""
    return _PART.fullmatch(posixpath.basename(path)) is not None


def relative_to_work(work: str, path: str) -> str:
    """Return a path relative to the work directory."""
    return posixpath.relpath(path, work)


def publications_root(work: str, partition: Partition) -> str:
    """Return the directory with the publications of one partition."""
    return posixpath.join(work, PUBLICATIONS, partition.path or UNPARTITIONED_KEY)


def units_root(work: str, partition: Partition) -> str:
    """Return the directory with the files that revisions of one partition are assembled from."""
    return posixpath.join(work, UNITS, partition.path or UNPARTITIONED_KEY)


def unit_root(work: str, partition: Partition, digest: str) -> str:
    """Return the directory of one assembly; its digest is that of its ingredients."""
    return posixpath.join(units_root(work, partition), digest)


def unit_file(unit_root: str) -> str:
    """Return the path of the record that names the files of a finished assembly."""
    return posixpath.join(unit_root, "assembled.json")


def publication_file(work: str, partition: Partition, revision: int, record: str) -> str:
    """Return the path of a commit plan; `record` is the publication's digest-number."""
    return posixpath.join(publications_root(work, partition), f"{revision}-{record}.json")


def gate_file(work: str, partition: Partition, revision: int, record: str) -> str:
    """Return the path of a verdict on a proposed revision; `record` is its digest-number."""
    return posixpath.join(publications_root(work, partition), f"{revision}-{record}.gate.json")


def decision_file(work: str, partition: Partition, revision: int, record: str) -> str:
    """Return the path of a decision on a held revision; `record` is as for its verdict."""
    return posixpath.join(publications_root(work, partition), f"{revision}-{record}.decision.json")


def is_commit_plan(path: str) -> bool:
    """Return whether the name of a record is one of `publication_file`."""
    name = posixpath.basename(path)
    return name.endswith(".json") and name.count(".") == 1


def order_of_record(name: str) -> tuple[int, int]:
    """Return revision and number from the name of a commit plan, a verdict or a decision.

    The number is 0 if the name has none, as in early versions.
    """
    plain = posixpath.basename(name).partition(".")[0]
    revision, _digest, *number = plain.split("-")
    return int(revision), int(number[0]) if number else 0


def retired_root(work: str, partition: Partition) -> str:
    """Return the directory of replaced files of one partition, by revision."""
    return posixpath.join(work, RETIRED, partition.path or UNPARTITIONED_KEY)


def retired_part(work: str, partition: Partition, revision: int, name: str) -> str:
    """Return the path of a file that the given revision removes from its partition."""
    return posixpath.join(retired_root(work, partition), str(revision), name)


def erasures_root(work: str) -> str:
    """Return the directory of what is erased for good, which outlives a reset."""
    return posixpath.join(work, ERASURES)


def erasure_file(work: str, number: int) -> str:
    """Return the path of one erasure."""
    return posixpath.join(work, ERASURES, f"{number:06d}.json")


def number_of_erasure(name: str) -> int | None:
    """Return the number of an erasure from its file name; None for other files."""
    number, _, rest = name.partition(".")
    return int(number) if number.isdecimal() and rest == "json" else None


def is_erasure_file(path: str) -> bool:
    """Return whether a path is that of an erasure or of a report."""
    return posixpath.basename(posixpath.dirname(path)) == ERASURES


def erasure_report(work: str, number: int, at: str) -> str:
    """Return the path of the report of a call that erased all rows up to an erasure."""
    return posixpath.join(work, ERASURES, f"{number:06d}-{at}.report.json")


def reported_erasure(name: str) -> int | None:
    """Return the number of the erasure that a report goes up to; None for other files."""
    number, _, rest = name.partition("-")
    return int(number) if number.isdecimal() and rest.endswith(".report.json") else None


def locks_root(work: str) -> str:
    """Return the directory of lock files: of partitions committed, and of windows swept."""
    return posixpath.join(work, LOCKS)


def lock_file(work: str, partition: Partition) -> str:
    """Return the file that a committer locks while it moves the partition's files."""
    return posixpath.join(work, LOCKS, partition.path or UNPARTITIONED_KEY, "partition.lock")


def window_lock(work: str, sequence: int) -> str:
    """Return the file that is locked while files of a window's plans are deleted."""
    return posixpath.join(work, LOCKS, WINDOWS, f"{sequence:06d}.lock")


def listings_root(work: str) -> str:
    """Return the directory with the listings of a source of plain files."""
    return posixpath.join(work, LISTINGS)


def scratch_root(work: str) -> str:
    """Return the directory in which a file for the target is written before it gets its name."""
    return posixpath.join(work, SCRATCH)
