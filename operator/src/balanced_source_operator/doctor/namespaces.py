"""Checks that a namespace is served where operators select namespaces by labels."""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from balanced_source_operator.doctor.finding import ClusterApi, Diagnosis, Fault, error, unknown
from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.resources.kinds import NAMESPACE


class Installation(NamedTuple):
    """An operator's Deployment, as far as it says who serves what.

    Attributes:
        name: namespace and name of the Deployment.
        account: namespace and name of its service account.
        selector: labels of the namespaces that it serves; empty if labels do not matter.
    """

    name: str
    account: tuple[str, str]
    selector: str = ""


async def serving(
    api: ClusterApi, operators: Sequence[Installation], namespace: str
) -> tuple[list[Installation], list[Diagnosis]]:
    """Return the operators whose selector matches a namespace, and what is wrong with them.

    An operator without a selector counts as one that serves the namespace.
    """
    check = f"operator of namespace {namespace}"
    try:
        found = [one for one in operators if await _matches(api, one.selector, namespace)]
    except KubernetesError as refusal:
        return list(operators), [unknown(check, f"its labels may not be looked up: {refusal}")]
    if found or not operators:
        return found, []
    selectors = ", ".join(f"{one.selector} ({one.name})" for one in operators)
    message = f"no operator serves namespace {namespace}: its labels do not match {selectors}"
    remedy = (
        f"Run: kubectl label namespace {namespace} KEY=VALUE with a label that one of them selects,"
        " or change watchNamespaceSelector of a release."
    )
    return [], [error(check, Fault.NAMESPACE_NOT_SERVED, message, remedy)]


async def _matches(api: ClusterApi, selector: str, namespace: str) -> bool:
    """Let the API server match, as it does for the operator."""
    if not selector:
        return True
    query = {"labelSelector": selector, "fieldSelector": f"metadata.name={namespace}"}
    found = await api.ask("GET", f"{NAMESPACE.collection('')}?{urlencode(query)}")
    return bool(found.get("items"))
