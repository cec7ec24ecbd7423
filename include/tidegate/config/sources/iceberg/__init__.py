"""The options of an Iceberg table."""

from tidegate.config.sources.iceberg.catalog import CatalogConfig
from tidegate.config.sources.iceberg.table import IcebergSourceConfig, InstantTime

__all__ = ["CatalogConfig", "IcebergSourceConfig", "InstantTime"]
