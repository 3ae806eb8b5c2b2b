"""Reads views: of a cluster through its API server, or of local mode's folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import Names
from balanced_source.errors import StateError
from balanced_source_adapters.folder import assignment_path, read_text, report_path
from balanced_source_operator.kube.port import KubernetesApi, Manifest
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, CONFIG_MAP
from balanced_source_operator.runtime.documents import read_content
from balanced_source_operator.views.model import Adopted, ConditionView, SourceView

HOST: Final = "0"


async def of_cluster(api: KubernetesApi, namespace: str, name: str = "") -> list[SourceView]:
    """Return the sources of a namespace, or the one of that name, sorted by name.

    Raises:
        KubernetesError: the API server refused, or does not answer.
        StateError: there is no source of that name.
    """
    if name:
        body = await api.get(BALANCED_SOURCE, namespace, name)
        if body is None:
            raise StateError(f"there is no BalancedSource {name!r} in namespace {namespace!r}")
        return [await _of_body(api, namespace, body)]
    bodies = await api.list(BALANCED_SOURCE, namespace, selector="")
    return [await _of_body(api, namespace, body) for body in sorted(bodies, key=_name)]


def _name(body: Manifest) -> str:
    return str(body["metadata"]["name"])


async def _of_body(api: KubernetesApi, namespace: str, body: Manifest) -> SourceView:
    names, notes = Names.of(_name(body)), list[str]()
    assignment = await _document(api, namespace, names.assignment, notes)
    report = await _document(api, namespace, names.readers, notes)
    status = body.get("status") or {}
    return view_of(
        namespace=namespace,
        name=_name(body),
        desired=body.get("spec", {}).get("parallelism"),
        status=status,
        assignment=_decoded(assignment, assignment_document.decode, names.assignment, notes),
        report=_decoded(report, report_document.decode, names.readers, notes),
        notes=notes,
    )


async def _document(api: KubernetesApi, namespace: str, name: str, notes: list[str]) -> str | None:
    found = await api.get(CONFIG_MAP, namespace, name)
    if found is None or not (found.get("data") or found.get("binaryData")):
        return None
    try:
        return (await read_content(api, namespace, found)).document
    except StateError as error:
        notes.append(f"ConfigMap {name} cannot be read: {error}")
        return None


def _decoded(text: str | None, decode: Any, name: str, notes: list[str]) -> Any:
    try:
        return None if text is None else decode(text)
    except StateError as error:
        notes.append(f"{name} cannot be read: {error}")
        return None


def of_folder(folder: Path, *, name: str, desired: int | None = None) -> SourceView:
    """Return the source that local mode serves in a folder."""
    notes: list[str] = []
    assignment, report = read_text(assignment_path(folder)), read_text(report_path(folder, HOST))
    return view_of(
        namespace="",
        name=name,
        desired=desired,
        status={},
        assignment=_decoded(assignment, assignment_document.decode, "assignment", notes),
        report=_decoded(report, report_document.decode, "report", notes),
        notes=notes,
    )


def view_of(
    *,
    namespace: str,
    name: str,
    desired: int | None,
    status: Mapping[str, Any],
    assignment: Assignment | None,
    report: HostReport | None,
    notes: list[str],
) -> SourceView:
    """Return the view that status and documents make; the documents are newer than the status."""
    application = status.get("application") or {}
    return SourceView(
        namespace=namespace,
        name=name,
        desired=desired,
        epoch=assignment.epoch if assignment else status.get("epoch", 0),
        parallelism=assignment.parallelism if assignment else status.get("readers", 0),
        owners=assignment.owners if assignment else {},
        pending=status.get("pendingSplits"),
        lag=status.get("lag") if status else (report.lag if report else None),
        application=application.get("state", ""),
        conditions=tuple(map(_condition, status.get("conditions", ()))),
        adopted=_adopted(report) if report is not None else None,
        notes=tuple(notes),
    )


def _condition(found: Mapping[str, Any]) -> ConditionView:
    return ConditionView(**{key: str(found.get(key, "")) for key in ("type", "status", "reason", "message")})


def _adopted(report: HostReport) -> Adopted:
    return Adopted(
        epoch=report.epoch,
        parallelism=report.parallelism,
        owners=report.owners,
        positions={split: at for split, at in report.positions.items() if type(at) is int},
        heartbeat=report.heartbeat,
    )
