"""Checks that a namespace is served where operators serve only some, by their names or labels."""

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
        namespaces: names of those that it serves; empty if names do not matter.
        lease_namespace: of the Lease by which its replicas elect a leader; empty without election.
    """

    name: str
    account: tuple[str, str]
    selector: str = ""
    namespaces: tuple[str, ...] = ()
    lease_namespace: str = ""

    @property
    def served(self) -> str:
        """What it serves, in words."""
        if self.selector:
            return f"namespaces with the labels {self.selector}"
        return f"the namespaces {', '.join(self.namespaces)}" if self.namespaces else "all"


async def serving(
    api: ClusterApi, operators: Sequence[Installation], namespace: str
) -> tuple[list[Installation], list[Diagnosis]]:
    """Return the operators that serve a namespace, and what is wrong if none does."""
    check = f"operator of namespace {namespace}"
    try:
        found = [one for one in operators if await _serves(api, one, namespace)]
    except KubernetesError as refusal:
        return list(operators), [unknown(check, f"its labels may not be looked up: {refusal}")]
    if found or not operators:
        return found, []
    each = "; ".join(f"{one.name} serves {one.served}" for one in operators)
    message = f"no operator serves namespace {namespace}: {each}"
    remedy = f"Add {namespace} to watchNamespaces of a release."
    if any(one.selector for one in operators):
        remedy = (
            f"Run: kubectl label namespace {namespace} KEY=VALUE with a label that one of them"
            " selects, or change watchNamespaceSelector or watchNamespaces of a release."
        )
    return [], [error(check, Fault.NAMESPACE_NOT_SERVED, message, remedy)]


async def _serves(api: ClusterApi, operator: Installation, namespace: str) -> bool:
    if not operator.selector:
        return not operator.namespaces or namespace in operator.namespaces
    # The API server matches, as it does for the operator.
    query = {"labelSelector": operator.selector, "fieldSelector": f"metadata.name={namespace}"}
    found = await api.ask("GET", f"{NAMESPACE.collection('')}?{urlencode(query)}")
    return bool(found.get("items"))
