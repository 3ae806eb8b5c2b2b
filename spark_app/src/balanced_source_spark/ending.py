"""Lets the planning process end in order when Spark ends its query."""

import signal
import threading
from types import FrameType
from typing import Final, NoReturn

GRACE: Final = 10
"""Seconds until a process that does not get to its end is killed."""

_SIGNALLED: Final = 128
"""Exit status of a process that a signal ended, less the number of the signal."""


def end_in_order() -> None:
    """Make SIGTERM run this process's ``finally`` blocks, in which Spark stops the reader.

    Spark ends a planning process by SIGTERM, sent twice, when its query is stopped or fails
    elsewhere. The default action would leave the reader no time to give up its claim. A handler
    that someone else has set is left alone.
    """
    # Python lets only the main thread set handlers.
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the second one
    # A finally block that hangs must not keep the process, and its claim's heartbeats, alive.
    signal.alarm(GRACE)
    raise SystemExit(_SIGNALLED + number)
