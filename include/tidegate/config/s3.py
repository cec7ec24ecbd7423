"""The `s3` section of a pipeline file: how the store is reached that its addresses name."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from tidegate.config.environment import PLACEHOLDER
from tidegate.config.section import Section
from tidegate.config.words import KeyProblem

_CONNECTION = re.compile(r"[\w.-]+", re.ASCII)


ENDPOINT = "`https://host` or `http://host:port`"
"""What an endpoint looks like, for people."""


def is_endpoint(text: str) -> bool:
    """Return whether a text is the address of a store, and nothing that has to be kept secret."""
    try:
        place = urlsplit(text)
        is_whole = bool(place.hostname) and place.port != 0
    except ValueError:
        # The port is no number, or too large.
        return False
    is_more = "@" in place.netloc or place.query or place.fragment or re.search(r"\s", text)
    return place.scheme in {"http", "https"} and is_whole and not is_more


def _web_address(text: str) -> str:
    if not PLACEHOLDER.search(text) and not is_endpoint(text):
        # What is left of such a mark may be a password, what is right of the other one a token.
        found = "one with a user or a query" if {"@", "?"} & {*text} else f"'{text}'"
        msg = f"expected {ENDPOINT}, found {found}"
        raise ValueError(msg)
    return text.rstrip("/")


def _id(text: str) -> str:
    if not _CONNECTION.fullmatch(text):
        msg = f"expected the id of an Airflow connection, found '{text}'"
        raise ValueError(msg)
    return text


class S3Config(Section):
    """A store that speaks the protocol of S3.

    What is not said is found as AWS's own tools find it: variables, `~/.aws`, the role of the
    machine or the pod.
    """

    endpoint: Annotated[str, AfterValidator(_web_address)] | None = None
    """The address of a store that is not AWS's own."""
    region: str | None = Field(None, min_length=1)
    profile: str | None = Field(None, min_length=1)
    """A profile of `~/.aws`."""
    access_key: str | None = Field(None, min_length=1)
    secret_key: str | None = Field(None, min_length=1)
    """`${env:NAME}`; a secret is not written into a pipeline file."""
    session_token: str | None = Field(None, min_length=1)
    """As `secret_key`."""
    connection: Annotated[str, AfterValidator(_id)] | None = None
    """Id of an Airflow connection of type `aws`, for what the other keys do not say."""

    @model_validator(mode="after")
    def _secrets_elsewhere(self) -> S3Config:
        for name in ("secret_key", "session_token"):
            said = getattr(self, name)
            if said is not None and not PLACEHOLDER.fullmatch(said):
                problem = "is written in plain text; write `${env:NAME}` and set the variable"
                raise KeyProblem(problem, key=name)
        if (self.access_key is None) != (self.secret_key is None):
            missing = "secret_key" if self.secret_key is None else "access_key"
            problem = "is required, because the other half of the pair is given"
            raise KeyProblem(problem, key=missing)
        return self
