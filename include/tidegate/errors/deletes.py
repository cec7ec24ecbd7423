"""What a source's delete files can be wrong about; nothing is read approximately."""

from tidegate.errors.source import IcebergSourceError


class CorruptDeletes(IcebergSourceError):
    """A delete file is not what its manifest or the Iceberg specification says (ICE-4.12, 4.13)."""

    path: str
    problem: str
    template = (
        "{path}: deletes cannot be trusted: {problem}. Nothing was read. Restore the file or "
        "rewrite the table's deletes in the source, then run the window again."
    )


class AmbiguousPath(IcebergSourceError):
    """A delete names a data file that two live files could be (ICE-4.15)."""

    path: str
    named: str
    candidates: str
    template = (
        "{path}: deletes rows of {named}, which is neither of {candidates}, but may be any of "
        "them by its key. Set `source.path_match: exact` if such deletes are to hit nothing."
    )
