"""What is skipped on somebody's machine fails in CI, where everything is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
MISSED = {
    "mark": "@pytest.mark.skipif(True, reason='no root')\ndef test_a(): ...",
    "call": "def test_a():\n    pytest.skip('no mounts')",
    "fixture": "@pytest.fixture\ndef f():\n    pytest.importorskip('nothere')\ndef test_a(f): ...",
    "module": "pytest.importorskip('nothere')\ndef test_a(): ...",
    "no_cases": "@pytest.mark.parametrize('x', [])\ndef test_a(x): ...",
}
NOT_MISSED = {
    "allowed": "def test_a():\n    pytest.skip('a file does not go away')",
    "expected": "@pytest.mark.xfail\ndef test_a():\n    assert False",
    "passing": "def test_a(): ...",
}


def failed(folder: Path, ci: str) -> set[str]:
    """Run all modules once; those of which something failed."""
    for name, content in {**MISSED, **NOT_MISSED}.items():
        (folder / f"test_{name}.py").write_text(f"import pytest\n{content}\n")
    options = ["-p", "skips", "-p", "no:cacheprovider", "--continue-on-collection-errors", "-rA"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(folder)],
        env={**os.environ, "CI": ci, "PYTHONPATH": str(TESTS)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    return set(re.findall(r"^(?:FAILED|ERROR) test_(\w+)\.py", done.stdout, re.MULTILINE))


def test_skipped_tests_fail_in_ci_and_others_do_not(tmp_path: Path) -> None:
    assert failed(tmp_path, "true") == MISSED.keys()


def test_skipped_tests_fail_nowhere_else(tmp_path: Path) -> None:
    assert failed(tmp_path, "") == set()
