"""Looks after objects that no one calls for a while.

One thread for all of them, which ends with the last.
"""

import logging
import os
import threading
import time
import weakref
from typing import Final, Protocol

INTERVAL: Final = 5.0
"""Seconds between two looks."""

_log: Final = logging.getLogger(__name__)


class Kept(Protocol):
    """Something that has to be done for it now and then, called or not."""

    def tend(self) -> None:
        """Do what is due. Called by the keeper's thread."""
        ...


class Keeper:
    """Calls `tend` of its members, which it does not keep alive. Thread-safe.

    Args:
        interval: see `INTERVAL`.
    """

    def __init__(self, interval: float = INTERVAL) -> None:
        self._interval = interval
        self._lock = threading.Lock()
        self._members: weakref.WeakSet[Kept] = weakref.WeakSet()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def add(self, member: Kept) -> None:
        """Look after `member` as long as it lives."""
        with self._lock:
            if self._process != os.getpid():  # after a fork: the thread stayed behind
                self._members, self._thread, self._process = weakref.WeakSet(), None, os.getpid()
            self._members.add(member)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="bsrc-keeper", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while self._tend_all():
            time.sleep(self._interval)

    def _tend_all(self) -> bool:
        """Tend all members; False, and the thread ends, when there are none."""
        with self._lock:
            members = list(self._members)
            if not members:
                # Under the lock: a member that is added now starts another thread.
                self._thread = None
                return False
        for member in members:
            try:
                member.tend()
            except Exception:  # noqa: BLE001 - one that fails must not leave the others alone
                _log.exception("tending failed")
        return True
