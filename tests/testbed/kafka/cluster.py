"""A Kafka cluster as processes of a supervisor."""

import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

from testbed.cache import Cache
from testbed.commands import run
from testbed.jars import ensure_jars
from testbed.java import java
from testbed.kafka import config, reassignment
from testbed.kafka.admin import KafkaAdmin
from testbed.kafka.security import KafkaSecurity, Listener, Mechanism
from testbed.ports import LOOPBACK, PortPool, answers
from testbed.processes import Child, Supervisor
from testbed.progress import QUIET, Progress
from testbed.started import Started
from testbed.waiting import wait_until

# a short-lived JVM: no second compiler, no parallel collector
_QUICK_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m")
_BROKER_JVM = ("-Xms128m", "-XX:MaxGCPauseMillis=50")


class KafkaCluster(Started):
    """A cluster of brokers that are controllers too; a context manager that starts and stops it.

    Args:
        name: of the cluster, unique within the run folder.
        run_dir: gets `kafka/NAME/` with configuration and data.
        nodes: how many brokers; topics have up to three replicas by default.
        heap: largest heap of each broker, as the JVM writes it.
        properties: further broker settings.
        security: further listeners and access control.
        supervisor: runs the processes; an own one if None.
        ports: where free ports come from; an own pool if None.
        cache: where the jars are.
        progress: told about each step of the start.
        host: address that brokers listen on and tell their clients.
        start_timeout: seconds that a node may take to start; a busy machine must not fail a test.
        relay: makes a port that clients are told instead of a node's own one, from that; for
            network faults.
    """

    def __init__(
        self,
        name: str,
        run_dir: Path,
        *,
        nodes: int = 1,
        heap: str = "512m",
        properties: Mapping[str, str] | None = None,
        security: KafkaSecurity | None = None,
        supervisor: Supervisor | None = None,
        ports: PortPool | None = None,
        cache: Cache | None = None,
        progress: Progress = QUIET,
        host: str = LOOPBACK,
        start_timeout: float = 240.0,
        relay: Callable[[int], int] | None = None,
    ) -> None:
        self.name = name
        self._start_timeout = start_timeout
        self._host = host
        self.nodes = range(1, nodes + 1)
        self.security = security
        self.supervisor = supervisor or Supervisor(run_dir)
        self._folder = run_dir / "kafka" / name
        self._heap = heap
        self._properties = properties or {}
        self._own_ports = PortPool()
        self._cache = cache or Cache()
        self._progress = progress
        self._children: dict[int, Child] = {}
        further = security.listeners if security else ()
        self._ports = {
            node: _take_ports(ports or self._own_ports, (Listener.PLAINTEXT, *further), relay)
            for node in self.nodes
        }

    def end(self, error: BaseException | None) -> None:
        self.stop()
        self._own_ports.close()

    @property
    def bootstrap(self) -> str:
        """`host:port,…` of the open listener."""
        return self.bootstrap_of(Listener.PLAINTEXT)

    @property
    def pids(self) -> frozenset[int]:
        """The brokers' processes."""
        return frozenset(child.pid for child in self._children.values())

    @cached_property
    def admin(self) -> KafkaAdmin:
        """Helpers for topics, partitions, records and access rights."""
        return KafkaAdmin(self.bootstrap)

    def bootstrap_of(self, listener: Listener) -> str:
        """`host:port,…` of a listener."""
        return ",".join(f"{self._host}:{ports.told(listener)}" for ports in self._ports.values())

    def advertised(self, node: int) -> int:
        """The port of a node's open listener that clients are told."""
        return self._ports[node].told(Listener.PLAINTEXT)

    def client_config(
        self,
        listener: Listener = Listener.PLAINTEXT,
        *,
        user: str | None = None,
        mechanism: Mechanism = Mechanism.SCRAM_SHA_512,
    ) -> dict[str, str]:
        """Settings of librdkafka for a client; see `KafkaSecurity.client_config`."""
        bootstrap = {"bootstrap.servers": self.bootstrap_of(listener)}
        if self.security is None:
            return bootstrap
        return bootstrap | self.security.client_config(listener, self.pki, user, mechanism)

    @property
    def pki(self) -> Path:
        """Folder with the authority's certificate `ca.crt` and with those of clients."""
        return self._folder / "pki"

    def start(self) -> None:
        """Start all nodes and wait until each knows all others; 3 to 5 s for one."""
        self._libraries = ensure_jars("kafka", self._cache, self._progress)
        with self._progress.step(f"start Kafka cluster {self.name}, {len(self.nodes)} node(s)"):
            self._prepare()
            for node in self.nodes:
                self._launch(node)
            for node in self.nodes:
                self._wait_open(node)
            self._wait_for_brokers()

    def stop(self, *, grace: float = 15.0) -> None:
        """End all nodes; their data stay in the run folder, so `start` continues with them."""
        children = list(self._children.values())
        self._children.clear()
        self.supervisor.stop_together(children, grace=grace)

    def kill(self, node: int = 1) -> None:
        """Let a node crash (SIGKILL)."""
        self.supervisor.kill(self._children.pop(node))

    def pause(self, node: int = 1) -> None:
        """Freeze a node (SIGSTOP): its connections stay open and no one answers."""
        self._children[node].signal(signal.SIGSTOP)

    def resume(self, node: int = 1) -> None:
        """Let a node continue after `pause`."""
        self._children[node].signal(signal.SIGCONT)

    def start_missing(self) -> None:
        """Start all nodes again that were killed, and wait until they are back."""
        for node in self.nodes:
            if node not in self._children:
                self.start_node(node)

    def start_node(self, node: int = 1) -> None:
        """Start a node again after `kill`, on its old ports and data, and wait until it is back."""
        self._launch(node)
        self._wait_open(node)
        self._wait_for_brokers()

    def reassign(self, topic: str, replicas: Mapping[int, Sequence[int]]) -> None:
        """Move partitions to other brokers and wait until they are there.

        A leader that stays gets a newer epoch.
        """
        node = next(node for node, child in self._children.items() if child.alive())
        reassignment.ask(
            (self._host, self._ports[node].listeners[Listener.PLAINTEXT]), topic, replicas
        )
        wanted = {number: sorted(to) for number, to in replicas.items()}

        def has_moved() -> bool:
            found = self.admin.replicas(topic)
            return all(sorted(found[number]) == to for number, to in wanted.items())

        wait_until(has_moved, self._start_timeout, f"partitions of {topic} to move")

    def _prepare(self) -> None:
        """Write the configuration and format the data folders of nodes that have none."""
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "log4j2.yaml").write_text(config.LOGGING)
        if self.security:
            self.security.write_files(self.pki)
        fresh = [node for node in self.nodes if not self._properties_file(node).exists()]
        for node in fresh:
            self._write_properties(node)
        cluster_id = config.new_cluster_id()
        with ThreadPoolExecutor(max_workers=2) as pool:
            list(pool.map(lambda node: self._format(node, cluster_id), fresh))

    def _write_properties(self, node: int) -> None:
        text = config.server_properties(
            node=node,
            ports=self._ports,
            data=str(self._node_folder(node) / "data"),
            security=self.security,
            extra=self._properties,
            host=self._host,
        )
        self._node_folder(node).mkdir(parents=True)
        self._properties_file(node).write_text(text)

    def _format(self, node: int, cluster_id: str) -> None:
        users = self.security.format_arguments() if self.security else []
        settings = [f"--cluster-id={cluster_id}", "-c", str(self._properties_file(node)), *users]
        run([*self._jvm("kafka.tools.StorageTool", *_QUICK_JVM), "format", *settings])

    def _launch(self, node: int) -> None:
        command = self._jvm("kafka.Kafka", *_BROKER_JVM, f"-Xmx{self._heap}")
        self._children[node] = self.supervisor.start(
            f"kafka-{self.name}-{node}",
            [*command, str(self._properties_file(node))],
        )

    def _wait_open(self, node: int) -> None:
        ports = self._ports[node].listeners.values()
        self.supervisor.wait_ready(
            self._children[node],
            lambda: all(answers(port, self._host) for port in ports),
            self._start_timeout,
        )

    def _wait_for_brokers(self) -> None:
        running = len(self._children)
        wait_until(
            lambda: self.admin.brokers() >= running,
            self._start_timeout,
            f"{running} brokers of Kafka cluster {self.name}",
        )

    def _jvm(self, main_class: str, *options: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self._folder / 'log4j2.yaml'}"
        return [str(java()), *options, logging, "-cp", f"{self._libraries}/*", main_class]

    def _node_folder(self, node: int) -> Path:
        return self._folder / str(node)

    def _properties_file(self, node: int) -> Path:
        return self._node_folder(node) / "server.properties"


def _take_ports(
    pool: PortPool, listeners: tuple[Listener, ...], relay: Callable[[int], int] | None
) -> config.NodePorts:
    own = {listener: pool.take() for listener in listeners}
    relayed = {Listener.PLAINTEXT: relay(own[Listener.PLAINTEXT])} if relay is not None else {}
    return config.NodePorts(controller=pool.take(), listeners=own, advertised=relayed)
