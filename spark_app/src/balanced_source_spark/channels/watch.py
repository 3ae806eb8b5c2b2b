"""Follows one ConfigMap at the API server: lists it, then watches from the revision of that list.

The revision of an object is no place to start a watch from: an object that has not changed for a
while is older than what the API server keeps, and each such watch ends at once with "too old
resource version". The revision of a list is always recent, and bookmarks keep it recent while
nothing happens.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import quote

import httpx2
from lightkube.resources.core_v1 import ConfigMap

from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.fault_log import FaultLog

WATCH_TIMEOUT: Final = 240
"""Seconds after which the API server ends a watch."""

WATCH_SILENCE: Final = 90.0
"""Seconds without a byte after which a watch is given up.

The API server sends a bookmark every minute.
"""

HELD: Final = 10.0
"""Seconds that a watch must last before the next fault is treated as the first one."""

_RETRY_FIRST: Final = 0.2
_RETRY_MAX: Final = 5.0
_GONE: Final = 410


class ExpiredRevisionError(ChannelError):
    """The API server no longer knows the revision to continue from (410): list again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigMapChange:
    """One event of a watch.

    Attributes:
        revision: to continue from after this event.
        found: the object as it is now; None for a bookmark and for a deletion.
    """

    revision: str
    found: ConfigMap | None


class ConfigMapWatch:
    """Requests for one ConfigMap.

    Args:
        http: client of the API server.
        namespace: of the ConfigMap.
        name: of the ConfigMap.
    """

    def __init__(self, http: httpx2.Client, *, namespace: str, name: str) -> None:
        self._http = http
        self._path = f"api/v1/namespaces/{quote(namespace, safe='')}/configmaps"
        self._fields = {"fieldSelector": f"metadata.name={name}"}

    def list(self) -> ConfigMapChange:
        """Return the object and the revision of the list that holds it.

        Raises:
            ChannelError: the API server refused.
            httpx2.HTTPError: it does not answer.
        """
        response = self._http.get(self._path, params=self._fields)
        _check(response)
        body = response.json()
        found = _config_map(body["items"][0]) if body["items"] else None
        return ConfigMapChange(revision=body["metadata"]["resourceVersion"], found=found)

    def changes(self, revision: str) -> Iterator[ConfigMapChange]:
        """Yield what happens after `revision`, until the API server ends the watch.

        Raises:
            ExpiredRevisionError: the revision is too old.
            ChannelError: the API server refused.
            httpx2.HTTPError: it does not answer, or was silent for `WATCH_SILENCE`.
        """
        asked = {
            **self._fields,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": revision,
            "timeoutSeconds": str(WATCH_TIMEOUT),
        }
        usual = self._http.timeout
        timeout = httpx2.Timeout(
            connect=usual.connect, write=usual.write, pool=usual.pool, read=WATCH_SILENCE
        )
        with self._http.stream("GET", self._path, params=asked, timeout=timeout) as response:
            # The body of a stream is not there until it is read, and it says why.
            if not response.is_success:
                response.read()
            _check(response)
            for line in response.iter_lines():
                yield _change(json.loads(line))


def _change(event: dict[str, Any]) -> ConfigMapChange:
    kind, body = event["type"], event["object"]
    if kind == "ERROR":
        raise _refused(int(body.get("code", 0)), str(body.get("message", body)))
    # A deletion is no news for a driver: the operator writes the assignment again.
    found = _config_map(body) if kind in ("ADDED", "MODIFIED") else None
    return ConfigMapChange(revision=body["metadata"]["resourceVersion"], found=found)


def _config_map(body: dict[str, Any]) -> ConfigMap:
    return cast("ConfigMap", ConfigMap.from_dict(body))


def _check(response: httpx2.Response) -> None:
    if response.is_success:
        return
    try:
        message = str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        message = response.text[:200]
    raise _refused(response.status_code, message)


def _refused(code: int, message: str) -> ChannelError:
    kind = ExpiredRevisionError if code == _GONE else ChannelError
    return kind(f"the API server answered {code}: {message}")


@dataclass(kw_only=True)
class Backoff:
    """How long to wait before the next attempt: longer after each one that did not hold.

    Attributes:
        spread: returns a factor between 0.5 and 1, so that many drivers do not come at once.
    """

    # Jitter
    spread: Callable[[], float] = field(default=lambda: random.uniform(0.5, 1.0))  # noqa: S311
    _delay: float = _RETRY_FIRST

    def after(self, seconds: float) -> float:
        """Return the seconds to wait after an attempt that lasted `seconds`."""
        if seconds >= HELD:
            self._delay = _RETRY_FIRST
        delay, self._delay = self._delay, min(2 * self._delay, _RETRY_MAX)
        return delay * self.spread()


class Follower:
    """Hands each version of a ConfigMap to a function, until it is stopped.

    Args:
        watch: of the ConfigMap.
        tell: gets each version that is seen. It may raise `ChannelError` to be told again.
        stop: ends `run` at the next event.
    """

    def __init__(
        self, watch: ConfigMapWatch, tell: Callable[[ConfigMap], None], stop: threading.Event
    ) -> None:
        self._watch = watch
        self._tell = tell
        self._stop = stop
        self._revision: str | None = None
        self._backoff = Backoff()
        self._faults = FaultLog(
            "cannot follow the assignment now; the query continues", clock=time.monotonic
        )

    def run(self) -> None:
        """Follow; faults are retried forever."""
        while not self._stop.is_set():
            begun = time.monotonic()
            error = self._attempt()
            lasted = time.monotonic() - begun
            # A watch that ends at once, without an error, would be started again hundreds of times
            # a second.
            if error is None and lasted >= HELD:
                self._backoff = Backoff()
                continue  # the API server has ended the watch in time
            if error is not None and not self._stop.is_set():
                self._faults.note(error)
            self._stop.wait(self._backoff.after(lasted))

    def _attempt(self) -> Exception | None:
        """List unless the revision is known, then watch; returns what went wrong."""
        try:
            if self._revision is None:
                self._take(self._watch.list())
            for change in self._watch.changes(self._revision or ""):
                if self._stop.is_set():
                    return None
                self._take(change)
        except ExpiredRevisionError:
            self._revision = None
            return None
        except ChannelError as error:
            self._revision = None
            return error
        except Exception as error:  # noqa: BLE001
            # A thread that ends would leave the query with an old assignment
            return error
        return None

    def _take(self, change: ConfigMapChange) -> None:
        if change.found is not None:
            self._tell(change.found)
        # After telling: what could not be used is told again by the next list.
        self._revision = change.revision
