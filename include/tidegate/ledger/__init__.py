"""The durable truth: checkpoints, windows, contributions, partitions, publications, revisions.

Every transition is a compare-and-set in one transaction. Decides nothing about data and moves no
file.
"""

from tidegate.ledger.connect import open_engine
from tidegate.ledger.ledger import Ledger
from tidegate.ledger.overview import read_overview

__all__ = ["Ledger", "open_engine", "read_overview"]
