"""Checks what the cluster must have: the CRD, a Spark operator, our operator, rights."""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from balanced_source.names import first_of, separated
from balanced_source_operator.doctor.finding import ClusterApi, Diagnosis, Fault, error, unknown
from balanced_source_operator.doctor.namespaces import Installation
from balanced_source_operator.kube.port import KubernetesError, Manifest, RefusedError
from balanced_source_operator.kube.rights import Right, needed
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    COMPONENT_LABEL,
    LEASE,
    ResourceKind,
)
from balanced_source_operator.resources.providers import SPARK_OPERATORS
from balanced_source_operator.settings import PREFIX
from balanced_source_operator.spec.crd import custom_resource_definition

_NOT_FOUND: Final = 404
_SHOWN: Final = 5
_INSTALL: Final = (
    "Install or upgrade the Helm chart; or run: balanced-source crd | kubectl apply --server-side"
    " -f -"
)
_INSTALL_SPARK: Final = (
    "Install Kubeflow's or Apache's Spark operator, and let it watch the namespaces of your"
    " sources."
)
SELECTOR_VARIABLE: Final = f"{PREFIX}NAMESPACE_SELECTOR"
NAMESPACES_VARIABLE: Final = f"{PREFIX}NAMESPACES"
LEASE_VARIABLE: Final = f"{PREFIX}LEASE_NAMESPACE"
OPERATOR_SELECTOR: Final = f"{COMPONENT_LABEL}=operator"
"""Label selector of the operator's Deployment and pods."""

_FORMER_SELECTOR: Final = "app.kubernetes.io/name=balanced-source"
"""The same for charts up to 0.1.0, whose label follows `nameOverride`."""


async def of_operators(api: ClusterApi, collection: str) -> list[Manifest]:
    """Return the objects of a collection that belong to operators, in all namespaces.

    Args:
        api: the API server.
        collection: path of the collection.

    Raises:
        KubernetesError: they may not be listed, or the API server does not answer.
    """
    found: list[Manifest] = []
    for selector in (OPERATOR_SELECTOR, _FORMER_SELECTOR):
        query = urlencode({"labelSelector": selector})
        found = found or list((await api.ask("GET", f"{collection}?{query}")).get("items", ()))
    return found


async def check_crd(api: ClusterApi) -> Diagnosis:
    """Check that the CRD is installed, and knows every field of this version."""
    name = f"{BALANCED_SOURCE.plural}.{BALANCED_SOURCE.group}"
    try:
        found = await api.ask(
            "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        )
    except RefusedError as refusal:
        if refusal.status == _NOT_FOUND:
            return error("CRD", Fault.CRD_MISSING, f"the CRD {name} is not installed", _INSTALL)
        return unknown("CRD", f"the CRD {name} may not be read: {refusal}")
    missing = list(_missing_fields(_schema(custom_resource_definition()), _schema(found), ""))
    if missing:
        shown = first_of(missing, _SHOWN)
        message = (
            f"the CRD {name} is older than this program: it lacks {shown}, and the API server drops"
            " these fields"
        )
        return error("CRD", Fault.CRD_OUTDATED, message, _INSTALL)
    return Diagnosis(check="CRD")


def _schema(crd: Mapping[str, Any], *, version: str = BALANCED_SOURCE.version) -> Mapping[str, Any]:
    for listed in crd["spec"]["versions"]:
        if listed["name"] == version:
            found: Mapping[str, Any] = listed["schema"]["openAPIV3Schema"]
            return found
    return {}


def _missing_fields(ours: Mapping[str, Any], theirs: Mapping[str, Any], at: str) -> Iterator[str]:
    """Yield the topmost fields that the installed schema lacks."""
    installed = theirs.get("properties", {})
    for name, field in ours.get("properties", {}).items():
        path = f"{at}.{name}".lstrip(".")
        if name not in installed:
            yield path
        else:
            yield from _missing_fields(field, installed[name], path)
    for below in ("items", "additionalProperties"):
        if isinstance(ours.get(below), Mapping) and isinstance(theirs.get(below), Mapping):
            yield from _missing_fields(ours[below], theirs[below], at)


async def check_spark_operators(api: ClusterApi) -> Diagnosis:
    """Check that the kind of a Spark operator is known.

    One of the two is enough. Whether it is the one that a source asks for is a check of the source.
    """
    check = "Spark operator"
    for operator in SPARK_OPERATORS.values():
        try:
            await api.ask("GET", f"/apis/{operator.kind.group}/{operator.kind.version}")
        except RefusedError as refusal:
            if refusal.status != _NOT_FOUND:
                return unknown(check, str(refusal))
        else:
            return await _has_templates(api, operator.kind, check)
    kinds = " nor ".join(f"{one.kind.plural}.{one.kind.group}" for one in SPARK_OPERATORS.values())
    message = f"neither the kind {kinds} exists"
    return error(check, Fault.SPARK_OPERATOR_MISSING, message, _INSTALL_SPARK)


async def _has_templates(api: ClusterApi, kind: ResourceKind, check: str) -> Diagnosis:
    """Check that the kind has templates of pods: the API server drops fields that it lacks.

    A driver without its template has neither its environment nor its Secrets.
    """
    name = f"{kind.plural}.{kind.group}"
    try:
        found = await api.ask(
            "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        )
    except KubernetesError:
        return Diagnosis(check=check)  # not everyone may read definitions
    spec = _schema(found, version=kind.version).get("properties", {}).get("spec", {})
    driver = spec.get("properties", {}).get("driver", {}).get("properties")
    if driver is None or "template" in driver:
        return Diagnosis(check=check)
    message = f"the CRD {name} has no spec.driver.template, in which a driver gets its environment"
    remedy = "Upgrade Kubeflow's Spark operator to 2.1 or newer, with its CRDs."
    return error(check, Fault.SPARK_OPERATOR_OUTDATED, message, remedy)


async def installed_operators(
    api: ClusterApi,
) -> tuple[list[Installation], list[Diagnosis]]:
    """Return each visible operator, and what is wrong with them."""
    try:
        found = await of_operators(api, "/apis/apps/v1/deployments")
    except KubernetesError as refusal:
        return [], [unknown("operator", f"its Deployment may not be listed: {refusal}")]
    if not found:
        message = (
            f"no Deployment has the label {OPERATOR_SELECTOR}: the operator is not installed, or"
            " without the chart. Its rights are not checked"
        )
        return [], [unknown("operator", message)]
    operators, diagnoses = [], []
    for deployment in found:
        metadata = deployment["metadata"]
        name = f"{metadata['namespace']}/{metadata['name']}"
        pod = deployment["spec"]["template"]["spec"]
        account = metadata["namespace"], pod.get("serviceAccountName", "default")
        selector = _variable(pod, SELECTOR_VARIABLE)
        names = separated(_variable(pod, NAMESPACES_VARIABLE))
        lease = _lease_namespace(pod, metadata["namespace"])
        operators.append(Installation(name, account, selector, names, lease))
        diagnoses.append(_availability(name, deployment.get("status") or {}))
    return operators, diagnoses


def _variable(pod: Mapping[str, Any], name: str) -> str:
    return str(_entry(pod, name).get("value", ""))


def _lease_namespace(pod: Mapping[str, Any], namespace: str) -> str:
    """Return the namespace of the Lease, which the chart takes from the pod; empty without one."""
    is_own = bool(_entry(pod, LEASE_VARIABLE).get("valueFrom"))
    return namespace if is_own else _variable(pod, LEASE_VARIABLE)


def _entry(pod: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    variables = (entry for one in pod.get("containers", ()) for entry in one.get("env", ()))
    return next((one for one in variables if one["name"] == name), {})


def _availability(name: str, status: Mapping[str, Any]) -> Diagnosis:
    check = f"operator {name}"
    if status.get("availableReplicas", 0) > 0:
        return Diagnosis(check=check)
    namespace = name.partition("/")[0]
    remedy = f"Run: kubectl -n {namespace} describe pods -l {OPERATOR_SELECTOR}"
    return error(
        check, Fault.OPERATOR_UNAVAILABLE, f"no pod of Deployment {name} is available", remedy
    )


async def check_rights(
    api: ClusterApi, operator: Installation, namespace: str
) -> AsyncIterator[Diagnosis]:
    """Yield the rights that the operator's service account lacks in a namespace."""
    user = f"system:serviceaccount:{operator.account[0]}:{operator.account[1]}"
    check = f"rights of {user} in {namespace}"
    lacking: dict[str, list[str]] = {}
    try:
        for right in needed(
            [namespace], selector=operator.selector, lease_namespace=operator.lease_namespace
        ):
            if not await _may(api, user, **right.attributes):
                lacking.setdefault(_resource(right, namespace), []).append(right.verb)
    except KubernetesError as refusal:
        yield unknown(check, f"they may not be looked up: {refusal}")
        return
    if lacking:
        each = "; ".join(f"{', '.join(verbs)} {what}" for what, verbs in lacking.items())
        message = f"{user} may not do this in namespace {namespace}: {each}"
        remedy = "Install the roles of the Helm chart (rbac.create)."
        yield error(check, Fault.RIGHT_MISSING, message, remedy)
    else:
        yield Diagnosis(check=check)


def _resource(right: Right, namespace: str) -> str:
    """Return what a right is about, in words; elsewhere than in the namespace, also where."""
    resource = "/".join(filter(None, [right.kind.plural, right.subresource]))
    group = f".{right.kind.group}" if right.kind.group else ""
    name = f" {right.name}" if right.name else ""
    is_elsewhere = right.kind == LEASE and right.namespace != namespace
    return f"{resource}{group}{name}" + (f" in {right.namespace}" if is_elsewhere else "")


async def _may(api: ClusterApi, user: str, **attributes: str) -> bool:
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        # The API server adds groups to real requests only: a review names them, or misses their
        # rights.
        "spec": {"user": user, "groups": _groups(user), "resourceAttributes": attributes},
    }
    answer = await api.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body=body)
    return bool(answer["status"]["allowed"])


def _groups(user: str) -> list[str]:
    return [
        "system:serviceaccounts",
        f"system:serviceaccounts:{user.split(':')[2]}",
        "system:authenticated",
    ]
