"""Answers the horizontal pod autoscaler with one external metric: a number that a test sets."""

import json
import ssl
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Self

from testbed.control_plane import ControlPlane

GROUP: Final = "external.metrics.k8s.io/v1beta1"
METRIC: Final = "balanced-source-lag"


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """A client that hangs up is no news."""


class MetricsServer:
    """A context manager; registers itself with the API server.

    Attributes:
        value: of the metric `METRIC`.
    """

    def __init__(self, control_plane: ControlPlane, folder: Path) -> None:
        self.value = 0
        self._control_plane = control_plane
        self._server = _Server(("127.0.0.1", 0), self._handler())
        certificate, key = control_plane.ca.issue_server(
            "metrics", ["localhost", "127.0.0.1"]
        ).write(folder, "metrics")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        # The handshake is left to the thread of each connection: one that fails there is closed
        # like any other.
        listener = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._server.socket = listener

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._control_plane.apply(self._service())
        self._control_plane.apply(self._api_service())
        return self

    def __exit__(self, *_: object) -> None:
        self._control_plane.kubectl("delete", "apiservice", "v1beta1.external.metrics.k8s.io")
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str) -> dict[str, Any]:
        """Return what the API says at a path."""
        if path.rstrip("/").endswith(GROUP):
            resource = {
                "name": METRIC,
                "namespaced": True,
                "kind": "ExternalMetricValueList",
                "verbs": ["get"],
            }
            return {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": GROUP,
                "resources": [resource],
            }
        item = {
            "metricName": METRIC,
            "metricLabels": {},
            "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "value": str(self.value),
        }
        return {
            "kind": "ExternalMetricValueList",
            "apiVersion": GROUP,
            "metadata": {},
            "items": [item],
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answer = self.answer

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(answer(self.path.split("?")[0])).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Nothing is logged."""

        return Handler

    def _service(self) -> dict[str, Any]:
        """Leads to this process: the API server resolves the name itself."""
        port = {"port": self._server.server_address[1]}
        spec = {"type": "ExternalName", "externalName": "localhost", "ports": [port]}
        metadata = {"name": "metrics", "namespace": "default"}
        return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}

    def _api_service(self) -> dict[str, Any]:
        spec = {
            "group": GROUP.split("/")[0],
            "version": GROUP.split("/")[1],
            "service": {
                "name": "metrics",
                "namespace": "default",
                "port": self._server.server_address[1],
            },
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        }
        metadata = {"name": "v1beta1.external.metrics.k8s.io"}
        return {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": metadata,
            "spec": spec,
        }
