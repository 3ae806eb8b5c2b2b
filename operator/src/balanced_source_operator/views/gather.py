"""Reads views: of a cluster through its API server, or of local mode's folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport, records_behind, seconds_behind
from balanced_source.documents.storage import FIRST_HOST, Names
from balanced_source.errors import StateError
from balanced_source_adapters.folder import assignment_path, read_text, report_path
from balanced_source_operator.kube.port import KubernetesApi, Manifest, named
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, CONFIG_MAP
from balanced_source_operator.runtime.documents import read_content
from balanced_source_operator.views.model import Adopted, ConditionView, HostView, SourceView


async def of_cluster(api: KubernetesApi, namespace: str, name: str = "") -> list[SourceView]:
    """Return the sources of a namespace, or the one of that name, sorted by name.

    Raises:
        KubernetesError: the API server refused, or does not answer.
        StateError: there is no source of that name.
    """
    if name:
        return [await _of_body(api, namespace, await named(api, BALANCED_SOURCE, namespace, name))]
    bodies = await api.list(BALANCED_SOURCE, namespace, selector="")
    return [await _of_body(api, namespace, body) for body in sorted(bodies, key=_name)]


def _name(body: Manifest) -> str:
    return str(body["metadata"]["name"])


async def _of_body(api: KubernetesApi, namespace: str, body: Manifest) -> SourceView:
    names, notes = Names.of(_name(body)), list[str]()
    assignment = await _document(api, namespace, names.assignment, notes)
    status = body.get("status") or {}
    reports = [await _report(api, body, host, notes) for host in _hosts_in(status)]
    notes += _unhandled(body)
    return view_of(
        namespace=namespace,
        name=_name(body),
        desired=body.get("spec", {}).get("parallelism"),
        status=status,
        assignment=_decoded(assignment, assignment_document.decode, names.assignment, notes),
        reports=[report for report in reports if report is not None],
        notes=notes,
    )


def _unhandled(body: Manifest) -> list[str]:
    """Say that no operator has taken up the newest spec: what the status says is the past."""
    generation = int(body["metadata"].get("generation", 0))
    if int((body.get("status") or {}).get("observedGeneration", 0)) >= generation:
        return []
    note = (
        f"no operator has handled generation {generation} of the spec yet, so this is an earlier"
        f" state. If it stays so, run: balanced-source doctor {_name(body)}"
    )
    return [note]


def _hosts_in(status: Mapping[str, Any]) -> list[str]:
    return [str(host.get("name", "")) for host in status.get("hosts", ())] or [FIRST_HOST]


async def _report(
    api: KubernetesApi, body: Manifest, host: str, notes: list[str]
) -> HostReport | None:
    name = Identity.of(body).on_host(host).documents.readers
    text = await _document(api, body["metadata"]["namespace"], name, notes)
    report: HostReport | None = _decoded(text, report_document.decode, name, notes)
    return report


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
    assignment, report = (
        read_text(assignment_path(folder)),
        read_text(report_path(folder, FIRST_HOST)),
    )
    decoded = _decoded(report, report_document.decode, "report", notes)
    return view_of(
        namespace="",
        name=name,
        desired=desired,
        status={},
        assignment=_decoded(assignment, assignment_document.decode, "assignment", notes),
        reports=[decoded] if decoded is not None else [],
        notes=notes,
    )


def view_of(
    *,
    namespace: str,
    name: str,
    desired: int | None,
    status: Mapping[str, Any],
    assignment: Assignment | None,
    reports: Sequence[HostReport],
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
        lag=status.get("lag") if status else records_behind(reports),
        behind=status.get("secondsBehind") if status else seconds_behind(reports),
        application=application.get("state", ""),
        conditions=tuple(map(_condition, status.get("conditions", ()))),
        adopted=_adopted(reports) if reports else None,
        hosts=tuple(map(_host, status.get("hosts", ()))),
        notes=tuple(notes),
    )


def _condition(found: Mapping[str, Any]) -> ConditionView:
    return ConditionView(
        **{key: str(found.get(key, "")) for key in ("type", "status", "reason", "message")}
    )


def _host(found: Mapping[str, Any]) -> HostView:
    return HostView(
        name=str(found.get("name", "")),
        role=str(found.get("role", "")),
        application=str(found.get("application", "")),
        state=str(found.get("state", "")),
        readers=int(found.get("readers", 0)),
        splits=int(found.get("splits", 0)),
        lag=found.get("lag"),
        epoch=int(found.get("acknowledgedEpoch", 0)),
    )


def _adopted(reports: Sequence[HostReport]) -> Adopted:
    """What all hosts have adopted.

    The oldest epoch among them, and the readers of the newest one.
    """
    newest = max(reports, key=lambda report: report.epoch)
    positions = {
        s: at for report in reports for s, at in report.positions.items() if type(at) is int
    }
    return Adopted(
        epoch=min(report.epoch for report in reports),
        parallelism=newest.parallelism,
        owners={s: owner for report in reports for s, owner in report.owners.items()},
        positions=positions,
        heartbeat=min(report.heartbeat for report in reports),
    )
