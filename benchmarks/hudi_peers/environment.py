"""Start processes in the peers' environment, with Hudi's bundle beside it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.foreign_spark import ForeignSpark

HUDI = "1.2.0"
HERE = Path(__file__).parent
PEERS = ForeignSpark(
    HERE,
    f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{HUDI}",
    "cc79fba00822f3a6c3a860df99375c2e3d4a034d037dbf4213a4966a706a7676",
)
