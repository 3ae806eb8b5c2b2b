"""Local mode: a source without Kubernetes.

The spec is a YAML file, the documents are files in a folder.

A driver follows with ``format("balanced").option("assignmentDir", FOLDER)``; editing the file takes
effect live. The application part of the spec is not used: start the query yourself. What the spec
calls ConfigMap or Secret is a folder of that name beside the file, with a file per key; the driver
finds Secrets by its option ``secretsDir``.
"""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog

from balanced_source.api import Caller, Problem, ProblemBoard, ProblemKey, Source
from balanced_source.coordinator import (
    Checkpoint,
    ParallelismChanged,
    RebalanceRequested,
    ReportReceived,
    SourceChanged,
    SourceCoordinator,
    state_codec,
)
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.documents.assignment import Assignment
from balanced_source.errors import InvalidSpecError, StateError
from balanced_source.names import reason_of
from balanced_source.reasons import Reason
from balanced_source_adapters.connectors import installed
from balanced_source_adapters.coordinator_loop import CoordinatorLoop, with_alarms
from balanced_source_adapters.folder import (
    FolderStore,
    FolderWatch,
    assignment_path,
    fixed_path,
    read_text,
    report_path,
    source_path,
    state_path,
    write_atomically,
)
from balanced_source_adapters.mistakes import named
from balanced_source_adapters.mounted_secrets import MountedSecrets
from balanced_source_adapters.problem_log import log_problem
from balanced_source_operator.contract import yaml_text
from balanced_source_operator.contract.half import TextReference, Texts
from balanced_source_operator.controller.translate import (
    assigner_warning,
    check_change,
    check_fixed,
    fixed_values,
    texts_of,
    to_source,
)
from balanced_source_operator.controller.urgent import with_urgent_fields
from balanced_source_operator.local_notes import LocalNotes
from balanced_source_operator.spec import KIND, BalancedSourceSpec, parse_spec

T = TypeVar("T")

UID: Final = "local"
"""Stands for the resource's uid in the documents; drivers set it as option `uid`, or leave it out.
"""

HOST: Final = "0"
POLL: Final = 0.1
"""Seconds between looks at the files."""

log = structlog.get_logger(__name__)


class LocalOperator:
    """Serves one source until it is stopped.

    Args:
        file: the BalancedSource; only ``spec`` is checked.
        folder: gets the documents.
        explain: returns what is wrong with a file, with line and column; empty if it does not know.
        advise: returns a problem with further advice.
    """

    def __init__(
        self,
        file: Path,
        folder: Path,
        *,
        explain: Callable[[Path], str] = lambda _: "",
        advise: Callable[[str], str] = lambda message: message,
    ) -> None:
        self._explain = explain
        self._advise = advise
        self._file = file
        self._folder = folder
        spec = read_spec(file)
        self._state = FolderStore(state_path(folder))
        self._watch = FolderWatch(*self._watched(spec))
        self._source = to_source(spec, read_texts(file, spec))
        self._check_fixed()
        self._note_fixed()
        self._note_name()
        self._spec = spec
        self._problems = ProblemBoard(log_problem)
        self._notes = LocalNotes(folder)
        self._further: dict[tuple[str, ...], str] = {}
        self._loop = self._new_loop(spec)
        self._note_assigner(spec)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong now; each change is logged once."""
        return tuple(self._problems)

    @property
    def notes(self) -> dict[tuple[str, ...], str]:
        """What is wrong now, by what it is about, and what `also_note` has added."""
        problems = self._problems.by_key().items()
        found = {key: self._advise(problem.message) for key, problem in problems}
        return found | self._further

    def also_note(self, notes: Mapping[tuple[str, ...], str]) -> None:
        """Set what `status` and `top` show besides the problems, until the next call."""
        self._further = dict(notes)

    def note_ending(self, ending: str) -> None:
        """Write down how the run has ended, such as "stopped after batch 3"."""
        self._notes.end(ending)

    @property
    def coordinator(self) -> SourceCoordinator[Any, Any]:
        """What decides; for looking at."""
        return self._loop.coordinator

    @property
    def spec(self) -> BalancedSourceSpec:
        """The spec that is in effect."""
        return self._spec

    @property
    def parallelism(self) -> int:
        """Number of readers that the spec asks for."""
        return self._spec.parallelism

    @property
    def source(self) -> Source[Any, Any]:
        """What is read."""
        return self._source

    def checkpoint(self) -> Checkpoint[Any, Any]:
        """Return the state as it is stored.

        Raises:
            StateError: there is none yet, or it cannot be read.
        """
        stored = read_text(state_path(self._folder))
        if stored is None:
            raise StateError("nothing is stored yet: wait until the first discovery ends")
        return state_codec.decode(stored, self._source, uid=UID)

    def start(self) -> None:
        """Begin, in the background."""
        self._notes.begin()
        self._loop.start()

    def look(self) -> None:
        """Take over what has changed in the files since the last look.

        Raises:
            StateConflictError: another process writes to the folder, so the coordinator has
                stopped.
        """
        if self._loop.is_over and (problem := self._loop.problem) is not None:
            raise problem
        self._problems.replace("coordinator", self._loop.problems)
        for path in self._watch.changed():
            if path == report_path(self._folder, HOST):
                self._take_report(path)
            else:
                self._take_spec()
        self._notes.note(self.notes)

    def run(self) -> None:
        """Serve forever.

        Raises:
            StateConflictError: another process writes to the folder.
        """
        self.start()
        try:
            while True:
                self.look()
                time.sleep(POLL)
        finally:
            self.close()

    def close(self) -> None:
        """Stop; the files stay."""
        self._loop.close()
        self._notes.close()

    def _new_loop(self, spec: BalancedSourceSpec) -> CoordinatorLoop:
        stored = self._state.read()
        restored = state_codec.decode(stored, self._source, uid=UID) if stored is not None else None
        with named(self._source):
            coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(
                self._source,
                parallelism=spec.parallelism,
                lineage=self._lineage(),
                restored=restored,
                published=self._published(),
            )
            secrets = MountedSecrets(self._file.parent)
            connector = installed().of(self._source)
            execute = connector.executor(
                secrets, caller=Caller.OWNER, client_id="balanced-source-local"
            )
        return CoordinatorLoop(
            coordinator, with_alarms(execute), publish=self._publish, persist=self._persist
        )

    def _check_fixed(self) -> None:
        """Compare with what an earlier process served from this folder.

        Raises:
            InvalidSpecError: what must not change was changed while no one watched the file.
        """
        if state_path(self._folder).exists():
            check_fixed(_kept(fixed_path(self._folder)), self._source)

    def _note_fixed(self) -> None:
        """Remember, for the next process, what must not change."""
        text = json.dumps(dict(fixed_values(self._source)), sort_keys=True)
        write_atomically(fixed_path(self._folder), text)

    def _note_name(self) -> None:
        """Remember the name of the source, for commands that are given the folder only."""
        name = name_in(read_manifest(self._file))
        if name:
            write_atomically(source_path(self._folder), json.dumps({"name": name}))

    def _lineage(self) -> int:
        """More than any that a document speaks of, should the state have been deleted."""
        report = _readable(report_path(self._folder, HOST), report_document.decode)
        seen = [
            document.lineage for document in (self._published(), report) if document is not None
        ]
        return max(seen, default=0) + 1

    def _published(self) -> Assignment | None:
        return _readable(assignment_path(self._folder), assignment_document.decode)

    def _watched(self, spec: BalancedSourceSpec) -> tuple[Path, ...]:
        """Files whose changes matter. A text may be written after the spec that refers to it."""
        return (self._file, report_path(self._folder, HOST), *text_paths(self._file, spec).values())

    def _take_spec(self) -> None:
        try:
            spec = read_spec(self._file)
            # Before the texts are read: a file that is written meanwhile is then seen by the next
            # look.
            self._watch.follow(*self._watched(spec))
            source = to_source(spec, read_texts(self._file, spec))
            check_change(self._source, source)
        except InvalidSpecError as error:
            self._take_urgent_fields(error)
            return
        self._spec = spec
        self._problems.clear(Reason.INVALID_SPEC)
        if source != self._source:
            self._source = source
            self._note_fixed()
            self._loop.put(SourceChanged(source))
        self._note_assigner(spec)
        self._loop.put(ParallelismChanged(spec.parallelism))
        self._loop.put(RebalanceRequested(nonce=spec.rebalance_nonce))

    def _take_urgent_fields(self, error: InvalidSpecError) -> None:
        """Report an invalid spec. A user who slows a source down need not repair the rest first."""
        raw = read_raw_spec(self._file)
        self._spec = with_urgent_fields(self._spec, raw)
        stated = raw.get("parallelism") if isinstance(raw, Mapping) else None
        # As it is in the file, if it was taken over: one that is missing or invalid was not.
        now = f", with the file's parallelism of {stated}" if stated == self.parallelism else ""
        act = "Correct" if self._file.exists() else "Restore"
        message = (
            f"{self._explain(self._file) or error}\nThe last valid spec stays in effect{now}."
            f" {act} the file"
        )
        self._problems.raise_(
            Reason.INVALID_SPEC, Problem(reason=Reason.INVALID_SPEC, message=message)
        )
        self._loop.put(ParallelismChanged(self._spec.parallelism))

    def _note_assigner(self, spec: BalancedSourceSpec) -> None:
        self._problems.set("assigner", assigner_warning(self._source, spec.parallelism))

    def _take_report(self, path: Path) -> None:
        try:
            text = read_text(path)
            if text is not None:
                report = report_document.decode(text, source=UID)
                self._loop.put(ReportReceived(report))
                reported: dict[ProblemKey, Problem] = {
                    (p.reason, p.scope): p for p in report.problems
                }
                self._problems.replace("driver", reported)
        except StateError as error:
            log.warning("report refused", error=str(error))

    def _persist(self, checkpoint: Checkpoint[Any, Any]) -> None:
        self._state.swap(state_codec.encode(checkpoint, self._source, uid=UID))

    def _publish(self, assignment: Assignment) -> None:
        write_atomically(
            assignment_path(self._folder), assignment_document.encode(assignment, source=UID)
        )
        log.info("assignment published", epoch=assignment.epoch, splits=len(assignment.owners))


def _kept(path: Path) -> Mapping[str, str]:
    """Return what an earlier process wrote down.

    Nothing if it was an older version, or the file is damaged.
    """
    try:
        found = json.loads(read_text(path) or "{}")
        return {str(name): str(value) for name, value in found.items()}
    except (ValueError, AttributeError) as error:
        log.warning("damaged file ignored; it is written again", path=str(path), error=str(error))
        return {}


def _readable(path: Path, decode: Callable[[str], T]) -> T | None:
    """Returns a document; None if there is none, or if it is damaged: it is written again.

    A host that knows a higher lineage than a damaged document would have told says so in its
    report, and the coordinator then begins a higher one still.
    """
    try:
        text = read_text(path)
        return decode(text) if text is not None else None
    except StateError as error:
        log.warning(
            "damaged document ignored; it is written again", path=str(path), error=str(error)
        )
        return None


def read_manifest(file: Path) -> Mapping[str, Any]:
    """Return the BalancedSource in a file, which may hold other objects, too.

    Raises:
        InvalidSpecError: no such file, no YAML, or not exactly one BalancedSource.
    """
    try:
        documents = [
            document.value for document in yaml_text.load_all(file.read_text(encoding="utf-8"))
        ]
    except (OSError, ValueError) as error:
        raise InvalidSpecError(f"cannot be read: {reason_of(error)}", field=str(file)) from error
    sources = [d for d in documents if isinstance(d, Mapping) and d.get("kind") == KIND]
    found = sources or [d for d in documents if isinstance(d, Mapping) and "spec" in d]
    if len(found) != 1:
        raise InvalidSpecError(
            f"expected one BalancedSource with a spec, found {len(found)}", field=str(file)
        )
    return found[0]


def name_in(manifest: Mapping[str, Any]) -> str:
    """Return the name of the source; empty if it has none."""
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) else ""


def read_name(file: Path) -> str:
    """Return the name of the source in a file.

    Raises:
        InvalidSpecError: the file cannot be read, or its source has no name.
    """
    if not (name := name_in(read_manifest(file))):
        raise InvalidSpecError("must have a name", field=f"{file}: metadata")
    return name


def read_spec(file: Path) -> BalancedSourceSpec:
    """Return the spec in a file.

    Raises:
        InvalidSpecError: no such file, no YAML, or no valid spec.
    """
    return parse_spec(read_manifest(file).get("spec"))


def read_raw_spec(file: Path) -> Any:
    """Return the spec in a file as it is written; None if there is none, or no YAML."""
    try:
        return read_manifest(file).get("spec")
    except InvalidSpecError:
        return None


def text_paths(file: Path, spec: BalancedSourceSpec) -> dict[TextReference, Path]:
    """Return where the texts are that the spec refers to.

    A ConfigMap is a folder beside the spec.
    """
    return {reference: file.parent / reference.name / reference.key for reference in texts_of(spec)}


def read_texts(file: Path, spec: BalancedSourceSpec) -> Texts:
    """Return the texts that the spec refers to."""
    return {reference: read_text(path) for reference, path in text_paths(file, spec).items()}
