"""Leaves the reason for which the driver ends where the operator finds it.

Kubernetes copies the termination log of a container into the status of its pod.
"""

import contextlib
from pathlib import Path
from typing import Final

from balanced_source.redaction import redacted_text

TERMINATION_LOG: Final = Path("/dev/termination-log")
"""The kubelet's default for every container. The file exists only in a pod."""

_LONGEST: Final = 1024
"""Characters. Kubernetes keeps at most 4096 bytes of a container."""


def leave(reason: str, log: Path = TERMINATION_LOG) -> None:
    """Write the first line of a reason into the termination log, without secrets.

    Does nothing outside of a pod.
    """
    first, *_ = reason.strip().splitlines() or [""]
    # Never the cause of another failure: the program ends with the reason itself.
    with contextlib.suppress(OSError):
        if log.is_file():
            log.write_text(redacted_text(first)[:_LONGEST], encoding="utf-8")
