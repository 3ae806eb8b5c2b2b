"""Stands for Spark in tests of ``run``: says what the packaged application says, and waits."""

import json
import os
import signal
import sys
import time


def _say(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def _batch(number: int) -> None:
    _say(event="batch", batch=number, rows=5, durations={})


def _end(*_: object) -> None:
    """As the application does: the running micro-batch ends first."""
    _batch(1)
    if reason := os.environ.get("LAPTOP_PROGRAM_REASON"):
        _say(event="failed", reason=reason)
    # Spark's log goes on behind the reason.
    sys.stderr.write("py4j.protocol.Py4JNetworkError: Answer from Java side is empty\n")
    sys.stderr.write("\tat sun.nio.ch.Net.connect(Native)\nTraceback (most recent call last):\n")
    sys.exit(int(os.environ.get("LAPTOP_PROGRAM_CODE", "0")))


def main() -> None:
    """Read one micro-batch; end after the next one when told to stop."""
    if os.environ.get("LAPTOP_PROGRAM_IS_DEAF"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif not os.environ.get("LAPTOP_PROGRAM_IS_STARTING"):
        signal.signal(signal.SIGTERM, _end)
        _batch(0)
    _say(event="query started")
    while True:
        time.sleep(0.05)


if __name__ == "__main__":
    main()
