"""Break the modules that hold the promises in small ways, and list what no test noticed.

mutmut does the work. It wants the code below `src/` and names mutants by that path, so each package
is copied into a folder of its own below `.mutate/`. The results stay there: a run that was stopped
goes on, and survivors of an earlier run are tried again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

ROOT = Path(__file__).resolve().parent.parent
CODE = ROOT / "include" / "tidegate"
HOME = ROOT / ".mutate"
NEAREST = {
    "commit": ("tests/unit/commit",),
    "ledger": ("tests/unit/ledger", "tests/behaviour/test_ledgers.py"),
    "plan": ("tests/unit/plan",),
    "read": ("tests/unit/read", "tests/unit/pipeline/load/test_change_stream.py"),
    "target": ("tests/unit/target", "tests/behaviour/test_survival_owner.py"),
}
"""Package → the tests that should notice. mutmut runs of them those that call what it broke."""
MARKS = "not slow and not spark and not airflow and not postgres and not e2e"
SURVIVED, NO_TESTS, SKIPPED = 0, {5, 33}, 34


@dataclass(frozen=True)
class Score:
    """How the mutants of one module fared."""

    module: str
    killed: int
    survivors: tuple[str, ...]
    untested: tuple[str, ...]
    unchecked: int

    @property
    def unnoticed(self) -> tuple[str, ...]:
        """Mutants that no test failed with."""
        return (*self.survivors, *self.untested)

    @property
    def share(self) -> float:
        """How many of a hundred mutants that were tried a test noticed."""
        tried = self.killed + len(self.unnoticed)
        return 100 * self.killed / tried if tried else 100.0


def main() -> int:
    """Mutate what is asked for; print a score per module and all survivors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", nargs="?", help="such as target/content.py; all by default")
    parser.add_argument("--sample", type=int, help="try so many of a package, drawn at random")
    parser.add_argument("--only-report", action="store_true", help="what earlier runs found")
    given = parser.parse_args()
    package = given.module.split("/")[0] if given.module else None
    if package is not None and not (package in NEAREST and (CODE / given.module).is_file()):
        parser.error(f"{given.module}: no module of {', '.join(NEAREST)}")
    packages = [package] if package else [name for name in NEAREST if (CODE / name).is_dir()]
    scores = []
    for name in packages:
        if given.sample:
            sample(name, given.module, given.sample)
        elif not given.only_report and not mutate(name, given.module):
            return 1
        scores += [found for found in scores_of(name) if given.module in (None, found.module)]
    report(scores)
    return 0


def mutate(package: str, module: str | None) -> bool:
    """Try the mutants of a package, or of one module, that were not tried, and the survivors."""
    home = HOME / package
    before = {name for score in scores_of(package) for name in score.unnoticed}
    prepare(home, package)
    if module is not None:
        names = unfinished(module)
        return not names or run(home, names)
    if not run(home, []):
        return False
    again = [name for score in scores_of(package) for name in score.unnoticed if name in before]
    return not again or run(home, again)


def sample(package: str, module: str | None, count: int) -> None:
    """Try some mutants of a package, or of one module, that were not tried yet."""
    home = HOME / package
    prepare(home, package)
    # It writes down the names of all before it looks for those that it is asked to try.
    run(home, ["none"])
    names = [
        name
        for file in sorted((meta_root(package) / package).rglob("*.py.meta"))
        if module is None or str(file).endswith(f"/{module}.meta")
        for name, code in json.loads(file.read_text())["exit_code_by_key"].items()
        if code is None
    ]
    run(home, random.Random(package).sample(names, min(count, len(names))))


def unfinished(module: str) -> list[str]:
    """Name the mutants of a module that are to be tried; all of them where it changed."""
    meta = meta_root(module.split("/")[0]) / f"{module}.meta"
    if not meta.exists() or meta.stat().st_mtime < (CODE / module).stat().st_mtime:
        dotted = module.removesuffix(".py").replace("/", ".")
        return [f"tidegate.{dotted}.*"]
    codes = json.loads(meta.read_text())["exit_code_by_key"]
    return [name for name, code in codes.items() if code in {None, SURVIVED, *NO_TESTS}]


def prepare(home: Path, package: str) -> None:
    """Copy the code, and write mutmut's settings after the project's own."""
    shutil.rmtree(home / "src", ignore_errors=True)
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CODE, home / "src" / "tidegate", ignore=unwanted)
    settings = {
        "source_paths": ["src"],
        "only_mutate": [f"src/tidegate/{package}/*.py"],
        "do_not_mutate": ["*/migrations/*", "*/__init__.py"],
        "pytest_add_cli_args": ["-m", MARKS, "-p", "no:cacheprovider"],
        "pytest_add_cli_args_test_selection": list(NEAREST[package]),
        # Forked from a process that only imported: Polars does not survive a fork once it ran.
        "process_isolation": "forkserver",
        "use_git_change_detection": False,
        "on_dependency_change": "ignore",
    }
    said = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    project = (ROOT / "pyproject.toml").read_text()
    (home / "pyproject.toml").write_text(f"{project}\n[tool.mutmut]\n{said}")
    (home / "mutants").mkdir(exist_ok=True)
    for name in ("tests", "plugins", "dags", "jobs"):
        link = home / "mutants" / name
        if not link.is_symlink():
            link.symlink_to(ROOT / name)


def run(home: Path, names: list[str]) -> bool:
    """Let mutmut try mutants; without names, all that were not tried yet."""
    children = str(os.cpu_count() or 1)
    log = home / "log"
    with log.open("w") as out:
        ended = subprocess.run(
            ["mutmut", "run", "--max-children", children, *names],
            cwd=home,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if ended.returncode:
        sys.stderr.write(f"mutmut ended with {ended.returncode}; see {log}, and run it again\n")
    return ended.returncode == 0


def meta_root(package: str) -> Path:
    """Name the folder of what mutmut wrote down beside the code that it changed."""
    return HOME / package / "mutants" / "src" / "tidegate"


def scores_of(package: str) -> list[Score]:
    """Read what mutmut wrote down of a package's modules."""
    code = meta_root(package)
    found = []
    for file in sorted((code / package).rglob("*.py.meta")):
        codes = json.loads(file.read_text())["exit_code_by_key"]
        tried = {name: code for name, code in codes.items() if code not in {None, SKIPPED}}
        survivors = tuple(name for name, code in tried.items() if code == SURVIVED)
        untested = tuple(name for name, code in tried.items() if code in NO_TESTS)
        found.append(
            Score(
                module=str(file.relative_to(code)).removesuffix(".meta"),
                killed=len(tried) - len(survivors) - len(untested),
                survivors=survivors,
                untested=untested,
                unchecked=sum(code is None for code in codes.values()),
            )
        )
    return [score for score in found if score.killed or score.unnoticed or score.unchecked]


def report(scores: list[Score]) -> None:
    """Print scores and survivors."""
    console = Console()
    for score in scores:
        for kind, names in (("survived", score.survivors), ("no test", score.untested)):
            for name in names:
                console.print(f"{score.module}: {kind}: {name}", soft_wrap=True, highlight=False)
    columns = ("mutants", "noticed", "survived", "no test", "to do", "score")
    table = Table(Column("module", no_wrap=True), *columns, box=None)
    for score in [*scores, total(scores)]:
        counts = (score.killed, len(score.survivors), len(score.untested), score.unchecked)
        table.add_row(score.module, str(sum(counts)), *map(str, counts), f"{score.share:.1f} %")
    console.print(table)
    console.print("To see one: cd .mutate/PACKAGE && ../../tools/run mutmut show NAME")


def total(scores: list[Score]) -> Score:
    """Sum up modules."""
    return Score(
        "total",
        sum(score.killed for score in scores),
        tuple(name for score in scores for name in score.survivors),
        tuple(name for score in scores for name in score.untested),
        sum(score.unchecked for score in scores),
    )


if __name__ == "__main__":
    sys.exit(main())
