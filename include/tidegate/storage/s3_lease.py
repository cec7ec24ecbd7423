"""An exclusive lock in a store: an object that its holder renews, and that expires.

Only the store's own clock is asked how old a lease is, and only this process's monotonic clock how
long ago it was renewed, so that no clock that is wrong or goes back gives a lock to two.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from tidegate.errors import PartitionBusy
from tidegate.storage.s3_client import MISSING, TAKEN, client_errors, code_of, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tidegate.storage.s3_calls import S3Calls

_Asked = TypeVar("_Asked")

LEASE_SECONDS = 60.0
"""How long a lease is respected that nobody renews."""
_RENEWED_AFTER = LEASE_SECONDS / 4
_LAST_MOMENT = LEASE_SECONDS / 2
"""The holder changes nothing after that time without a renewal, long before others may."""

_here = threading.local()


def check_leases() -> None:
    """Check, before something is changed, that the locks of this thread are still its own.

    A process that slept finds here that another one may be at work by now.

    Raises:
        PartitionBusy: one was not renewed in time (Transient).
    """
    _check(_held())


def _held() -> Sequence[S3Lease]:
    return (*getattr(_here, "held", ()),)


def _check(leases: Iterable[S3Lease]) -> None:
    for lease in leases:
        lease.check()


def under_leases(do: Callable[[_Asked], None]) -> Callable[[_Asked], None]:
    """Let other threads check the locks of this one before each thing that they change for it."""
    held = _held()

    def checked(asked: _Asked) -> None:
        _check(held)
        do(asked)

    return checked


@dataclass
class S3Lease:
    """A lock at an address.

    Failure: a process that dies leaves the object, which is respected until it has expired.
    """

    calls: S3Calls
    path: str
    holder: str
    _nonce: str = field(default_factory=lambda: os.urandom(8).hex())
    _renewals: int = 0
    _tag: str = ""
    _renewed: float = 0.0

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock while the context lasts.

        Raises:
            PartitionBusy: another process holds it (Transient).
        """
        self._take()
        ended = threading.Event()
        renewing = threading.Thread(target=self._keep, args=(ended,), daemon=True)
        renewing.start()
        mine = _here.__dict__.setdefault("held", [])
        mine.append(self)
        try:
            yield
        finally:
            mine.remove(self)
            ended.set()
            renewing.join()
            self._give_back()

    def check(self) -> None:
        """Check that nobody else can have taken it yet; see `check_leases`."""
        if time.monotonic() - self._renewed > _LAST_MOMENT:
            successor = "perhaps a successor, because this process was silent for too long"
            raise PartitionBusy(partition=self.path, holder=successor)

    def _take(self) -> None:
        begun = time.monotonic()
        try:
            self._tag = self._put(IfNoneMatch="*")
        except client_errors() as refused:
            if code_of(refused) not in TAKEN:
                raise refusal(self.path, refused) from refused
            self._tag = self._take_over()
        self._renewed = begun

    def _take_over(self) -> str:
        """Take the lock from one who does not renew it any more."""
        try:
            text, found = self._read()
            if text == self._text:
                # The answer to the first request was lost.
                return str(found["ETag"])
            if _age(found) <= LEASE_SECONDS:
                raise PartitionBusy(partition=self.path, holder=text.partition("\n")[0])
            return self._put(IfMatch=found["ETag"])
        except client_errors() as refused:
            if code_of(refused) in TAKEN | MISSING:
                # Given back, or taken by another one, between the two requests.
                raise PartitionBusy(partition=self.path, holder="another process") from refused
            raise refusal(self.path, refused) from refused

    def _keep(self, ended: threading.Event) -> None:
        """Renew the lease until the lock is given back, or somebody else has it."""
        while not ended.wait(_RENEWED_AFTER) and self._renew():
            pass

    def _renew(self) -> bool:
        """Renew the lease; return whether it is worth to try again later."""
        begun = time.monotonic()
        # Another content has another tag: who saw the former one as expired does not get it.
        self._renewals += 1
        try:
            self._tag = self._put(IfMatch=self._tag)
        except client_errors() as refused:
            if code_of(refused) in MISSING:
                return False
            try:
                text, found = self._read()
            except client_errors() as again:
                return code_of(again) not in MISSING
            if text != self._text:
                return text.partition("\n")[2].startswith(self._nonce)
            self._tag = str(found["ETag"])
        self._renewed = begun
        return True

    def _give_back(self) -> None:
        """Delete the object while it is certainly this lock's."""
        if time.monotonic() - self._renewed > _LAST_MOMENT:
            return
        with contextlib.suppress(*client_errors()):
            # If it stays, it expires.
            self.calls.delete(self.path)

    @property
    def _text(self) -> str:
        here = f"{self.holder} (process {os.getpid()} on {socket.gethostname()})"
        return f"{here}\n{self._nonce} {self._renewals}"

    def _put(self, **condition: str) -> str:
        return str(self.calls.put(self.path, self._text.encode(), **condition)["ETag"])

    def _read(self) -> tuple[str, dict[str, Any]]:
        found = self.calls.get(self.path)
        return found["Body"].read().decode(errors="replace"), found


def _age(found: dict[str, Any]) -> float:
    """Return how many seconds ago an object was written, by the clock of its store."""
    now = parsedate_to_datetime(found["ResponseMetadata"]["HTTPHeaders"]["date"])
    return float((now - found["LastModified"]).total_seconds())
