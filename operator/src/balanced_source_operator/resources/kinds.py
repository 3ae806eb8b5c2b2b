"""Kinds of objects that the operator deals with, and names that bind them together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from balanced_source.names import checked_label, checked_object
from balanced_source_operator.spec import GROUP, KIND, PLURAL, VERSION

NAME_LABEL: Final = f"{GROUP}/name"
"""On every child and on the pods: name of the BalancedSource."""

UID_LABEL: Final = f"{GROUP}/uid"
"""On every child: uid of the BalancedSource. It stays when the owner reference is removed."""

FORMER_UID_ANNOTATION: Final = f"{GROUP}/former-uid"
"""On a BalancedSource that was restored from a backup: the uid under which its objects were made.
"""

PAUSED_ANNOTATION: Final = f"{GROUP}/paused"
"""On a BalancedSource: "true" keeps changes of its spec, except `suspend`, from taking effect."""

COMPONENT_LABEL: Final = f"{GROUP}/component"
"""On the operator's Deployment and pods: `operator`, whatever the chart's names are."""

HOST_LABEL: Final = f"{GROUP}/host"
"""On the objects and pods of further hosts of a source: name of the host.

The first host's have none.
"""

MANAGED_LABEL: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "balanced-source-operator"
"""Label and value that limit what the operator watches."""

HASH_ANNOTATION: Final = f"{GROUP}/spec-hash"
"""Hash of the settings that a SparkApplication was made from.

The live spec is no base for that: others default it.
"""

SETTINGS_ANNOTATION: Final = f"{GROUP}/settings"
"""On a SparkApplication: the settings that it was made from, as far as they may be shown; see
`made_from`."""

NONCE_ANNOTATION: Final = f"{GROUP}/restart-nonce"
"""On a SparkApplication: `spec.application.restart.nonce` when it was made."""

INCARNATION_ANNOTATION: Final = f"{GROUP}/incarnation"
"""On a SparkApplication: newest incarnation of its host when it was made.

Its own drivers have higher ones.
"""

DRAIN_ANNOTATION: Final = f"{GROUP}/drain"
"""On a SparkApplication that only settles what a lost host has delivered; it gets no splits."""

DRAIN_SETTINGS_ANNOTATION: Final = f"{GROUP}/drain-settings"
FORMER_SETTINGS: Final = "former"
"""On a drain attempt that has the settings of the lost application, whatever is in effect now."""

FAILURES_ANNOTATION: Final = f"{GROUP}/failures"
"""On a SparkApplication: how many times in a row those before it have failed."""

SECRETS_ANNOTATION: Final = f"{GROUP}/secrets"
"""Names of the Secrets that a SparkApplication's pods mount, with commas.

Pods cannot mount another one later.
"""


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """A kind by its full name, because both Spark operators call theirs SparkApplication."""

    group: str
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """As in manifests."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """Returns the path of an object, or of the collection, in the API.

        Raises:
            InvalidSpecError: a name would lead out of the path.
        """
        checked_label(namespace, field="namespace")
        if name:
            checked_object(name, field=f"name of a {self.kind}")
        parts = (self._root, "namespaces", namespace, self.plural, name, subresource)
        return "/".join(part for part in parts if part)

    def collection(self, namespace: str) -> str:
        """Returns the path of all objects of a namespace, or of all namespaces if it is empty.

        Raises:
            InvalidSpecError: the namespace would lead out of the path.
        """
        return self.path(namespace) if namespace else f"{self._root}/{self.plural}"

    @property
    def _root(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


BALANCED_SOURCE: Final = ResourceKind(GROUP, VERSION, PLURAL, KIND)
CONFIG_MAP: Final = ResourceKind("", "v1", "configmaps", "ConfigMap")
POD: Final = ResourceKind("", "v1", "pods", "Pod")
POD_TEMPLATE: Final = ResourceKind("", "v1", "podtemplates", "PodTemplate")
SECRET: Final = ResourceKind("", "v1", "secrets", "Secret")
SERVICE_ACCOUNT: Final = ResourceKind("", "v1", "serviceaccounts", "ServiceAccount")
NAMESPACE: Final = ResourceKind("", "v1", "namespaces", "Namespace")
EVENT: Final = ResourceKind("", "v1", "events", "Event")
LEASE: Final = ResourceKind("coordination.k8s.io", "v1", "leases", "Lease")
ROLE: Final = ResourceKind("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDING: Final = ResourceKind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
KUBEFLOW_APPLICATION: Final = ResourceKind(
    "sparkoperator.k8s.io", "v1beta2", "sparkapplications", "SparkApplication"
)
APACHE_APPLICATION: Final = ResourceKind(
    "spark.apache.org", "v1", "sparkapplications", "SparkApplication"
)

LEASE_NAME: Final = "balanced-source-operator"
"""Of the Lease by which replicas of the operator elect the one that serves."""

CHILDREN: Final = (CONFIG_MAP, POD, KUBEFLOW_APPLICATION, APACHE_APPLICATION, ROLE, ROLE_BINDING)
"""Kinds of a source's objects that are watched; they carry the label with the source's name."""

APPLICATION_NAME_LABELS: Final = ("sparkoperator.k8s.io/app-name", "spark.operator/spark-app-name")
"""On the pods of an application: its name, by Kubeflow's operator and by Apache's."""


def application_name(pod: Mapping[str, Any]) -> str:
    """Return the name of the SparkApplication that a pod belongs to; empty if it does not say."""
    labels = pod["metadata"].get("labels") or {}
    return next((str(labels[label]) for label in APPLICATION_NAME_LABELS if label in labels), "")


def host_of_pod(pod: Mapping[str, Any]) -> str:
    """Return the host of a source that a pod says it belongs to; empty for the first one."""
    return str((pod["metadata"].get("labels") or {}).get(HOST_LABEL, ""))
