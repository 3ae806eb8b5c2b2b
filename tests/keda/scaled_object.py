"""The ScaledObject of `examples/keda.yaml` for a source, in a namespace, on this machine."""

import copy
from collections.abc import Mapping
from typing import Any, Final

import yaml

from testbed.control_plane import ControlPlane
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

EXAMPLE: Final = CHECKOUT / "examples" / "keda.yaml"
PAUSED: Final = "autoscaling.keda.sh/paused-replicas"
TIMEOUT: Final = 120.0
_SOON: Final = {"pollingInterval": 1, "cooldownPeriod": 1}
"""Seconds; KEDA's defaults are 30 and 300."""
_AT_ONCE: Final = {"scaleDown": {"stabilizationWindowSeconds": 0}}
"""By default an HPA waits for five minutes before it scales down."""


class ScaledObject:
    """One ScaledObject, with KEDA's conditions and the HPA that KEDA makes of it.

    Args:
        control_plane: where it is.
        namespace: of the source.
        prometheus: address that replaces the one of the example.
    """

    def __init__(self, control_plane: ControlPlane, namespace: str, prometheus: str) -> None:
        self._plane, self._namespace, self._prometheus = control_plane, namespace, prometheus

    def manifest(self, **changes: Any) -> dict[str, Any]:
        """The example's, with other fields of its spec."""
        _, found = yaml.safe_load_all(EXAMPLE.read_text())
        manifest: dict[str, Any] = copy.deepcopy(found)
        manifest["metadata"]["namespace"] = self._namespace
        spec = manifest["spec"]
        metadata = spec["triggers"][0]["metadata"]
        metadata["serverAddress"] = self._prometheus
        metadata["query"] = metadata["query"].replace('"jobs"', f'"{self._namespace}"')
        spec["advanced"] = {"horizontalPodAutoscalerConfig": {"behavior": _AT_ONCE}}
        spec.update({**_SOON, **changes})
        return manifest

    def apply(self, **changes: Any) -> None:
        """Create it, or change its spec."""
        self._plane.apply(self.manifest(**changes))

    def annotate(self, *annotations: str) -> None:
        """``kubectl annotate``; ``name-`` removes one."""
        command = ("annotate", "--overwrite", "scaledobject", "orders", "-n", self._namespace)
        self._plane.kubectl(*command, *annotations)

    def wait_condition(self, kind: str, status: str) -> Mapping[str, Any]:
        """Wait until KEDA says so of it."""

        def found() -> Mapping[str, Any] | None:
            condition = self._conditions("scaledobject", "orders").get(kind, {})
            return condition if condition.get("status") == status else None

        return wait_until(found, TIMEOUT, f"the ScaledObject to be {kind}={status}") or {}

    def wait_hpa_condition(self, kind: str, status: str) -> Mapping[str, Any]:
        """Wait until the HPA controller says so of KEDA's HPA."""

        def found() -> Mapping[str, Any] | None:
            condition = self._conditions("hpa", "keda-hpa-orders").get(kind, {})
            return condition if condition.get("status") == status else None

        return wait_until(found, TIMEOUT, f"KEDA's HPA to be {kind}={status}") or {}

    def wait_event(self, reason: str) -> str:
        """Wait for an event of KEDA, and return its newest message."""

        def found() -> str:
            events = self._plane.items("events", self._namespace)
            return next((str(e["message"]) for e in events if e["reason"] == reason), "")

        return wait_until(found, TIMEOUT, f"KEDA's event {reason}")

    @property
    def hpa(self) -> dict[str, Any] | None:
        """The HPA that KEDA makes; None while there is none."""
        return self._plane.get("hpa", "keda-hpa-orders", self._namespace)

    def delete(self) -> None:
        """Delete it, and wait until KEDA has let go of it."""
        command = ("delete", "scaledobject", "--all", "-n", self._namespace)
        self._plane.kubectl(*command, "--ignore-not-found")

    def _conditions(self, kind: str, name: str) -> dict[str, Any]:
        found = self._plane.get(kind, name, self._namespace) or {}
        return {c["type"]: c for c in found.get("status", {}).get("conditions", [])}
