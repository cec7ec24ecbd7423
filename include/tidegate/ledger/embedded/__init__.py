"""A PostgreSQL of a home's own: made, started and stopped by whoever uses it, from a wheel."""

from tidegate.ledger.embedded.cluster import create_cluster
from tidegate.ledger.embedded.server import AIRFLOW, LEDGER, EmbeddedServer, attach

__all__ = ["AIRFLOW", "LEDGER", "EmbeddedServer", "attach", "create_cluster"]
