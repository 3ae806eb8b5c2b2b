"""All checks, in the order in which faults hide each other."""

from collections.abc import AsyncIterator
from typing import Final

from balanced_source_operator.doctor.cluster import (
    check_crd,
    check_rights,
    check_spark_operators,
    installed_operators,
)
from balanced_source_operator.doctor.finding import (
    ClusterApi,
    Diagnosis,
    Fault,
    Level,
    error,
    repeats,
    unknown,
)
from balanced_source_operator.doctor.namespaces import Installation, serving
from balanced_source_operator.doctor.outside import check_discovery
from balanced_source_operator.doctor.pods import check_pods
from balanced_source_operator.doctor.sources import (
    Patient,
    check_application,
    check_conditions,
    check_operator,
    check_references,
    understood,
)
from balanced_source_operator.kube.port import KubernetesError, RefusedError
from balanced_source_operator.resources.kinds import BALANCED_SOURCE

_FORBIDDEN: Final = 403


async def examine(
    api: ClusterApi, namespace: str, name: str = "", *, account: tuple[str, str] | None = None
) -> AsyncIterator[Diagnosis]:
    """Yield the result of each check.

    Args:
        api: the cluster.
        namespace: of the sources.
        name: of one source; all of the namespace if empty.
        account: namespace and name of the operator's service account; None looks for its
            Deployment.
    """
    try:
        await api.ask("GET", "/version")
    except KubernetesError as failure:
        remedy = (
            "Check the kubeconfig (kubectl version), the network, and whether you are logged in."
        )
        yield error("cluster", Fault.API_SERVER_UNREACHABLE, str(failure), remedy)
        return
    crd = await check_crd(api)
    yield crd
    yield await check_spark_operators(api)
    async for diagnosis in _operators(api, namespace, account):
        yield diagnosis
    # Without the CRD every check of a source would fail for this one reason.
    if crd.fault != Fault.CRD_MISSING:
        async for diagnosis in _sources(api, namespace, name):
            yield diagnosis


async def _operators(
    api: ClusterApi, namespace: str, account: tuple[str, str] | None
) -> AsyncIterator[Diagnosis]:
    """Yield what is wrong with operators, and with the rights of those that serve a namespace."""
    if account is not None:
        operators, diagnoses = [Installation("/".join(account), account)], list[Diagnosis]()
    else:
        operators, diagnoses = await installed_operators(api)
    operators, faults = await serving(api, operators, namespace)
    for diagnosis in (*diagnoses, *faults):
        yield diagnosis
    for operator in operators:
        async for diagnosis in check_rights(api, operator, namespace):
            yield diagnosis


async def _sources(api: ClusterApi, namespace: str, name: str) -> AsyncIterator[Diagnosis]:
    try:
        found = await api.list(BALANCED_SOURCE, namespace, selector="")
    except KubernetesError as refusal:
        if not (isinstance(refusal, RefusedError) and refusal.status == _FORBIDDEN):
            yield unknown("sources", f"sources of {namespace} cannot be listed now: {refusal}")
            return
        remedy = "Ask for the ClusterRole view in this namespace."
        yield error(
            "sources",
            Fault.RIGHT_MISSING,
            f"sources of {namespace} may not be listed: {refusal}",
            remedy,
        )
        return
    chosen = [body for body in found if not name or body["metadata"]["name"] == name]
    if name and not chosen:
        there = ", ".join(sorted(body["metadata"]["name"] for body in found)) or "none"
        message = f"there is no BalancedSource {name} in namespace {namespace} (there: {there})"
        yield error(
            "sources",
            Fault.SOURCE_MISSING,
            message,
            "Correct the name, or choose the namespace with -n.",
        )
    for body in chosen:
        patient = Patient(namespace=namespace, name=str(body["metadata"]["name"]), body=body)
        async for diagnosis in examine_source(api, patient):
            yield diagnosis


async def examine_source(api: ClusterApi, patient: Patient) -> AsyncIterator[Diagnosis]:
    """Yield the result of each check of one source; what a condition says is not said twice."""
    yield check_operator(patient)
    if patient.is_suspended:
        message = "it is suspended, so nothing is read until spec.suspend is false or removed"
        yield Diagnosis(check=f"{patient.label}: suspend", message=message)
    conditions = list(check_conditions(patient))
    for diagnosis in conditions:
        yield diagnosis
    async for diagnosis in _looked_at(api, patient):
        if not repeats(diagnosis, conditions):
            yield diagnosis


async def _looked_at(api: ClusterApi, patient: Patient) -> AsyncIterator[Diagnosis]:
    """Yield the result of each check that asks the cluster or what the source reads from."""
    async for diagnosis in check_application(api, patient):
        yield diagnosis
    if not patient.is_suspended:
        async for diagnosis in check_pods(api, patient):
            yield diagnosis
    answer = await understood(api, patient)
    if isinstance(answer, Diagnosis):
        yield answer
        return
    spec, source = answer
    async for diagnosis in check_references(api, patient, spec, source):
        yield diagnosis
    async for diagnosis in check_discovery(
        api, patient.namespace, patient.label, source, is_read=patient.is_read
    ):
        yield diagnosis


def is_healthy(diagnoses: list[Diagnosis]) -> bool:
    """Return whether no check found a fault."""
    return all(diagnosis.level is not Level.ERROR for diagnosis in diagnoses)
