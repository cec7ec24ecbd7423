"""Errors of sources: those of every kind, and those of only one kind."""

from tidegate.errors.sources.every_kind import *
from tidegate.errors.sources.files import *
from tidegate.errors.sources.hudi import *
from tidegate.errors.sources.iceberg import *
