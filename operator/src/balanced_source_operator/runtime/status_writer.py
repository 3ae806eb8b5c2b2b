"""Writes the status when it has changed, and says in events what people should see."""

import contextlib
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

import structlog

from balanced_source_operator.kube.port import (
    KubernetesApi,
    KubernetesError,
    Manifest,
    RefusedError,
)
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from balanced_source_operator.runtime.best_effort import BestEffort
from balanced_source_operator.runtime.events import EventRecorder
from balanced_source_operator.runtime.observed import revision
from balanced_source_operator.spec import Status

log = structlog.get_logger(__name__)

LAG_INTERVAL: Final = 5.0
"""Seconds between updates in which nothing but the lag and other measured numbers changed."""

_MEASURED: Final[Mapping[str, Any]] = {"lag": None, "secondsBehind": None, "autoscaling": None}


RIVAL_HOLD: Final = 60.0
"""Seconds between updates while another installation writes, too: two that repair each other must
not do so at once."""

REPAIR_HOLD: Final = 10.0
"""Seconds between repairs of an edited status: a client may undo each repair at once."""

RIVAL_FORGET: Final = 180.0
"""Seconds without a status of another installation after which there is none any more."""


class _Stored(NamedTuple):
    """What the API server made of a status; thousands of these are kept."""

    revision: int
    status: Any

    @classmethod
    def of(cls, body: Manifest) -> Self:
        return cls(revision(body), body.get("status"))


class StatusWriter:
    """Of one source.

    Args:
        api: the API server.
        source: whose status it is.
        events: where events are posted.
        instance: name of the operator's installation; empty if it has none.
        best_effort: bounds the writes in which only measured numbers changed.
    """

    def __init__(
        self,
        api: KubernetesApi,
        source: Identity,
        events: EventRecorder,
        *,
        instance: str = "",
        best_effort: BestEffort,
    ) -> None:
        self._api = api
        self._source = source
        self._events = events
        self._written: dict[str, Any] = {}
        self._stored: _Stored | None = None
        self._at, self._repaired_at = 0.0, -float("inf")
        self._instance = instance
        self._best_effort = best_effort
        self._is_unanswered = False
        self._rival, self._rival_at = "", -float("inf")

    def rival(self, seen: Manifest) -> str:
        """Return the name of another installation that has written the status after this one did.

        Empty if none has.
        """
        now, writer = time.monotonic(), (seen.get("status") or {}).get("servedBy", "")
        # The status names its writer, so that a user's edit is not taken for a second operator.
        if self._instance and writer not in ("", self._instance) and self._is_edited(seen):
            self._rival, self._rival_at = str(writer), now
        return self._rival if now - self._rival_at < RIVAL_FORGET else ""

    @property
    def written(self) -> Mapping[str, Any]:
        """The status as written last; empty if none was."""
        return self._written

    async def write(self, status: Status, *, seen: Manifest) -> float | None:
        """Write what has changed.

        Returns seconds until a change that was held back should be written.

        Args:
            status: what it should be.
            seen: the resource as it was seen last. A status that someone else has changed since is
                repaired.

        Raises:
            KubernetesError: the API server does not answer.
        """
        wanted = {**status.model_dump(mode="json", by_alias=True), "servedBy": self._instance}
        now = time.monotonic()
        if (
            not self._written
            and self._stored is None
            and seen.get("status") == _without_null(wanted)
        ):
            # as the operator before this one has left it
            self._written, self._stored = wanted, _Stored.of(seen)
            return None
        if self.rival(seen) and (left := self._at + RIVAL_HOLD - now) > 0:
            return left
        is_edited, left = self._is_edited(seen), self._repaired_at + REPAIR_HOLD - now
        if is_edited and left <= 0:
            log.warning(
                "status was edited: restored",
                source=self._source.name,
                namespace=self._source.namespace,
            )
            # Forgotten, or the comparison below would call the status unchanged.
            self._written, self._repaired_at = {}, now
        if wanted == self._written and not self._is_unanswered:
            return left if is_edited else None
        is_only_lag = {**wanted, **_MEASURED} == {**self._written, **_MEASURED}
        if is_only_lag and (now - self._at < LAG_INTERVAL or not self._best_effort.is_free):
            return LAG_INTERVAL
        before, self._at = self._written, now
        with self._best_effort.write() if is_only_lag else contextlib.nullcontext():
            await self._store(wanted)
        await self._tell(before, wanted)
        return None

    async def _store(self, wanted: dict[str, Any]) -> None:
        try:
            stored = await self._api.patch_status(
                BALANCED_SOURCE, self._source.namespace, self._source.name, wanted
            )
        except RefusedError:
            raise
        except KubernetesError:
            # It may be stored all the same, and is no edit of someone else then.
            self._is_unanswered = True
            raise
        self._written, self._is_unanswered = wanted, False
        self._stored = None if stored is None else _Stored.of(stored)

    def _is_edited(self, seen: Manifest) -> bool:
        """Whether the status differs from what the API server made of ours in a later version."""
        # A watch may still deliver what was stored before our own write.
        if self._stored is None or not self._written or self._is_unanswered:
            return False
        if revision(seen) <= self._stored.revision:
            return False
        return bool(seen.get("status") != self._stored.status)

    async def _tell(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Post an event when the source becomes ready. Problems have an announcer of their own."""
        known = {c["type"]: (c["status"], c["reason"]) for c in before.get("conditions", [])}
        for condition in after["conditions"]:
            kind, reason, message = condition["type"], condition["reason"], condition["message"]
            if known.get(kind) == (condition["status"], reason) or condition["status"] != "True":
                continue
            if kind == "Ready":
                await self._events.post(reason, message)


def _without_null(value: Any) -> Any:
    """Return what a merge patch leaves of a value: it removes what is null."""
    if isinstance(value, Mapping):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    return value
