"""The configuration files of a broker, as texts."""

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.kafka.security import KafkaSecurity, Listener
from testbed.ports import LOOPBACK

_CONTROLLER = "CONTROLLER"
_REPLICAS = 3

LOGGING = """\
Configuration:
  Appenders:
    Console:
      name: console
      PatternLayout: {pattern: "%d %p %c %m%n"}
  Loggers:
    Root: {level: WARN, AppenderRef: {ref: console}}
    Logger: [{name: kafka.server.KafkaRaftServer, level: INFO}]
"""
"""log4j2: warnings, and the lines that tell of start and stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePorts:
    """The ports of one node, the same for its whole life.

    Attributes:
        controller: where the controllers of the cluster talk to each other.
        listeners: port of each listener for clients.
        advertised: ports that clients are told instead of those.
    """

    controller: int
    listeners: Mapping[Listener, int]
    advertised: Mapping[Listener, int] = field(default_factory=dict)

    def told(self, listener: Listener) -> int:
        """Return the port of a listener that clients are told."""
        return self.advertised.get(listener, self.listeners[listener])


def new_cluster_id() -> str:
    """A random cluster id in Kafka's own format: a UUID in unpadded URL-safe base 64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def server_properties(
    *,
    node: int,
    ports: Mapping[int, NodePorts],
    data: str,
    security: KafkaSecurity | None,
    extra: Mapping[str, str],
    host: str = LOOPBACK,
) -> str:
    """The `server.properties` of one node; every node is broker and controller.

    Args:
        node: its id, from 1.
        ports: of all nodes.
        data: its data folder.
        security: further listeners.
        extra: settings that win over all others.
        host: address that brokers listen on and tell their clients.
    """
    settings = (
        _base(node, data, len(ports))
        | _listeners(node, ports, host)
        | (security.server_properties() if security else {})
        | dict(extra)
    )
    return "".join(f"{name}={_escape(value)}\n" for name, value in settings.items())


def _base(node: int, data: str, nodes: int) -> dict[str, str]:
    replicas = str(min(nodes, _REPLICAS))
    return {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "log.dirs": data,
        "default.replication.factor": replicas,
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        "num.network.threads": "2",
        "num.io.threads": "2",
        "log.segment.bytes": "268435456",
        "log.cleaner.dedupe.buffer.size": "16777216",
        # a killed broker can only register again when its old session has ended, by default after 9
        # s
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }


def _listeners(node: int, ports: Mapping[int, NodePorts], host: str) -> dict[str, str]:
    own = ports[node]
    open_to = {name: f"{name}://{host}:{port}" for name, port in own.listeners.items()}
    told = {name: f"{name}://{host}:{own.told(name)}" for name in own.listeners}
    protocols = {_CONTROLLER: "PLAINTEXT"} | {name: name.protocol for name in own.listeners}
    voters = (f"{number}@{host}:{other.controller}" for number, other in ports.items())
    return {
        "controller.quorum.voters": ",".join(voters),
        "controller.listener.names": _CONTROLLER,
        "inter.broker.listener.name": Listener.PLAINTEXT,
        "listeners": ",".join([*open_to.values(), f"{_CONTROLLER}://{host}:{own.controller}"]),
        "advertised.listeners": ",".join(told.values()),
        "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in protocols.items()),
    }


def _escape(value: str) -> str:
    r"""A value as Java's property files want it: certificates have lines, `\` begins an escape."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")
