"""Kafka clusters that all schedules of a run share, and which of their nodes is disturbed at the moment."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from chaos.network import Mode, Network
from chaos.world import CLUSTERS
from testbed.kafka import KafkaCluster
from testbed.progress import Progress

NODES: Final = {"main": 3, "east": 1, "west": 1}

_START: Final = 240.0
"""Seconds that a broker may take: a machine that does much else must not fail a schedule."""

_PROPERTIES: Final = {
    "transaction.max.timeout.ms": "60000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "replica.lag.time.max.ms": "3000",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


class Brokers:
    """Clusters by name, started when they are first needed; a context manager.

    Args:
        run_dir: gets their files.
        progress: told about each start.
        nodes: brokers of each cluster.
    """

    def __init__(self, run_dir: Path, progress: Progress, nodes: Mapping[str, int] = NODES) -> None:
        self._run_dir = run_dir
        self._nodes = nodes
        self._progress = progress
        self._stack = contextlib.ExitStack()
        self._clusters: dict[str, KafkaCluster] = {}
        self._network = Network()
        self._stack.callback(self._network.close)
        self._cut: dict[str, int] = {}
        self.down: dict[str, int] = {}
        """Cluster → its node that is killed; at most one, or the controllers lose their majority."""
        self.frozen: dict[str, int] = {}
        """Cluster → its node that is stopped."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()
        self._stack.close()

    def __getitem__(self, name: str) -> KafkaCluster:
        if name not in self._clusters:
            made = KafkaCluster(
                name,
                self._run_dir,
                nodes=self._nodes[name],
                heap="256m",
                properties=_PROPERTIES,
                start_timeout=_START,
                relay=self._network.relay,
                progress=self._progress,
            )
            self._clusters[name] = self._stack.enter_context(made)
        return self._clusters[name]

    def nodes(self, name: str) -> range:
        """Return the numbers of a cluster's nodes."""
        return range(1, self._nodes[name] + 1)

    def is_disturbed(self, name: str) -> bool:
        """Return whether a node of a cluster is killed, stopped or cut off."""
        return name in self.down or name in self.frozen or name in self._cut

    def kill(self, name: str, node: int) -> None:
        """Kill a node."""
        self.down[name] = node
        self[name].kill(node)

    def restart(self, name: str) -> None:
        """Start the node again that was killed."""
        if node := self.down.pop(name, None):
            self[name].start_node(node)

    def freeze(self, name: str, node: int) -> None:
        """Stop a node."""
        self.frozen[name] = node
        self[name].pause(node)

    def thaw(self, name: str) -> None:
        """Let the node go on that was stopped."""
        if node := self.frozen.pop(name, None):
            self[name].resume(node)

    def cut(self, name: str, node: int, mode: Mode) -> None:
        """Disturb the network in front of a node."""
        self._cut[name] = node
        self._network.set_mode(self[name].advertised(node), mode)

    def mend(self, name: str) -> None:
        """Let the network work again."""
        if node := self._cut.pop(name, None):
            self._network.set_mode(self[name].advertised(node), Mode.PASS)

    def heal(self) -> None:
        """Undo everything."""
        for name in CLUSTERS:
            self.thaw(name)
            self.mend(name)
            self.restart(name)
        for cluster in self._clusters.values():
            cluster.start_missing()
