"""The only way to change files: the protocol of a store, and its implementations.

Data files are opened for reading by their readers, as local files.
"""

from tidegate.storage.calls import DirectoryEntry, OsCalls
from tidegate.storage.local import LocalStorage
from tidegate.storage.moves import has_to_move
from tidegate.storage.places import below, same_file_system
from tidegate.storage.protocol import Storage
from tidegate.storage.refusals import silence_of
from tidegate.storage.scratch import Scratch
from tidegate.storage.writable import check_writable

__all__ = [
    "DirectoryEntry",
    "LocalStorage",
    "OsCalls",
    "Scratch",
    "Storage",
    "below",
    "check_writable",
    "has_to_move",
    "same_file_system",
    "silence_of",
]
