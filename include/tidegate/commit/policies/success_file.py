"""The success file: the marker that readers wait for, written last (PC-A06)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import FileExistsAlready

if TYPE_CHECKING:
    from tidegate.commit.policies.protocol import PolicyContext


class SuccessFile:
    """Write the marker of a partition.

    Failure: the marker appears whole or not at all; a repetition accepts its own bytes.
    """

    def commit(self, context: PolicyContext) -> None:
        """Write the marker's bytes as planned.

        Raises:
            FileExistsAlready: there is another marker, written by somebody else after the
                retraction.
        """
        path = f"{context.partition_root}/{context.marker_name}"
        content = context.marker.encode()
        if (
            not context.storage.write_once(path, content, context.scratch)
            and context.storage.read_bytes(path) != content
        ):
            raise FileExistsAlready(path=path)
