"""The policies of a commit: one set of options per policy, selected by the policy's word.

A new policy needs a class here and in `Policy`, and its action in `commit/policies`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args

from pydantic import (
    BeforeValidator,
    Discriminator,
    SerializerFunctionWrapHandler,
    Tag,
    field_validator,
    model_serializer,
    model_validator,
)

from tidegate.config.section import Section
from tidegate.config.words import suggest
from tidegate.model.publication import PolicySpec

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

CLASS_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""`module:Class`, which is imported where it is used."""


class PolicyConfig(Section):
    """The options of one policy, which a commit carries out besides moving files.

    A policy without options is written as its word alone, one with options as a mapping with the
    word as a key: `{custom: "shop:Announce", parameters: [loud]}`.
    """

    word: ClassVar[str]
    writes_marker: ClassVar[bool] = False
    """Whether readers wait for it, so that every other policy has to run before."""
    needs_columns: ClassVar[bool] = False
    """Whether it has to know the columns of the table, which are read from the plans."""
    runs_side_by_side: ClassVar[bool] = True
    """Whether one process may run it for several partitions at once, in threads."""

    @property
    def title(self) -> str:
        """Its name in messages."""
        return self.word

    @property
    def spec(self) -> PolicySpec:
        """Its description in a commit plan; a commit finished later uses the options of then."""
        return PolicySpec(self.word)

    @model_validator(mode="before")
    @classmethod
    def _word_alone(cls, found: Any) -> Any:
        # YAML reads `- success-file:` as a mapping to nothing.
        return {} if found in (cls.word, {cls.word: None}) else found

    @model_serializer(mode="wrap")
    def _shortest(self, write: SerializerFunctionWrapHandler) -> Any:
        return write(self) or self.word

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe a policy without options by its word."""
        said = handler.resolve_ref_schema(handler(core))
        return said if cls.model_fields else {"const": cls.word, "description": cls.__doc__}


class SuccessFilePolicy(PolicyConfig):
    """The marker of a partition, which names its files."""

    word: ClassVar[str] = "success-file"
    writes_marker: ClassVar[bool] = True


class SnapshotPolicy(PolicyConfig):
    """The snapshot of an Iceberg table that has the files of a revision."""

    word: ClassVar[str] = "snapshot"
    # Each snapshot follows the one before: commits at once would refuse each other.
    runs_side_by_side: ClassVar[bool] = False


class MetastorePolicy(PolicyConfig):
    """The entry of a partition in the catalog that `target.metastore` names."""

    word: ClassVar[str] = "metastore"
    needs_columns: ClassVar[bool] = True


class CustomPolicy(PolicyConfig):
    """A policy of the user: a class built with text parameters (PC-A11)."""

    word: ClassVar[str] = "custom"
    # Whoever wrote it need not have thought of threads.
    runs_side_by_side: ClassVar[bool] = False

    custom: str
    """`module:Class`."""
    parameters: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The class."""
        return self.custom

    @property
    def spec(self) -> PolicySpec:
        """The class and its parameters."""
        return PolicySpec(self.word, self.custom, self.parameters)

    @model_validator(mode="before")
    @classmethod
    def _says_its_class(cls, found: Any) -> Any:
        if found == cls.word:
            msg = "a policy of your own is written {custom: 'module:Class', parameters: [...]}"
            raise ValueError(msg)
        return found

    @field_validator("custom")
    @classmethod
    def _class_name(cls, custom: str) -> str:
        if not CLASS_NAME.fullmatch(custom):
            msg = f"expected `module:Class`, found '{custom}'"
            raise ValueError(msg)
        return custom


KnownPolicy = (
    Annotated[SuccessFilePolicy, Tag(SuccessFilePolicy.word)]
    | Annotated[SnapshotPolicy, Tag(SnapshotPolicy.word)]
    | Annotated[MetastorePolicy, Tag(MetastorePolicy.word)]
    | Annotated[CustomPolicy, Tag(CustomPolicy.word)]
)

POLICIES: Mapping[str, type[PolicyConfig]] = {
    model.word: model for model in (get_args(item)[0] for item in get_args(KnownPolicy))
}
"""Word → options."""


def _word(found: Any) -> str | None:
    """Tell which policy is meant, whose options are then read."""
    if isinstance(found, PolicyConfig):
        return found.word
    said = found if isinstance(found, Mapping) else (found,)
    return next((word for word in POLICIES if word in said), None)


def _with_known_word(found: Any) -> Any:
    """Read a word in any spelling, and refuse what names no policy."""
    read = found.strip().lower().replace("_", "-") if isinstance(found, str) else found
    if _word(read) is not None:
        return read
    said = ", ".join(map(str, found)) if isinstance(found, Mapping) else str(found)
    problem = f"unknown policy '{said}'; {suggest(said.replace('_', '-'), POLICIES)}"
    raise ValueError(problem)


Policy = Annotated[KnownPolicy, Discriminator(_word), BeforeValidator(_with_known_word)]
