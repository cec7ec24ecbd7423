"""What Iceberg tables refuse or find broken; all of it is an `IcebergSourceError` (ICE-2.24)."""

from tidegate.errors.sources.iceberg.changes import *
from tidegate.errors.sources.iceberg.history import *
from tidegate.errors.sources.iceberg.table import *
