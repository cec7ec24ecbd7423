"""What sources refuse or find broken: what every kind does, and what only one of them does."""

from tidegate.errors.sources.every_kind import *
from tidegate.errors.sources.files import *
from tidegate.errors.sources.iceberg import *
