"""Reach a store that speaks the protocol of S3: its address, credentials and refusals."""

from __future__ import annotations

import functools
import os
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tidegate.config import ENDPOINT, S3Config, airflow_connection, is_endpoint, resolve_secret
from tidegate.errors import (
    BucketMissing,
    ConnectionUnfit,
    CredentialsExpired,
    CredentialsMissing,
    StoreDenied,
    StoreKeyWrong,
    StoreOptionWrong,
    StoreRegionWrong,
    StoreSilent,
    TidegateError,
)
from tidegate.storage.addresses import S3, named

if TYPE_CHECKING:
    from collections.abc import Iterator

MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
"""What a store says of an object that is not there."""
TAKEN = frozenset({"412", "PreconditionFailed", "409", "ConditionalRequestConflict"})
"""What it says where the condition of a request does not hold, or may not any more."""
_EXPIRED = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"}
)
# Among them what another request did in the meantime: the next attempt begins anew.
_BUSY = frozenset(
    {
        "SlowDown",
        "RequestTimeout",
        "InternalError",
        "ServiceUnavailable",
        "Throttling",
        "ThrottlingException",
        "TooManyRequests",
        "ConditionalRequestConflict",
        "NoSuchUpload",
        "OperationAborted",
        "PreconditionFailed",
    }
)
_KEY_WRONG = frozenset(
    {"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "XAdminUserNotFound"}
)
_REGION_WRONG = frozenset(
    {"400", "301", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}
    | {"PermanentRedirect"}
)
_FIRST_BUSY_STATUS = 500
_TOO_MANY = 429
_ATTEMPTS = 6
_CONNECT_SECONDS = 10
_READ_SECONDS = 60
_CONNECTIONS = 32
_NO_ENDPOINT = (
    f"the endpoint is not {ENDPOINT}; a user and a password belong to `access_key` and "
    "`secret_key`, and a query to neither"
)
_KEYS = ("endpoint", "region", "profile", "access_key", "secret_key", "session_token")


@dataclass(frozen=True)
class S3Options:
    """How a store is reached; texts may have `${env:NAME}`, which is resolved where it is used.

    What is not given is found as the AWS command line finds it: variables, files, the machine's or
    the pod's role.
    """

    endpoint: str | None = None
    region: str | None = None
    profile: str | None = None
    access_key: str | None = None
    secret_key: str | None = None
    session_token: str | None = None
    connection: str | None = None
    """Id of an Airflow connection of type `aws`, which has the other keys."""

    @classmethod
    def of(cls, said: S3Config) -> S3Options:
        """Read the section of a pipeline file."""
        return cls(**said.model_dump())

    def __reduce__(self) -> tuple[type[S3Options], tuple[str | None, ...]]:
        """Send the values to other processes, which may not have what they are found by."""
        found = self.resolved()
        return S3Options, tuple(getattr(found, item.name) for item in fields(found))

    def __repr__(self) -> str:
        said = [item.name for item in fields(self) if getattr(self, item.name) is not None]
        return f"S3Options({', '.join(said)})"

    def resolved(self) -> S3Options:
        """Return the values, for this process.

        Raises:
            SecretMissing: a variable is not set, or there is no such connection.
            ConnectionUnreadable: the connection's variable cannot be read.
            ConnectionUnfit: the connection is of another type, or has half a pair.
            StoreOptionWrong: the endpoint is none, or has credentials in it, which errors would
                show.
        """
        given = {
            name: resolve_secret(text, f"s3.{name}")
            for name in _KEYS
            if (text := getattr(self, name)) is not None
        }
        if self.connection:
            key = "s3.connection"
            found = airflow_connection(self.connection, key)
            unfit = found.unfit_for_aws(has_pair="access_key" in given)
            if unfit is not None:
                raise ConnectionUnfit(name=self.connection, key=key, problem=unfit)
            extra = {key: str(item) for key, item in found.extra.items() if item}
            told = {
                "access_key": found.login,
                "secret_key": found.password,
                "session_token": extra.get("aws_session_token"),
                "region": extra.get("region_name"),
                "endpoint": extra.get("endpoint_url"),
                "profile": extra.get("profile_name"),
            }
            given = {**{key: text for key, text in told.items() if text}, **given}
        if "endpoint" in given and not is_endpoint(given["endpoint"]):
            raise StoreOptionWrong(problem=_NO_ENDPOINT)
        return replace(S3Options(), **given)


def client_of(options: S3Options) -> Any:
    """Return a client, one per process and options: a fork must not share connections.

    Raises:
        SecretMissing: see `S3Options.resolved`.
        StoreOptionWrong: the store cannot be addressed like that.
    """
    return _client(options.resolved(), os.getpid())


@functools.lru_cache(maxsize=16)
def _client(options: S3Options, process: int) -> Any:
    del process
    from botocore.config import Config

    # Stores of others may not know the checksums that AWS's own expects since 2025.
    only_required = {"request_checksum_calculation": "when_required"} if options.endpoint else {}
    config = Config(
        retries={"mode": "standard", "max_attempts": _ATTEMPTS},
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        max_pool_connections=_CONNECTIONS,
        s3={"addressing_style": "path" if options.endpoint else "auto"},
        **only_required,
    )
    try:
        session = _session(options)
        # A store of one's own has no regions, but a signature needs one.
        usual = "us-east-1" if session.region_name is None else None
        return session.client("s3", endpoint_url=options.endpoint, region_name=usual, config=config)
    except ValueError as wrong:
        raise StoreOptionWrong(problem=str(wrong)) from wrong
    except client_errors() as wrong:
        raise StoreOptionWrong(problem=str(wrong)) from wrong


def _session(options: S3Options) -> Any:
    import boto3

    return boto3.Session(
        aws_access_key_id=options.access_key,
        aws_secret_access_key=options.secret_key,
        aws_session_token=options.session_token,
        region_name=options.region,
        profile_name=options.profile,
    )


def arrow_options(options: S3Options) -> dict[str, Any]:
    """Return how Arrow's own file system reaches the same store, as the client does.

    Raises:
        CredentialsMissing: there are no credentials.
    """
    resolved = options.resolved()
    known = _session(resolved).get_credentials()
    if known is None:
        raise CredentialsMissing(path=S3, problem="Unable to locate credentials")
    frozen = known.get_frozen_credentials()
    return {
        "access_key": frozen.access_key,
        "secret_key": frozen.secret_key,
        "session_token": frozen.token,
        **arrow_place(resolved),
    }


def arrow_place(options: S3Options) -> dict[str, Any]:
    """Return where Arrow's own file system finds the store, whoever asks it."""
    client = _client(options.resolved(), os.getpid())
    place = urlsplit(client.meta.endpoint_url)
    is_own = not place.netloc.endswith(".amazonaws.com")
    return {
        "region": client.meta.region_name,
        **({"endpoint_override": place.netloc, "scheme": place.scheme} if is_own else {}),
    }


def client_errors() -> tuple[type[Exception], ...]:
    """Return what a client raises: a refusal of the store, or a failure on the way to it."""
    from botocore.exceptions import BotoCoreError, ClientError

    return BotoCoreError, ClientError


@contextmanager
def refusals_named(path: str) -> Iterator[None]:
    """Turn what a client raises into errors of Tidegate.

    Raises:
        BucketMissing: there is no such bucket.
        StoreDenied: the store does not allow it.
        CredentialsMissing: there are no credentials.
        CredentialsExpired: they are no longer valid (Transient).
        StoreSilent: the store does not answer, or asks to come later (Transient).
    """
    try:
        yield
    except client_errors() as refused:
        raise refusal(path, refused) from refused


def code_of(refused: BaseException) -> str:
    """Return the word by which a store refuses a request; empty if it is none of a store."""
    response: dict[str, Any] = getattr(refused, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def refusal(path: str, refused: Exception) -> TidegateError:
    """Return the error for whatever a client raised."""
    from botocore.exceptions import ClientError, NoCredentialsError, PartialCredentialsError

    if isinstance(refused, NoCredentialsError | PartialCredentialsError):
        return CredentialsMissing(path=path, problem=str(refused))
    if not isinstance(refused, ClientError):
        return StoreSilent(path=path, problem=str(refused))
    status = int(refused.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    problem = refused.response.get("Error", {}).get("Message") or str(refused)
    return refusal_by(path, code_of(refused), problem, status)


def refusal_by(path: str, code: str, problem: str, status: int = 0) -> TidegateError:
    """Return the error for the word by which a store refuses something."""
    if code == "NoSuchBucket":
        return BucketMissing(path=path, bucket=named(path).bucket)
    if code in _EXPIRED:
        return CredentialsExpired(path=path, problem=problem)
    if code in _BUSY or status >= _FIRST_BUSY_STATUS or status == _TOO_MANY:
        return StoreSilent(path=path, problem=problem)
    if code in _KEY_WRONG:
        denied: type[StoreDenied] = StoreKeyWrong
    else:
        denied = StoreRegionWrong if code in _REGION_WRONG else StoreDenied
    return denied(path=path, problem=f"{code}: {problem.rstrip('.')}")
