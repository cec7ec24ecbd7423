"""What becomes of late rows: one policy per pipeline, a word alone or with its options."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import Field, field_validator, model_serializer, model_validator

from tidegate.config.section import Duration, Section, StorePath, read_word
from tidegate.config.words import KeyProblem

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

LatePolicy = Literal["revise", "hold", "side", "propose", "reject"]

_OPTIONS = ("hold", "side")
"""Policies that have options, which stand below the policy's word."""


class HoldLate(Section):
    """When late rows that are held count: as soon as one threshold is reached, all of them do.

    Without a threshold they are held until `tidegate reopen`.
    """

    rows: int | None = Field(None, gt=0)
    """So many rows are held."""
    ratio: float | None = Field(None, gt=0)
    """So many rows are held for each row of the current revision."""
    age: Duration | None = None
    """The oldest of them was announced so long ago."""

    @field_validator("age")
    @classmethod
    def _some_time(cls, age: timedelta | None) -> timedelta | None:
        if age == timedelta(0):
            msg = "expected more than 0s; `late_data: revise` publishes late rows at once"
            raise ValueError(msg)
        return age


class SideLate(Section):
    """Where late rows are published instead."""

    path: StorePath
    """The late root: a table of its own, on the file system of the target."""


class LateDataConfig(Section):
    """What becomes of rows for a partition that has a revision (PC-L02 to L06)."""

    policy: LatePolicy = "revise"
    hold: HoldLate | None = None
    side: SideLate | None = None

    @model_validator(mode="before")
    @classmethod
    def _by_its_word(cls, found: Any) -> Any:
        if isinstance(found, LateDataConfig):
            return found
        if isinstance(found, Mapping):
            if len(found) != 1:
                msg = f"expected one policy, such as {{hold: {{rows: 1000}}}}; found {len(found)}"
                raise ValueError(msg)
            ((word, options),) = found.items()
        else:
            word, options = found, None
        policy = read_word(word, get_args(LatePolicy), {})
        if options is not None and policy not in _OPTIONS:
            problem = f"has no options; it is written `late_data: {policy}`"
            raise KeyProblem(problem, key=policy)
        if policy == "side" and options is None:
            problem = "is required: the root below which late rows are published"
            raise KeyProblem(problem, key="side.path")
        made = {"policy": policy}
        return made if policy not in _OPTIONS else {**made, policy: options or {}}

    @model_serializer(mode="plain")
    def _shortest(self) -> Any:
        options = self.hold or self.side
        said = options.model_dump(mode="json", exclude_none=True) if options else None
        return {self.policy: said} if said else self.policy

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe the words, and the policies that have options."""
        made = handler.resolve_ref_schema(handler(core))
        options: dict[str, dict[str, Any]] = {
            word: {"type": "object", "properties": {word: inner}, "required": [word]}
            for word, inner in made.get("properties", {}).items()
            if word in _OPTIONS
        }
        for described in options.values():
            described["additionalProperties"] = False
        words = {"enum": list(get_args(LatePolicy)), "description": cls.__doc__}
        return {"anyOf": [words, *options.values()]}
