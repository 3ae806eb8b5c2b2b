"""Who may look at the page.

Bearers of the configured token, or users whose tokens the API server accepts.
"""

import asyncio
import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from balanced_source.errors import BalancedSourceError
from balanced_source_adapters.version import page
from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.kube.reviews import User

ACCEPTED_FOR: Final = 60.0
"""Seconds until the API server is asked again about a token or a right."""

REFUSED_FOR: Final = 10.0
"""Seconds until the API server is asked again about what it has refused."""

MIN_TOKEN: Final = 16
"""Characters of a configured token, at least."""

_MAX_TOKEN: Final = 16_384
_REMEMBERED: Final = 1_000
_AT_ONCE: Final = 8

T = TypeVar("T")


class AccessError(BalancedSourceError):
    """The page is not shown.

    Attributes:
        status: HTTP status code.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Guest(Protocol):
    """Someone who may look."""

    async def may_see(self, namespace: str) -> bool:
        """Return whether sources of a namespace are shown.

        Raises:
            AccessError: no one knows.
        """
        ...

    def refusal(self, namespace: str) -> str:
        """Return a sentence that says why a namespace is not shown."""
        ...


class Access(Protocol):
    """Decides who may look."""

    async def admit(self, token: str) -> Guest:
        """Return the bearer of a token; empty if none was sent.

        Raises:
            AccessError: the bearer may not look. Says what to do.
        """
        ...


class Everybody:
    """For a page on the loopback interface of a laptop."""

    async def admit(self, token: str) -> Guest:
        """See `Access`."""
        return self

    async def may_see(self, namespace: str) -> bool:
        """See `Guest`."""
        return True

    def refusal(self, namespace: str) -> str:
        """See `Guest`."""
        return ""


class ConfiguredToken(Everybody):
    """One token for all sources.

    It is read at each request, so a rotated Secret takes effect at once.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    async def admit(self, token: str) -> Guest:
        """See `Access`."""
        expected = self._expected()
        if not token:
            raise AccessError(
                401,
                "This page needs a token: enter the one of the Secret that page.tokenSecret names.",
            )
        # Digests have one length, so the time of the comparison tells nothing about the token's.
        if not hmac.compare_digest(_digest(token), _digest(expected)):
            raise AccessError(
                401, "The token is wrong: enter the one of the Secret that page.tokenSecret names."
            )
        return self

    def _expected(self) -> str:
        try:
            found = self._file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "not UTF-8"
            message = (
                f"The token file {self._file} cannot be read ({why}): mount the Secret with the"
                " page's token."
            )
            raise AccessError(503, message) from error
        if len(found) < MIN_TOKEN:
            message = (
                f"The token in {self._file} has fewer than {MIN_TOKEN} characters: store a longer"
                " one."
            )
            raise AccessError(503, message)
        return found


class Reviewer(Protocol):
    """What is asked of the API server, see `kube.reviews.Reviews`. Both raise `KubernetesError`."""

    async def user_of(self, token: str) -> User | None:
        """Return whose token this is; None if it is not accepted."""
        ...

    async def may_get_sources(self, user: User, namespace: str) -> bool:
        """Return whether a user may get the BalancedSources of a namespace, or of all if empty."""
        ...


class ReviewedToken:
    """Tokens that the API server accepts.

    A bearer sees the sources that `kubectl get` would show.
    """

    def __init__(self, reviewer: Reviewer, clock: Callable[[], float] = time.monotonic) -> None:
        self._reviewer = reviewer
        self._users: _Memory[User | None] = _Memory(clock)
        self._rights: _Memory[bool] = _Memory(clock)

    async def admit(self, token: str) -> Guest:
        """See `Access`."""
        if not token:
            raise AccessError(
                401, "This page needs a token of the cluster: kubectl create token SERVICEACCOUNT"
            )
        user = None
        if len(token) <= _MAX_TOKEN:
            # Remembered by digest, so that no token lies in memory for longer than its request.
            user = await self._users.get((_digest(token),), lambda: self._reviewer.user_of(token))
        if user is None:
            message = (
                "The API server does not accept this token, or it has expired: kubectl create token"
                " SERVICEACCOUNT"
            )
            raise AccessError(401, message)
        return _ReviewedUser(user, _digest(token), self._reviewer, self._rights)


class _ReviewedUser:
    def __init__(
        self, user: User, digest: bytes, reviewer: Reviewer, rights: "_Memory[bool]"
    ) -> None:
        self._user = user
        self._digest = digest
        self._reviewer = reviewer
        self._rights = rights

    async def may_see(self, namespace: str) -> bool:
        return await self._may("") or (bool(namespace) and await self._may(namespace))

    async def _may(self, namespace: str) -> bool:
        key = (self._digest, namespace)
        return await self._rights.get(
            key, lambda: self._reviewer.may_get_sources(self._user, namespace)
        )

    def refusal(self, namespace: str) -> str:
        return (
            f"{self._user.name} may not get BalancedSources in namespace {namespace}: "
            "ask for the role view in that namespace."
        )


class _Memory(Generic[T]):
    """Answers of the API server, for a short time and of bounded number.

    Few questions are asked at once.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._answers: OrderedDict[tuple[bytes | str, ...], tuple[float, T]] = OrderedDict()
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def get(self, key: tuple[bytes | str, ...], ask: Callable[[], Awaitable[T]]) -> T:
        """Return the known answer, or ask.

        Raises:
            AccessError: the API server gives no answer.
        """
        # Whoever guesses tokens must not turn this page into load for the API server.
        async with self._turns:
            known = self._answers.get(key)
            if known is not None and self._clock() < known[0]:
                return known[1]
            try:
                answer = await ask()
            except KubernetesError as error:
                message = (
                    f"It is unknown who may look at this page: {error}. See"
                    f" {page('how-to/status-page')}"
                )
                raise AccessError(503, message) from error
            # Refusals hold for less long: a right that was just granted should work soon.
            self._answers[key] = (self._clock() + (ACCEPTED_FOR if answer else REFUSED_FOR), answer)
            self._answers.move_to_end(key)
            while len(self._answers) > _REMEMBERED:
                self._answers.popitem(last=False)
            return answer


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
