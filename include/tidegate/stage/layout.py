"""Name every path below a work directory. Touches no storage; knows nothing of what the files hold.

`work` is the work directory beside the target; `plan_root` is the directory of one plan below it,
what `plan_root(work, sequence, digest)` gives. Paths are text with `/`, as storage takes them
(design §4).
"""

from __future__ import annotations

import posixpath

from tidegate.model.partition import UNPARTITIONED_KEY, Partition

WINDOWS = "windows"
START = "start"
PUBLICATIONS = "publications"
RETIRED = "retired"
LOCKS = "locks"
LISTINGS = "listings"
SCRATCH = "scratch"
STAGED = "staged"
QUARANTINE = "quarantine"
MESSAGES = "messages"
EXCHANGE = "exchange"

PART_EXTENSION = ".zstd.parquet"


def owner_file(work: str) -> str:
    """Name the file that says which pipeline and ledger use this directory."""
    return posixpath.join(work, "owner.json")


def start_file(work: str, source: str) -> str:
    """Name the file that says where the first window of a source begins.

    Args:
        work: the work directory.
        source: a digest of the source's identity: what was corrected begins anew.
    """
    return posixpath.join(work, f"{START}-{source}.json")


def is_start_file(path: str) -> bool:
    """Tell from a path whether `start_file` gave it."""
    return posixpath.basename(path).startswith(f"{START}-")


def windows_root(work: str) -> str:
    """Name the directory with one directory per window."""
    return posixpath.join(work, WINDOWS)


def window_root(work: str, sequence: int) -> str:
    """Name the directory of one window; six digits keep listings in window order."""
    return posixpath.join(work, WINDOWS, f"{sequence:06d}")


def plan_root(work: str, sequence: int, digest: str) -> str:
    """Name the directory of one plan of one window."""
    return posixpath.join(window_root(work, sequence), digest)


def plan_file(plan_root: str) -> str:
    """Name the file with the plan itself."""
    return posixpath.join(plan_root, "plan.json")


def splits_file(plan_root: str) -> str:
    """Name the file with one split per line, in plan order."""
    return posixpath.join(plan_root, "splits.jsonl")


def sealed_file(plan_root: str, number: int | None = None) -> str:
    """Name the file from which a lost ledger is restored.

    Args:
        plan_root: directory of the plan.
        number: of the announce, when the plan was announced before; None at first.
    """
    return posixpath.join(plan_root, "sealed.json" if number is None else f"sealed-{number}.json")


def is_sealed_file(name: str) -> bool:
    """Tell from a file's name in the directory of a plan whether `sealed_file` gave it."""
    return name == "sealed.json" or (name.startswith("sealed-") and name.endswith(".json"))


def window_of(path: str) -> int | None:
    """Tell below which window's directory a path lies; None if it lies below none."""
    number, *rest = path.rpartition(f"/{WINDOWS}/")[2].split("/")
    return int(number) if number.isdecimal() and PUBLICATIONS not in rest else None


def messages_root(plan_root: str) -> str:
    """Name the directory with one commit message per finished sub-split."""
    return posixpath.join(plan_root, MESSAGES)


def message_file(plan_root: str, sub_split: str) -> str:
    """Name the commit message of one sub-split; the first one written wins."""
    return posixpath.join(messages_root(plan_root), f"{sub_split}.json")


def sub_split_of_message(name: str) -> str:
    """Tell from a message's file name which sub-split it speaks for."""
    return posixpath.basename(name).removesuffix(".json")


def attempt_staged(sub_split: str, attempt: str) -> str:
    """Name one attempt's directory of part files, relative to the plan's directory."""
    return posixpath.join(STAGED, sub_split, attempt)


def attempt_quarantine(sub_split: str, attempt: str) -> str:
    """Name one attempt's directory of rows put aside, relative to the plan's directory."""
    return posixpath.join(QUARANTINE, sub_split, attempt)


def exchange_root(plan_root: str) -> str:
    """Name the directory of rows that sub-splits of a plan hand each other."""
    return posixpath.join(plan_root, EXCHANGE)


def attempt_exchange(sub_split: str, attempt: str) -> str:
    """Name one attempt's file of rows for other sub-splits, relative to the plan's directory."""
    return posixpath.join(EXCHANGE, sub_split, f"{attempt}.arrow")


def part_name(digest: str, sub_split: str, counter: int) -> str:
    """Name a part file for good: same plan, same name; other plans stand beside it (design §4)."""
    return f"part-{digest}-{sub_split}-{counter}{PART_EXTENSION}"


def relative_to_work(work: str, path: str) -> str:
    """Return where a path stands relative to the work directory."""
    return posixpath.relpath(path, work)


def publications_root(work: str, partition: Partition) -> str:
    """Name the directory with the publications of one partition."""
    return posixpath.join(work, PUBLICATIONS, partition.path or UNPARTITIONED_KEY)


def publication_file(work: str, partition: Partition, revision: int, record: str) -> str:
    """Name a commit plan of one revision; `record` is the publication's digest-number."""
    return posixpath.join(publications_root(work, partition), f"{revision}-{record}.json")


def gate_file(work: str, partition: Partition, revision: int, record: str) -> str:
    """Name the verdict on one proposed revision; `record` is the publication's digest-number."""
    return posixpath.join(publications_root(work, partition), f"{revision}-{record}.gate.json")


def decision_file(work: str, partition: Partition, revision: int, record: str) -> str:
    """Name a person's decision on one held revision; `record` is as for its verdict."""
    return posixpath.join(publications_root(work, partition), f"{revision}-{record}.decision.json")


def is_commit_plan(path: str) -> bool:
    """Tell from the name of a record whether `publication_file` gave it."""
    name = posixpath.basename(path)
    return name.endswith(".json") and name.count(".") == 1


def order_of_record(name: str) -> tuple[int, int]:
    """Tell from the name of a commit plan, a verdict or a decision its revision and its number.

    The number is 0 where none was given, as before there were any.
    """
    plain = posixpath.basename(name).partition(".")[0]
    revision, _digest, *number = plain.split("-")
    return int(revision), int(number[0]) if number else 0


def retired_root(work: str, partition: Partition) -> str:
    """Name the directory with what revisions of one partition replaced, by revision."""
    return posixpath.join(work, RETIRED, partition.path or UNPARTITIONED_KEY)


def retired_part(work: str, partition: Partition, revision: int, name: str) -> str:
    """Name where a file goes that the given revision removes from its partition."""
    return posixpath.join(retired_root(work, partition), str(revision), name)


def locks_root(work: str) -> str:
    """Name the directory of lock files: of partitions committed, and of windows swept."""
    return posixpath.join(work, LOCKS)


def lock_file(work: str, partition: Partition) -> str:
    """Name the file that a committer locks while it moves the partition's files."""
    return posixpath.join(work, LOCKS, partition.path or UNPARTITIONED_KEY, "partition.lock")


def window_lock(work: str, sequence: int) -> str:
    """Name the file that is locked while files of a window's plans are deleted."""
    return posixpath.join(work, LOCKS, WINDOWS, f"{sequence:06d}.lock")


def listings_root(work: str) -> str:
    """Name the directory with the listings of a source of plain files."""
    return posixpath.join(work, LISTINGS)


def scratch_root(work: str) -> str:
    """Name the directory in which a file for the target is written before it gets its name."""
    return posixpath.join(work, SCRATCH)
