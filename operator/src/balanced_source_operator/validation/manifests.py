"""Finds and checks the BalancedSources in files."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from balanced_source.errors import BalancedSourceError, InvalidSpecError
from balanced_source.names import reason_of, shown
from balanced_source_operator.contract import yaml_text
from balanced_source_operator.contract.half import Texts
from balanced_source_operator.contract.yaml_text import Located, YamlError
from balanced_source_operator.controller.translate import texts_of
from balanced_source_operator.local import read_texts
from balanced_source_operator.spec import GROUP, KIND, BalancedSourceSpec
from balanced_source_operator.validation.findings import Finding, path_text
from balanced_source_operator.validation.manifest import check_manifest

SUFFIXES: Final = (".yaml", ".yml", ".json")
STDIN: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentName:
    """Which document: the file, its number in the file from 1, and the name of the object."""

    file: str
    document: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedFinding:
    """What is wrong, and where; line and column count from 1."""

    file: str
    document: int
    line: int
    column: int
    field: str
    message: str

    def __str__(self) -> str:
        """Return a line as compilers write it."""
        # A connector's message may have several lines, and editors read one line per problem.
        words = ": ".join(filter(None, [self.field, " ".join(self.message.split())]))
        return f"{self.file}:{self.line}:{self.column}: error: {words}"


class InvalidManifestError(BalancedSourceError):
    """A manifest is invalid: a line per problem, with file, line and column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A BalancedSource that was checked."""

    name: DocumentName
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found.

    Attributes:
        checked: the BalancedSources.
        problems: in the order of the files.
        notes: what could not be checked.
    """

    checked: tuple[Checked, ...] = ()
    problems: tuple[LocatedFinding, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: "Report") -> "Report":
        return Report(
            checked=self.checked + other.checked,
            problems=self.problems + other.problems,
            notes=self.notes + other.notes,
        )


@contextmanager
def located(file: Path) -> Iterator[None]:
    """Say what is wrong with a manifest as `validate` does, with line and column.

    Raises:
        InvalidManifestError: the block has found the manifest invalid, and so does `validate`.
        InvalidSpecError: the block has found it invalid, for a reason that is not in the file.
    """
    try:
        yield
    except InvalidSpecError as error:
        if found := problems_in(file):
            raise InvalidManifestError(found) from error
        raise


def problems_in(file: Path) -> str:
    """Return a line per problem of a manifest; empty if there is none, or no such file."""
    try:
        return "\n".join(map(str, check_text(_read(str(file)), str(file)).problems))
    except InvalidSpecError:
        return ""


def check_files(names: Sequence[str]) -> Report:
    """Check all BalancedSources in files and folders.

    Raises:
        InvalidSpecError: a file cannot be read, or there is no BalancedSource at all.
    """
    report = Report()
    for name in names:
        for file in _files(name):
            report += check_text(_read(file), file)
    if not report.checked and not report.problems:
        raise InvalidSpecError(
            f"there is no BalancedSource (kind: {KIND}) in it", field=", ".join(names)
        )
    return report


def _files(name: str) -> Iterable[str]:
    path = Path(name)
    if name == STDIN or not path.is_dir():
        return (name,)
    return sorted(
        str(file) for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file()
    )


def _read(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
        return raw.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise InvalidSpecError(
            f"cannot be read: {reason_of(error)}", field=shown_file(file)
        ) from error


def shown_file(file: str) -> str:
    """Return how a file is called in messages."""
    return "<stdin>" if file == STDIN else file if file.isprintable() and file else shown(file)


def check_text(text: str, file: str) -> Report:
    """Check all BalancedSources in a text; `file` is where it comes from."""
    name = shown_file(file)
    try:
        documents = yaml_text.load_all(text)
    except YamlError as error:
        line, column = error.place
        found = LocatedFinding(
            file=name, document=1, line=line, column=column, field="", message=str(error)
        )
        return Report(problems=(found,))
    report = Report()
    for number, document in enumerate(documents, 1):
        if _is_ours(document.value):
            report += _check_document(document, number, name, _folder(file), documents)
    return report


def _folder(file: str) -> Path:
    return Path() if file == STDIN else Path(file).parent


def _is_ours(value: Any) -> bool:
    """Other kinds may be in the same file. A misspelt kind or group is ours if the rest is."""
    if not isinstance(value, dict):
        return False
    return value.get("kind") == KIND or str(value.get("apiVersion")).startswith(GROUP)


def _check_document(
    document: Located, number: int, file: str, folder: Path, others: Sequence[Located]
) -> Report:
    notes: list[str] = []

    def texts(spec: BalancedSourceSpec) -> Texts | None:
        found = {**_texts_beside(spec, folder), **_texts_among(spec, others)}
        missing = [reference for reference, text in found.items() if text is None]
        notes.extend(
            f"{file}: ConfigMap {reference.name} is not here: its clusters and streams were not"
            " checked"
            for reference in missing
        )
        return None if missing else found

    found = check_manifest(document.value, texts)
    problems = (
        *_duplicates(document, number, file),
        *(_problem(f, document, number, file) for f in found),
    )
    name = DocumentName(file=file, document=number, name=_name(document.value))
    checked = Checked(name=name, manifest=document.value)
    return Report(checked=(checked,), problems=problems, notes=tuple(notes))


def _texts_beside(spec: BalancedSourceSpec, folder: Path) -> Texts:
    """A ConfigMap may be a folder beside the manifest, as in local mode."""
    try:
        return read_texts(folder / "manifest", spec)
    except (OSError, ValueError):
        return dict.fromkeys(texts_of(spec))


def _texts_among(spec: BalancedSourceSpec, documents: Sequence[Located]) -> Texts:
    """Return the texts in ConfigMaps of the same file."""
    contents = dict(filter(None, (_config_map(document.value) for document in documents)))
    return {
        reference: contents[reference.name][reference.key]
        for reference in texts_of(spec)
        if isinstance(contents.get(reference.name, {}).get(reference.key), str)
    }


def _config_map(value: Any) -> tuple[str, dict[str, Any]] | None:
    """Return name and content of a ConfigMap; None for anything else."""
    match value:
        case {"kind": "ConfigMap", "metadata": {"name": str(name)}, "data": dict(data)}:
            return name, data
        case _:
            return None


def _duplicates(document: Located, number: int, file: str) -> Iterator[LocatedFinding]:
    for key, place in document.duplicates():
        message = "this key occurs twice in its map: remove one of them"
        yield LocatedFinding(
            file=file,
            document=number,
            line=place.line,
            column=place.column,
            field=shown(key),
            message=message,
        )


def _problem(finding: Finding, document: Located, number: int, file: str) -> LocatedFinding:
    place = document.place(finding.path)
    return LocatedFinding(
        file=file,
        document=number,
        line=place.line,
        column=place.column,
        field=path_text(finding.path),
        message=finding.message,
    )


def _name(value: Any) -> str:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) and name.isprintable() else "(without a name)"


def with_problem(report: Report, checked: Checked, message: str) -> Report:
    """Return a report with something else that is wrong with a checked manifest."""
    problem = LocatedFinding(
        file=checked.name.file,
        document=checked.name.document,
        line=1,
        column=1,
        field="",
        message=message,
    )
    return replace(report, problems=(*report.problems, problem))
