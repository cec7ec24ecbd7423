"""Make each mistake of `crash.unsynced` and say how many of its deaths the crash walk saw it at.

python -m crash.try_unsynced FOLDER [--share 0/2] [--only NAME]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from crash.unsynced import UNSYNCED, Mistake
from crash.walk import SCENARIOS, Walk, chosen, walk


def main() -> None:
    """Try a share of the mistakes, or one, and then tell all that was seen."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--share", default="0/1")
    parser.add_argument("--only", choices=sorted(UNSYNCED))
    given = parser.parse_args()
    first, step = map(int, given.share.split("/"))
    for name in [given.only] if given.only else sorted(UNSYNCED)[first::step]:
        mistake = UNSYNCED[name]

        def choose(made: list[str], at: Mistake = mistake) -> list[int]:
            return chosen(made, "0/1", at.named, at.most, at.after)

        steps = Walk(given.folder / name, name, SCENARIOS[mistake.scenario])
        told = walk(steps, choose, cuts=[mistake.cut])
        sys.stdout.write(f"{name}: {told[0]}, wrong {len(told) - 1} times\n")
        if given.only:
            sys.stdout.write("".join(f"{line}\n" for line in told[1:]))


if __name__ == "__main__":
    main()
