"""The only way to files: the protocol of a store, and its implementations.

Files of tables that are sources are opened by their readers.
"""

from tidegate.storage.addresses import above, is_object, normal
from tidegate.storage.arrow import arrow_files, table_properties
from tidegate.storage.calls import DirectoryEntry, OsCalls
from tidegate.storage.details import FileDetails, nanoseconds
from tidegate.storage.local import LocalStorage
from tidegate.storage.moves import check_sent, has_to_move, waiting_uploads
from tidegate.storage.placed import PlacedFile
from tidegate.storage.places import below, same_file_system
from tidegate.storage.protocol import Deferred, Storage, Unfinished
from tidegate.storage.refusals import silence_of
from tidegate.storage.s3_client import S3Options
from tidegate.storage.scratch import Scratch
from tidegate.storage.stores import Stores
from tidegate.storage.write_only import WriteOnly

__all__ = [
    "Deferred",
    "DirectoryEntry",
    "FileDetails",
    "LocalStorage",
    "OsCalls",
    "PlacedFile",
    "S3Options",
    "Scratch",
    "Storage",
    "Stores",
    "Unfinished",
    "WriteOnly",
    "above",
    "arrow_files",
    "below",
    "check_sent",
    "has_to_move",
    "is_object",
    "nanoseconds",
    "normal",
    "same_file_system",
    "silence_of",
    "table_properties",
    "waiting_uploads",
]
