"""Documents in a folder that local mode (``balanced-source local``) writes."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from balanced_source.api import Problem, ProblemKey
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.errors import FencedError, StateError
from balanced_source_adapters.folder import (
    FolderWatch,
    assignment_path,
    read_text,
    report_path,
    write_atomically,
)
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark.channels.channel import AssignmentListener
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.channels.fencing import fenced_message, is_fenced_by
from balanced_source_spark.instance import Instance

POLL: Final = 0.05
"""Seconds between looks at the folder."""

log = get_logger(__name__)


class FolderChannel:
    """See `AssignmentChannel`."""

    has_operator = False
    is_durable = True

    def __init__(self, folder: Path, *, source: str) -> None:
        """A channel for documents of the source with uid `source` in `folder`."""
        self._folder = folder
        self._source = source
        self._stop = threading.Event()

    def start(self, listener: AssignmentListener) -> None:
        threading.Thread(
            target=self._follow, args=(listener,), name="bsrc-folder", daemon=True
        ).start()

    def claim(self, host: str) -> int:
        seen = [0]
        if (report := self._read_report(host)) is not None:
            seen.append(report.incarnation)
        if (assignment := self._read_assignment()) is not None:
            # The report may have been deleted, and a number must never be used twice.
            seen.append(assignment.incarnations.get(host, 0))
        return max(seen) + 1

    def former(self, host: str) -> HostReport | None:
        return self._read_report(host)

    def is_gone(self, instance: Instance) -> bool:
        return False

    def write(self, report: HostReport) -> None:
        stored = self._read_report(report.host)
        if stored is not None and is_fenced_by(report, stored):
            raise FencedError(fenced_message(report, stored))
        path = report_path(self._folder, report.host)
        try:
            write_atomically(path, report_document.encode(report, source=self._source))
        except OSError as error:
            raise ChannelError(f"cannot write {path}: {error}") from error

    def refusal(self) -> str | None:
        return None

    def problems(self) -> Mapping[ProblemKey, Problem]:
        return {}

    def close(self) -> None:
        self._stop.set()

    def _follow(self, listener: AssignmentListener) -> None:
        watch = FolderWatch(assignment_path(self._folder))
        while not self._stop.wait(POLL):
            if watch.changed() and (assignment := self._read_assignment()) is not None:
                listener(assignment)

    def _read_assignment(self) -> Assignment | None:
        try:
            text = read_text(assignment_path(self._folder))
            return (
                assignment_document.decode(text, source=self._source) if text is not None else None
            )
        except (StateError, OSError) as error:
            log.warning("assignment refused", error=str(error))
            return None

    def _read_report(self, host: str) -> HostReport | None:
        try:
            text = read_text(report_path(self._folder, host))
            return report_document.decode(text, source=self._source) if text is not None else None
        except (StateError, OSError):
            return None  # torn or edited: ours to write
