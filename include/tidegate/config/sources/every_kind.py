"""The options of every kind of source, and what other packages may ask of a source's options.

A kind adds its own options and answers for itself: no other code asks for the kind.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from pydantic import Field, model_validator

from tidegate.config.bounds import Start
from tidegate.config.reading import LimitsConfig, ReadConfig, SplitConfig
from tidegate.config.section import Section
from tidegate.config.words import KeyProblem

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


class Names(Protocol):
    """The names of files and directories, on a disk or in a store."""

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory of this path."""
        ...

    def list_names(self, folder: str) -> list[str]:
        """List the entries of a directory; empty if there is no directory."""
        ...


class SourceConfig(Section):
    """The source of changes: the options that every kind has."""

    outside_plans: ClassVar[frozenset[str]] = frozenset({"start"})
    """Keys that decide no staged byte: the location of the source, or the extent of windows."""

    table_marks: ClassVar[frozenset[str]] = frozenset()
    """Names in a folder of a table, or of a part of one; only with one of them is
    `is_of_table` asked."""

    kind: str
    start: Start = Field(default_factory=lambda: Start.model_validate("full"))
    read: ReadConfig
    split: SplitConfig = SplitConfig()

    @property
    @abstractmethod
    def address(self) -> str:
        """The name of the table, in one line."""

    @property
    def known_places(self) -> tuple[str, ...]:
        """The paths of the source; none for a catalog's table."""
        return ()

    @property
    def connection(self) -> Mapping[str, str]:
        """Key below `source` → text for opening the source, which may be a secret."""
        return {}

    @property
    def whole_history(self) -> Self:
        """The same source with all of its history, without a selected state or end."""
        return self

    @property
    def window_limits(self) -> LimitsConfig:
        """The most that one window takes."""
        return LimitsConfig()

    @property
    def path_columns(self) -> tuple[str, ...]:
        """Columns whose values are taken from the paths of files."""
        return ()

    @property
    def reads_standing_rows(self) -> bool:
        """Whether the first window reads the current rows, rather than commits one by one."""
        return False

    @property
    def tells_case(self) -> bool:
        """Whether names in `read.filter` are case-sensitive."""
        return True

    def from_the_beginning(self) -> Self:
        """Return the same source, read from its oldest retained instant on.

        A mode that reads a whole state has no start.
        """
        if self.read.mode == "snapshot":
            return self
        return self.model_copy(update={"start": Start.model_validate("earliest")})

    def plan_inputs(self) -> dict[str, Any]:
        """Return the keys that decide the staged bytes; only these change the plan digest."""
        # Only one aspect of `start` decides what is read: whether a window reads the current rows.
        # A plan stays valid when the rest changes, even if the source no longer has what it read.
        return {
            **self.model_dump(mode="json", by_alias=True, exclude=set(self.outside_plans)),
            "reads_state_from_the_beginning": self.reads_standing_rows,
        }

    @classmethod
    @abstractmethod
    def meant_by(cls, table: str) -> dict[str, str] | None:
        """Return the `source` section for a table that is named by one text.

        Returns None if the text does not name a source of this kind.
        """

    @classmethod
    def is_of_table(cls, folder: str, names: Names) -> bool:
        """Return whether a folder is the one of a table of this kind, or a marked part of one."""
        del folder, names
        return False

    @model_validator(mode="before")
    @classmethod
    def _schema_shorthand(cls, found: Any) -> Any:
        if not isinstance(found, Mapping) or "read_schema" not in found:
            return found
        if not cls._knows_read_schema():
            return found
        made = dict(found)
        read = made.get("read") or {}
        if "schema" in read:
            problem = "is short for `read.schema`; one of the two is enough"
            raise KeyProblem(problem, key="read_schema")
        made["read"] = {**read, "schema": made.pop("read_schema")}
        return made

    @classmethod
    def _knows_read_schema(cls) -> bool:
        """Return whether `read` has the option that `read_schema` is short for."""
        read = cls.model_fields["read"].annotation
        return isinstance(read, type) and "read_schema" in getattr(read, "model_fields", {})

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the JSON Schema of the keys, including shorthands."""
        schema = handler.resolve_ref_schema(handler(core))
        if not cls._knows_read_schema():
            return schema
        schema["properties"]["read_schema"] = {
            "enum": ["table", "snapshot"],
            "description": "Short for `source.read.schema`.",
        }
        return schema
