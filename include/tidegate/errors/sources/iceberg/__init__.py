"""Errors of Iceberg tables; all of them are an `IcebergSourceError` (ICE-2.24)."""

from tidegate.errors.sources.iceberg.changes import *
from tidegate.errors.sources.iceberg.history import *
from tidegate.errors.sources.iceberg.table import *
