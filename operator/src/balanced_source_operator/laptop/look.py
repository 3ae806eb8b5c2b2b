"""Shows a local run on the status page: reads its documents when they have changed."""

from collections.abc import Callable
from pathlib import Path

from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import FIRST_HOST
from balanced_source.errors import StateError
from balanced_source_adapters.folder import FolderWatch, assignment_path, read_text, report_path
from balanced_source_operator.local import LocalOperator
from balanced_source_operator.runtime.audience import SourceMoment


class LocalLook:
    """Tells the page of a local source whenever something has changed.

    Args:
        folder: of local mode.
        publish: takes what is seen.
    """

    def __init__(self, folder: Path, publish: Callable[[SourceMoment], None]) -> None:
        self._assignment_path, self._report_path = (
            assignment_path(folder),
            report_path(folder, FIRST_HOST),
        )
        self._watch = FolderWatch(self._assignment_path, self._report_path)
        self._publish = publish
        self._assignment: Assignment | None = None
        self._report: HostReport | None = None
        self._unreadable: dict[Path, str] = {}
        self._published: SourceMoment | None = None

    def __call__(self, operator: LocalOperator) -> None:
        """Publish what there is, if it differs from what was published last."""
        self._read()
        notes = (*self._unreadable.values(), *(problem.message for problem in operator.problems))
        seen = SourceMoment(
            desired=operator.parallelism,
            assignment=self._assignment,
            reports={FIRST_HOST: self._report} if self._report is not None else {},
            source=operator.source,
            checkpoint=operator.checkpoint,
            notes=notes,
        )
        # This runs five times a second, and each publication goes to every open page.
        if seen != self._published:
            self._published = seen
            self._publish(seen)

    def _read(self) -> None:
        for path in self._watch.changed():
            self._unreadable.pop(path, None)
            try:
                self._take(path, read_text(path))
            except StateError as error:
                self._unreadable[path] = f"{path.name} cannot be read: {error}"

    def _take(self, path: Path, text: str | None) -> None:
        if path == self._report_path:
            self._report = report_document.decode(text) if text is not None else None
        else:
            self._assignment = assignment_document.decode(text) if text is not None else None
