"""The rights that the operator needs, and which of them its service account lacks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubernetes_asyncio.client import ApiClient

from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.kube.reviews import SELF_ACCESS, post_review
from balanced_source_operator.resources.kinds import (
    APACHE_APPLICATION,
    BALANCED_SOURCE,
    CONFIG_MAP,
    EVENT,
    KUBEFLOW_APPLICATION,
    LEASE,
    LEASE_NAME,
    NAMESPACE,
    POD,
    POD_TEMPLATE,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    ResourceKind,
)

NEEDED: Final[tuple[tuple[ResourceKind, str, tuple[str, ...]], ...]] = (
    (BALANCED_SOURCE, "", ("get", "list", "watch")),
    (BALANCED_SOURCE, "scale", ("patch",)),
    (BALANCED_SOURCE, "status", ("patch",)),
    (BALANCED_SOURCE, "finalizers", ("update",)),
    (CONFIG_MAP, "", ("get", "list", "watch", "create", "update", "patch")),
    (KUBEFLOW_APPLICATION, "", ("get", "list", "watch", "create", "delete")),
    (APACHE_APPLICATION, "", ("get", "list", "watch", "create", "delete")),
    (POD, "", ("list", "watch")),
    (POD_TEMPLATE, "", ("create",)),
    (SECRET, "", ("get",)),
    (SERVICE_ACCOUNT, "", ("get",)),
    (ROLE, "", ("get", "list", "watch", "create", "patch")),
    (ROLE_BINDING, "", ("get", "list", "watch", "create", "patch")),
    (EVENT, "", ("create",)),
)
"""Kind, subresource and verbs: the rules of the Helm chart, in its order."""

NEEDED_TO_SELECT: Final = ("list", "watch")
"""Verbs on namespaces, of the whole cluster: an operator that selects them by labels needs them."""

NEEDED_TO_LEAD: Final = (("create", ""), ("get", LEASE_NAME), ("update", LEASE_NAME))
"""Verbs on Leases, with the name that each is limited to: a right to create cannot be limited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """One verb on one resource; an empty namespace or name means all of them."""

    verb: str
    kind: ResourceKind
    subresource: str
    namespace: str
    name: str = ""

    def __str__(self) -> str:
        parts = (self.kind.plural, self.subresource, self.name)
        resource = "/".join(part for part in parts if part)
        where = f"namespace {self.namespace}" if self.namespace else "all namespaces"
        if self.kind == NAMESPACE:
            where = "the cluster"
        return f"{self.verb} {resource} in {where}"

    @property
    def attributes(self) -> dict[str, str]:
        """The right as reviews name it."""
        return {
            "namespace": self.namespace,
            "verb": self.verb,
            "group": self.kind.group,
            "resource": self.kind.plural,
            "subresource": self.subresource,
            "name": self.name,
        }

    def review(self) -> dict[str, Any]:
        """Return the question for the API server."""
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": self.attributes},
        }


def needed(
    namespaces: Sequence[str], *, selector: str = "", lease_namespace: str = ""
) -> Iterator[Right]:
    """Yield all rights that serving these namespaces needs.

    Args:
        namespaces: none given means all of them.
        selector: labels of the namespaces that are served; empty if labels do not matter.
        lease_namespace: of the Lease by which replicas elect a leader; empty without election.
    """
    # First: without the Lease nothing is served at all.
    for verb, name in NEEDED_TO_LEAD if lease_namespace else ():
        yield Right(verb=verb, kind=LEASE, subresource="", namespace=lease_namespace, name=name)
    for verb in NEEDED_TO_SELECT if selector else ():
        yield Right(verb=verb, kind=NAMESPACE, subresource="", namespace="")
    for namespace in namespaces or ("",):
        for kind, subresource, verbs in NEEDED:
            for verb in verbs:
                yield Right(verb=verb, kind=kind, subresource=subresource, namespace=namespace)


class RightsCheck:
    """Looks at the rights of the service account, see `needed`. For one task."""

    def __init__(
        self,
        client: ApiClient,
        namespaces: Sequence[str],
        *,
        selector: str = "",
        lease_namespace: str = "",
    ) -> None:
        self._client = client
        self._rights = tuple(needed(namespaces, selector=selector, lease_namespace=lease_namespace))
        self._missing: tuple[Right, ...] = ()

    async def missing(self) -> list[str]:
        """Return the rights that are missing, in words.

        While some are, only those are asked for: with many namespaces all of them are thousands of
        requests, and this is repeated every few seconds then. Once they are granted, all are asked
        for again.

        Raises:
            KubernetesError: the API server does not answer, or refuses the question.
        """
        if self._missing:
            self._missing = await self._refused(self._missing)
        if not self._missing:
            self._missing = await self._refused(self._rights)
        return list(map(str, self._missing))

    async def _refused(self, rights: Sequence[Right]) -> tuple[Right, ...]:
        return tuple([right for right in rights if not await _is_granted(self._client, right)])


async def _is_granted(client: ApiClient, right: Right) -> bool:
    question = f"whether the operator may {right}"
    status = await post_review(client, SELF_ACCESS, right.review(), question)
    if "allowed" not in status:
        raise KubernetesError(f"the API server does not say {question}")
    return bool(status["allowed"])
