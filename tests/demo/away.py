"""Keeps one host of a source away: the API server refuses its objects, as it does for a quota."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any, Final

from balanced_source_operator.resources.kinds import (
    DRAIN_ANNOTATION,
    HOST_LABEL,
    KUBEFLOW_APPLICATION,
)
from testbed.errors import CommandError
from testbed.kubectl import Kubectl
from testbed.waiting import wait_until

_GROUP: Final = "admissionregistration.k8s.io"
_POD: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {"containers": [{"name": "probe", "image": "probe"}]},
}


@contextlib.contextmanager
def without_pods(kubectl: Kubectl, host: str) -> Iterator[None]:
    """Refuse pods of a host: neither a driver nor an executor of it starts."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    with _refused(kubectl, rule, _is_of(host), _POD, host):
        yield


@contextlib.contextmanager
def without_applications(kubectl: Kubectl, host: str) -> Iterator[None]:
    """Refuse SparkApplications of a host, except drain attempts."""
    kind = KUBEFLOW_APPLICATION
    rule = {"apiGroups": [kind.group], "apiVersions": ["*"], "resources": [kind.plural]}
    notes = f"object.metadata.?annotations[?'{DRAIN_ANNOTATION}'].orValue('')"
    probe = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": _APPLICATION}
    with _refused(kubectl, rule, f"{_is_of(host)} && {notes} != 'true'", probe, host):
        yield


_APPLICATION: Final = {
    "type": "Python",
    "sparkVersion": "4.2.0",
    "mainApplicationFile": "local:///probe",
    "driver": {},
    "executor": {},
}


def _is_of(host: str) -> str:
    return f"object.metadata.?labels[?'{HOST_LABEL}'].orValue('') == '{host}'"


@contextlib.contextmanager
def _refused(
    kubectl: Kubectl, rule: dict[str, Any], expression: str, probe: dict[str, Any], host: str
) -> Iterator[None]:
    """Refuse new objects for which a CEL expression holds.

    A probe tells when the API server does and when it ends.
    """
    name = f"no-{rule['resources'][0]}"
    metadata = {"name": name, "namespace": "default", "labels": {HOST_LABEL: host}}
    manifest = json.dumps({**probe, "metadata": metadata})

    def is_refused() -> bool:
        try:
            kubectl.kubectl("create", "--dry-run=server", "-f", "-", stdin=manifest)
        except CommandError as error:
            if "no room" not in error.stderr:
                raise
            return True
        return False

    for each in _policy(
        name, {**rule, "operations": ["CREATE"]}, expression, f"no room for host {host}"
    ):
        kubectl.apply(each)
    try:
        wait_until(is_refused, 60, "the API server to refuse", interval=0.5)
        yield
    finally:
        kinds = f"validatingadmissionpolicybindings.{_GROUP},validatingadmissionpolicies.{_GROUP}"
        kubectl.kubectl("delete", kinds, name)
        wait_until(lambda: not is_refused(), 60, "the API server to accept again", interval=0.5)


def _policy(
    name: str, rule: dict[str, Any], expression: str, message: str
) -> Iterator[dict[str, Any]]:
    head = {"apiVersion": f"{_GROUP}/v1", "metadata": {"name": name}}
    yield {
        **head,
        "kind": "ValidatingAdmissionPolicy",
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": f"!({expression})", "message": message}],
        },
    }
    yield {
        **head,
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
