"""What a container leaves as the reason of its end, as the kubelet reads it.

Its termination log; or, by the policy FallbackToLogsOnError, the end of what it has printed. See
https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_LONGEST: Final = 4096
"""Bytes of a termination log that count."""

_LONGEST_TAIL: Final = 2048
"""Bytes that are taken from the container's output."""

_LINES: Final = 80
_DEFAULT_PATH: Final = "/dev/termination-log"


class LastWords:
    """The termination log of one run of a container."""

    def __init__(self, container: Mapping[str, Any], folder: Path, output: Path) -> None:
        """Make an empty termination log.

        Args:
            container: its spec.
            folder: of the pod, on the node.
            output: file to which the container prints.
        """
        self._path = str(container.get("terminationMessagePath") or _DEFAULT_PATH)
        self._falls_back = container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        self._output = output
        self._file = folder / f"{container['name']}.termination-log"
        self._file.write_bytes(b"")
        self._file.chmod(0o666)

    @property
    def binds(self) -> Mapping[str, str]:
        """The path in the container, and the node's file that is shown there."""
        return {self._path: str(self._file)}

    def text(self, code: int) -> str:
        """Return what was left by a run that has ended with this exit code; empty for nothing."""
        left = self._file.read_bytes()[-_LONGEST:]
        if not left and self._falls_back and code != 0 and self._output.exists():
            lines = self._output.read_bytes().splitlines(keepends=True)[-_LINES:]
            left = b"".join(lines)[-_LONGEST_TAIL:]
        return left.decode(errors="replace")
