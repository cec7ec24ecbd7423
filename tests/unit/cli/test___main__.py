"""The command is silent when it is interrupted before it can do anything."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

SLOW = """
import signal, sys, time

class Slow:
    @staticmethod
    def find_spec(name, *_):
        if name == "tidegate.cli.app":
            print("importing", flush=True)
            time.sleep(float(seconds))

seconds, handled = sys.argv[1:]
if handled == "ignored":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.meta_path.insert(0, Slow())
sys.argv[1:] = ["--version"]
from tidegate.cli.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("seconds", "handled", "code"), [("60", "by Python", -signal.SIGINT), ("1", "ignored", 0)]
)
def test_interrupt_while_importing_ends_without_a_word_unless_it_is_ignored(
    seconds: str, handled: str, code: int
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, seconds, handled],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"

    process.send_signal(signal.SIGINT)

    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (code, "")
