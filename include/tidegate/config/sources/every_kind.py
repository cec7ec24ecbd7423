"""What a pipeline file says of any source, and what the rest of the house asks a source's options.

A kind adds its own options, and answers for itself: nobody else asks which kind it is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field, model_validator

from tidegate.config.bounds import Start
from tidegate.config.reading import LimitsConfig, ReadConfig, SplitConfig
from tidegate.config.section import Section
from tidegate.config.words import KeyProblem

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


class SourceConfig(Section):
    """Where changes come from: what every kind of source has."""

    outside_plans: ClassVar[frozenset[str]] = frozenset({"start"})
    """Keys that decide no staged byte: they say where the source is, or what a window covers."""

    kind: str
    start: Start = Field(default_factory=lambda: Start.model_validate("full"))
    read: ReadConfig = ReadConfig()
    split: SplitConfig = SplitConfig()

    @property
    @abstractmethod
    def address(self) -> str:
        """Which table this is, in one line."""

    @property
    def known_places(self) -> tuple[str, ...]:
        """The paths that are said of the source; none for a catalog's table."""
        return ()

    @property
    def connection(self) -> Mapping[str, str]:
        """Key below `source` → text with which the source is opened, and which may be a secret."""
        return {}

    @property
    def whole_history(self) -> Self:
        """The same source with all of its history, instead of one state or what an end leaves."""
        return self

    @property
    def window_limits(self) -> LimitsConfig:
        """How much one window takes at most."""
        return LimitsConfig()

    @property
    def path_columns(self) -> tuple[str, ...]:
        """Columns whose values the paths of files say, not the files."""
        return ()

    @property
    def reads_standing_rows(self) -> bool:
        """Whether the first window reads rows that stand, rather than commits one by one."""
        return False

    @property
    def tells_case(self) -> bool:
        """Whether names in `read.filter` tell upper from lower case."""
        return True

    def from_the_beginning(self) -> Self:
        """Return the same source read from its oldest retained instant on, whatever came between.

        A whole state has no beginning.
        """
        if self.read.mode == "snapshot":
            return self
        return self.model_copy(update={"start": Start.model_validate("earliest")})

    def plan_inputs(self) -> dict[str, Any]:
        """Return what decides the staged bytes; the rest may change without a new plan digest."""
        # Of `start` only whether a window reads standing rows decides what is read; a plan stays
        # when the rest changes, so that what it read need not be there any more.
        return {
            **self.model_dump(mode="json", by_alias=True, exclude=set(self.outside_plans)),
            "reads_state_from_the_beginning": self.reads_standing_rows,
        }

    @classmethod
    @abstractmethod
    def meant_by(cls, table: str) -> dict[str, str] | None:
        """Return what stands under `source` for a table that is named by one text.

        None: the text names no source of this kind.
        """

    @model_validator(mode="before")
    @classmethod
    def _schema_shorthand(cls, found: Any) -> Any:
        if not isinstance(found, Mapping) or "read_schema" not in found:
            return found
        made = dict(found)
        read = made.get("read") or {}
        if "schema" in read:
            problem = "is `read.schema` written shorter; one of the two is enough"
            raise KeyProblem(problem, key="read_schema")
        made["read"] = {**read, "schema": made.pop("read_schema")}
        return made

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe the keys, shorthands included."""
        schema = handler.resolve_ref_schema(handler(core))
        schema["properties"]["read_schema"] = {
            "enum": ["table", "snapshot"],
            "description": "`source.read.schema`, written shorter.",
        }
        return schema
