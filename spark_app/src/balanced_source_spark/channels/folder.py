"""Documents as files in a folder: local mode, and tests. Written by rename, so readers never see half of one."""

import contextlib
import os
import threading
from pathlib import Path
from typing import Final

import structlog

from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.errors import FencedError, StateError
from balanced_source_spark.channels.channel import AssignmentListener
from balanced_source_spark.channels.errors import ChannelError

POLL: Final = 0.05
"""Seconds between looks at the folder."""

log = structlog.get_logger(__name__)


def assignment_path(folder: Path) -> Path:
    """Where the assignment lies."""
    return folder / "assignment.json"


def report_path(folder: Path, host: str) -> Path:
    """Where a host's report lies."""
    return folder / f"readers-{host}.json"


class FolderChannel:
    """See `AssignmentChannel`."""

    def __init__(self, folder: Path, *, source: str | None = None) -> None:
        self._folder = folder
        self._source = source
        self._stop = threading.Event()
        self._uid = source or ""

    def start(self, listener: AssignmentListener) -> None:
        threading.Thread(target=self._follow, args=(listener,), name="bsrc-folder", daemon=True).start()

    def claim(self, host: str) -> int:
        seen = [0]
        if (report := self._read_report(host)) is not None:
            seen.append(report.incarnation)
        if (assignment := self._read_assignment()) is not None:
            seen.append(assignment.incarnations.get(host, 0))
        return max(seen) + 1

    def write(self, report: HostReport) -> None:
        stored = self._read_report(report.host)
        if stored is not None and (stored.incarnation, stored.instance) > (report.incarnation, report.instance):
            raise FencedError(f"incarnation {stored.incarnation} of host {report.host} has taken over")
        path = report_path(self._folder, report.host)
        try:
            write_atomically(path, report_document.encode(report, source=self._uid))
        except OSError as error:
            raise ChannelError(f"cannot write {path}: {error}") from error

    def close(self) -> None:
        self._stop.set()

    def _follow(self, listener: AssignmentListener) -> None:
        stamp: tuple[int, int] | None = None
        while not self._stop.wait(POLL):
            with contextlib.suppress(OSError):
                stat = assignment_path(self._folder).stat()
                if (now := (stat.st_mtime_ns, stat.st_ino)) != stamp:
                    stamp = now
                    if (assignment := self._read_assignment()) is not None:
                        listener(assignment)

    def _read_assignment(self) -> Assignment | None:
        try:
            text = assignment_path(self._folder).read_text()
            return assignment_document.decode(text, source=self._source)
        except FileNotFoundError:
            return None
        except StateError as error:
            log.warning("assignment refused", error=str(error))
            return None

    def _read_report(self, host: str) -> HostReport | None:
        try:
            return report_document.decode(report_path(self._folder, host).read_text(), source=self._source)
        except (FileNotFoundError, StateError):
            return None


def write_atomically(path: Path, text: str) -> None:
    """Replace a file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    temporary.write_text(text)
    temporary.replace(path)
