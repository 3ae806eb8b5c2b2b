"""Ends the process within a bound, whatever its event loop is at.

An operator without its Lease must do nothing more, and one that was told to stop must be gone
before the kubelet kills it. Both hold only if they depend on neither the event loop nor a
framework: threads of their own see to them.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

import structlog

STOP_SECONDS: Final = 20.0
"""Seconds from a signal to the end of the process; Kubernetes grants 30 by default."""

_SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT})

log = structlog.get_logger(__name__)

End = Callable[[], None]


def end_now() -> None:
    """End the process at once, with exit code 1.

    Nothing needs tidying up: the next operator reads what is stored.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    # sys.exit would raise in one thread only, and wait for all others that are no daemons.
    os._exit(1)


def end_within(seconds: float, *, end: End = end_now) -> None:
    """End the process with exit code 1 unless it has ended by itself within `seconds`."""

    def late() -> None:
        log.error("the process did not end in time: ending it", seconds=seconds)
        end()

    timer = threading.Timer(seconds, late)
    timer.daemon = True
    timer.start()


def on_stop_signals(stop: Callable[[], object]) -> None:
    """Call `stop` at the first SIGTERM or SIGINT; end the process after `STOP_SECONDS` at most.

    Call it before any other thread is started. The signals are blocked and taken by a thread: kopf
    replaces signal handlers, and a handler of the event loop is not called while the loop is busy.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)

    def wait() -> None:
        number = signal.sigwait(_SIGNALS)
        log.info("told to stop", signal=signal.Signals(number).name)
        # Before stop: from here on the bound holds, whatever the event loop is at.
        end_within(STOP_SECONDS)
        stop()

    threading.Thread(target=wait, name="signals", daemon=True).start()


class LeaseGuard:
    """Ends the process when its Lease was not renewed in time.

    Args:
        seconds: after the request of the last renewal.
        end: ends the process.
        clock: monotonic seconds.
    """

    def __init__(
        self, seconds: float, *, end: End = end_now, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._end = end
        self._clock = clock
        self._changed = threading.Condition()
        self._renewed_at: float | None = None
        self._is_closed = False

    def renewed(self, at: float) -> None:
        """Note a renewal that was asked for at `at`, on the guard's clock.

        The first one starts the guard.
        """
        with self._changed:
            is_first, self._renewed_at = self._renewed_at is None, at
            self._changed.notify_all()
        if is_first:
            threading.Thread(target=self._watch, name="lease", daemon=True).start()

    def lost(self) -> None:
        """End the process: the Lease is known to be lost."""
        log.error("lost the Lease: ending the process, so that the new leader is alone")
        self._end()

    def close(self) -> None:
        """Watch no longer: the process gives its Lease up by itself."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _watch(self) -> None:
        with self._changed:
            while not self._is_closed and (left := self._left()) > 0:
                self._changed.wait(left)
            if self._is_closed:
                return
        self.lost()

    def _left(self) -> float:
        assert self._renewed_at is not None  # noqa: S101 - started by the first renewal
        return self._renewed_at + self._seconds - self._clock()
