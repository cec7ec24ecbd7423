"""What Flink is asked, with the answer of Tidegate wherever that is another one.

Standard library alone: it is read in Flink's environment, too.
"""

from __future__ import annotations

from oracle.questions.commits import COMMITS
from oracle.questions.paths import LISTINGS, PATHS, SPECS, TEXTS, VALUES_READ, VALUES_WRITTEN
from oracle.questions.times import BOUNDARIES, PROCESS_TIMES, TIMES

AREAS = {
    "texts": TEXTS,
    "paths": PATHS,
    "specs": SPECS,
    "listings": LISTINGS,
    "values_written": VALUES_WRITTEN,
    "values_read": VALUES_READ,
    "times": TIMES,
    "process_times": PROCESS_TIMES,
    "boundaries": BOUNDARIES,
    "commits": COMMITS,
}
"""Name of a file of answers → what it answers, in order."""
