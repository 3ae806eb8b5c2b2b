"""A driver without Spark.

The product's own channel and host runtime, with micro-batches that read nothing.

Shows the operator everything that it sees of a real driver (registration, acknowledgements,
progress), in a second instead of half a minute.
"""

import uuid
from dataclasses import replace
from pathlib import Path

import httpx2
from lightkube import Client, KubeConfig
from lightkube.config.models import Cluster, User

from balanced_source.documents.storage import FIRST_HOST
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source_spark.channels.kubernetes import KubernetesChannel
from balanced_source_spark.host_reporter import Progress
from balanced_source_spark.host_runtime import HostRuntime
from balanced_source_spark.instance import Instance
from testbed.control_plane import ControlPlane
from testbed.waiting import wait_until


class StandInHost:
    """One attempt of a driver; another one with the same `offset` is its successor.

    Args:
        config: how it reaches the API server.
        namespace: of the source.
        source: its name.
        uid: of the source.
        offset: of the checkpoint.
        instance: which process it is.
        host: which of the source's hosts it is.

    Attributes:
        lag: what it reports after each micro-batch, in records.
    """

    def __init__(
        self,
        config: KubeConfig,
        namespace: str,
        source: str,
        uid: str,
        offset: StreamOffset | None = None,
        *,
        instance: Instance,
        host: str = FIRST_HOST,
    ) -> None:
        self.offset = offset or StreamOffset()
        self.lag = 0
        self._client = Client(config=config, timeout=httpx2.Timeout(5), trust_env=False)
        self.channel = KubernetesChannel(
            self._client, namespace=namespace, source=source, uid=uid, host=host
        )
        # Kubernetes has replaced the pod of the former attempt, so this one need not wait for it to
        # fall silent.
        self.runtime = HostRuntime(self.channel, host=host, instance=instance)

    def batch(self, rows_per_split: int = 0) -> bool:
        """One trigger; True if a micro-batch ran."""
        self.runtime.committed(self.offset)
        base = self.runtime.base()
        if base is None or (base == self.offset and not rows_per_split):
            return False
        positions = {s: (p or 0) + rows_per_split for s, p in base.positions.items()}
        self.offset = replace(base, positions=positions)
        self.runtime.note_progress(Progress(lag=self.lag))
        self.runtime.planned(self.offset)
        self.runtime.committed(self.offset)
        return True

    def adopt(self, *, parallelism: int, timeout: float = 20) -> StreamOffset:
        """Run micro-batches until one has run with so many readers."""

        def adopted() -> bool:
            self.batch()
            return self.offset.parallelism == parallelism

        wait_until(adopted, timeout, f"an assignment for {parallelism} readers")
        return self.offset

    def close(self) -> None:
        """End without a word, like a killed driver."""
        self.runtime.close()
        self._client.close()


class StandInDriver(StandInHost):
    """One in the process of a test, with the rights of the namespace's account `spark`."""

    def __init__(
        self,
        control_plane: ControlPlane,
        namespace: str,
        source: str,
        uid: str,
        offset: StreamOffset | None = None,
        *,
        instance: Instance | None = None,
        host: str = FIRST_HOST,
    ) -> None:
        super().__init__(
            driver_config(control_plane, namespace),
            namespace,
            source,
            uid,
            offset,
            instance=instance or in_pod("orders-1-driver"),
            host=host,
        )


def in_pod(name: str) -> Instance:
    """A driver in a new pod of that name; pods of former attempts had the same name."""
    return Instance(id=uuid.uuid4().hex[:8], pod=name, uid=uuid.uuid4().hex)


def driver_config(control_plane: ControlPlane, namespace: str) -> KubeConfig:
    """The rights of the service account `spark`.

    What the operator has granted to it, and nothing else.
    """
    token = control_plane.kubectl("create", "token", "spark", "-n", namespace).strip()
    authority: Path = control_plane.ca_file
    return KubeConfig.from_one(
        cluster=Cluster(server=control_plane.server, certificate_auth=str(authority)),
        user=User(token=token),
        namespace=namespace,
    )
