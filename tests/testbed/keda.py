"""KEDA out of cluster: its operator, its metrics server and its admission webhooks.

They have the rights that KEDA's own manifests grant, so what KEDA is refused here it is refused in
a cluster too. Few of its scalers are built; see `keda_sources`.
"""

import base64
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from testbed import builds, pki
from testbed.control_plane import ControlPlane
from testbed.ports import LOOPBACK, PortPool
from testbed.processes import Child
from testbed.started import Started
from testbed.waiting import wait_until
from testbed.web import answers

API: Final = "v1beta1.external.metrics.k8s.io"
_NAMESPACE: Final = "keda"
_ACCOUNT: Final = "keda-operator"
_ROLES: Final = (
    "service_account/service_account.yaml",
    "rbac/role.yaml",
    "rbac/role_binding.yaml",
    "metrics-server/role.yaml",
    "metrics-server/role_binding.yaml",
)
_START_TIMEOUT: Final = 120.0


class Keda(Started):
    """All of KEDA; a context manager.

    Args:
        control_plane: where it works; it must have started.
        ports: where free ports come from.
        builder: where the programs come from.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        *,
        ports: PortPool,
        builder: builds.Builder | None = None,
    ) -> None:
        self._plane, self._ports = control_plane, ports
        self._builder = builder or builds.Builder()
        self._folder = control_plane.run_dir / "keda"
        self._certificates = self._folder / "certificates"
        self._children: list[Child] = []

    def start(self) -> None:
        """Apply its manifests, start all three programs, and wait until they serve."""
        built = self._builder.ensure(*builds.KEDA)
        self._config = built[builds.KEDA_FILES] / "config"
        self._prepare()
        grpc, metrics = self._ports.take(), self._ports.take()
        self._start_operator(built["keda"], grpc)
        self._start_adapter(built["keda-adapter"], grpc, metrics)
        self._start_webhooks(built["keda-webhooks"])
        wait_until(self.is_available, _START_TIMEOUT, "the API server to find KEDA's metrics")

    def end(self, error: BaseException | None) -> None:
        for child in reversed(self._children):
            self._plane.supervisor.stop(child)
        self._children.clear()

    def is_available(self) -> bool:
        """Whether the API server gets external metrics of it."""
        found = self._plane.get("apiservice", API) or {}
        conditions = found.get("status", {}).get("conditions", [])
        return any(c["type"] == "Available" and c["status"] == "True" for c in conditions)

    def _prepare(self) -> None:
        """Definitions, rights, the certificate and the kubeconfig."""
        self._plane.apply(self._config / "crd" / "bases")
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}
        self._plane.apply(namespace)
        for name in _ROLES:
            self._plane.apply(self._config / name)
        self._certificates.mkdir(parents=True, exist_ok=True)
        self._plane.ca.issue_peer("keda", ["localhost", LOOPBACK]).write(self._certificates, "tls")
        (self._certificates / "ca.crt").write_text(self._plane.ca.certificate)
        token = self._plane.kubectl("create", "token", _ACCOUNT, "-n", _NAMESPACE).strip()
        kubeconfig = pki.kubeconfig(
            server=self._plane.server,
            ca_file=self._plane.ca_file,
            user=_ACCOUNT,
            credentials={"token": token},
            namespace=_NAMESPACE,
        )
        pki.write_private(self._folder / "kubeconfig", kubeconfig)

    def _start_operator(self, program: Path, grpc: int) -> None:
        health = self._ports.take()
        flags = [
            f"--cert-dir={self._certificates}",
            "--enable-cert-rotation=false",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address={LOOPBACK}:{health}",
            f"--metrics-service-bind-address={LOOPBACK}:{grpc}",
        ]
        self._start(program, flags, f"http://{LOOPBACK}:{health}/readyz")

    def _start_adapter(self, program: Path, grpc: int, metrics: int) -> None:
        port, kubeconfig = self._ports.take(), self._folder / "kubeconfig"
        flags = [
            f"--secure-port={port}",
            f"--bind-address={LOOPBACK}",
            f"--cert-dir={self._certificates}",
            f"--tls-cert-file={self._certificates}/tls.crt",
            f"--tls-private-key-file={self._certificates}/tls.key",
            f"--metrics-service-address={LOOPBACK}:{grpc}",
            f"--port={metrics}",
            f"--lister-kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
        ]
        self._start(program, flags, f"https://{LOOPBACK}:{port}/readyz")
        for found in self._service(port):
            self._plane.apply(found)

    def _start_webhooks(self, program: Path) -> None:
        port, health = self._ports.take(), self._ports.take()
        flags = [
            f"--cert-dir={self._certificates}",
            f"--port={port}",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address={LOOPBACK}:{health}",
        ]
        self._start(program, flags, f"http://{LOOPBACK}:{health}/readyz")
        self._plane.apply(self._webhooks(port))

    def _start(self, program: Path, flags: list[str], ready: str) -> None:
        child = self._plane.supervisor.start(
            program.name, [program, *flags], env={**os.environ, **self._environment()}
        )
        self._children.append(child)
        self._plane.supervisor.wait_ready(child, lambda: answers(ready), _START_TIMEOUT)

    def _environment(self) -> Mapping[str, str]:
        return {
            "KUBECONFIG": str(self._folder / "kubeconfig"),
            "WATCH_NAMESPACE": "",
            "POD_NAMESPACE": _NAMESPACE,
            "KEDA_CLUSTER_OBJECT_NAMESPACE": _NAMESPACE,
        }

    def _service(self, port: int) -> Iterator[dict[str, Any]]:
        """KEDA's APIService, and a service that leads to this machine."""
        (found,) = self._manifests("metrics-server/api_service.yaml")
        service = found["spec"]["service"]
        yield {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": service["name"], "namespace": service["namespace"]},
            # the API server resolves the name itself
            "spec": {
                "type": "ExternalName",
                "externalName": "localhost",
                "ports": [{"port": port}],
            },
        }
        spec = {**found["spec"], "service": {**service, "port": port}}
        # KEDA patches this into it in a cluster; the certificate names the service there
        yield {**found, "spec": {**spec, "insecureSkipTLSVerify": True}}

    def _webhooks(self, port: int) -> dict[str, Any]:
        (found,) = self._manifests("webhooks/validation_webhooks.yaml")
        authority = base64.b64encode(self._plane.ca.certificate.encode()).decode()
        for webhook in found["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            url = f"https://{LOOPBACK}:{port}{path}"
            webhook["clientConfig"] = {"url": url, "caBundle": authority}
        return found

    def _manifests(self, name: str) -> list[dict[str, Any]]:
        return list(yaml.safe_load_all((self._config / name).read_text()))
