"""A task over a Hudi slice loads what it needs, and no more.

Rows by memory and cuts are compared in `test_hudi_golden.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# Data and delete blocks, ordering values, several writes and base files; keys and partitions of
# several columns.
CASES = ("v9_mor_event_time", "v9_mor_key_complex", "v9_mor_part_multi_hive")
WINDOWS = ("complete", "with_deletes", "changelog", "latest_state", "skip_merge")
READING = """
import json, sys
from golden_hudi import Golden
from tidegate.model.instant import InstantRange
from tidegate.read.merge import ReadOptions

case, mode = sys.argv[1:]
of_changes = mode in {"with_deletes", "changelog"}
columns = ["_hoodie_record_key", "_change_type"] if of_changes else ["_hoodie_record_key"]
table = Golden(case, mode, read={"columns": columns})
first, *_, last = table.writes
window = InstantRange(None if mode == "snapshot" else first, last)
pin = table.source.timeline.at(table.pin, last)
units = table.source.slicing.units(pin, window)
before = "pandas" in sys.modules
reader = table.source.reading.reader(pin)
rows = sum(batch.num_rows for batch in reader.batches(units, ReadOptions()))
print(json.dumps([rows, before, "pandas" in sys.modules]))
"""


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", ["snapshot", *WINDOWS])
def test_task_that_merges_a_slice_does_not_load_pandas(mode: str, case: str) -> None:
    """Arrow loads it to convert lists and NumPy arrays: more than a second in each new worker."""
    done = subprocess.run(
        [sys.executable, "-c", READING, case, mode], check=True, capture_output=True, text=True
    )

    rows, before, after = json.loads(done.stdout)
    assert rows
    assert not before
    assert not after
