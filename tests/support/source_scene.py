"""A source in a namespace of its own, on a real API server and a real broker."""

from collections.abc import Callable
from typing import Any

from balanced_source.documents.storage import FIRST_HOST
from balanced_source_spark.instance import Instance
from support.builders import spec_json
from support.stand_in_driver import StandInDriver
from support.story.watch import SourceView
from testbed.control_plane import ControlPlane
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until


class SourceScene:
    """A new namespace with what a source needs, and the source."""

    def __init__(self, control_plane: ControlPlane, kafka: KafkaCluster, namespace: str) -> None:
        control_plane.kubectl("create", "namespace", namespace)
        control_plane.kubectl("create", "serviceaccount", "spark", "-n", namespace)
        self.control_plane = control_plane
        self.kafka = kafka
        self.namespace = namespace
        self.topic = f"{namespace}-orders"
        self.source = SourceView(control_plane.kubectl, "orders", namespace)
        self._drivers: list[StandInDriver] = []

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.control_plane.kubectl("-n", self.namespace, *arguments, stdin=stdin)

    def manifest(self, **spec: Any) -> dict[str, Any]:
        kafka = {
            "clusters": [{"name": "main", "bootstrapServers": self.kafka.bootstrap}],
            "subscription": {"topics": [self.topic]},
            "discovery": {"interval": "1s"},
        }
        return {
            "apiVersion": "balancedsource.io/v1alpha1",
            "kind": "BalancedSource",
            "metadata": {"name": "orders", "namespace": self.namespace},
            "spec": spec_json(**{"source": {"kafka": kafka}, **spec}),
        }

    def kafka_spec(self, **changes: Any) -> dict[str, Any]:
        return {"kafka": {**self.manifest()["spec"]["source"]["kafka"], **changes}}

    def apply(self, **spec: Any) -> None:
        self.control_plane.apply(self.manifest(**spec))

    def config_map(self, suffix: str) -> dict[str, Any] | None:
        return self.control_plane.get("configmap", f"orders-{suffix}", self.namespace)

    def driver(
        self,
        before: StandInDriver | None = None,
        *,
        instance: Instance | None = None,
        host: str = FIRST_HOST,
    ) -> StandInDriver:
        """A driver that comes up in place of its predecessor, with its checkpoint if it has one."""
        uid = self.source.get()["metadata"]["uid"]
        offset = before.offset if before is not None else None
        made = StandInDriver(
            self.control_plane, self.namespace, "orders", uid, offset, instance=instance, host=host
        )
        self._drivers.append(made)
        return made

    def wait(self, condition: Callable[[], Any], what: str, timeout: float = 30) -> Any:
        return wait_until(condition, timeout, what, interval=0.1)

    def wait_condition(
        self, kind: str, status: str, reason: str | None = None, timeout: float = 30
    ) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            condition = self.source.condition(kind)
            fits = condition.get("status") == status and reason in (None, condition.get("reason"))
            return condition if fits else None

        return dict(
            self.wait(found, f"{kind}={status} {reason or ''}: {self.source.status}", timeout)
        )

    def events(self) -> list[str]:
        told = self.kubectl(
            "get", "events", "-o", "jsonpath={range .items[*]}{.reason}{'\\n'}{end}"
        )
        return told.split()

    def close(self) -> None:
        for driver in self._drivers:
            driver.close()
        self.kubectl("delete", "bsrc", "--all", "--ignore-not-found")
