"""Kafka clusters that all schedules of a run share, and which of their nodes is disturbed now.

Several schedules run at once. A fault of one is a fault of all that read the cluster. At most one
node of a cluster is disturbed at a time, or the controllers lose their majority; what the schedules
themselves ask the brokers, such as the contents of a log, waits until none is.
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final, Self

from chaos.network import Mode, Network
from testbed.errors import TestbedError
from testbed.kafka import KafkaCluster
from testbed.progress import Progress

NODES: Final = {"main": 3, "east": 1, "west": 1}

_START: Final = 240.0
"""Seconds that a broker may take: a machine that does much else must not fail a schedule."""

_FREE: Final = 5.0
"""Seconds that a fault waits for the end of another one of the same cluster."""

_STEADY: Final = 400.0
"""Seconds that a schedule waits until no node of a cluster is disturbed."""

_PROPERTIES: Final = {
    "transaction.max.timeout.ms": "60000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "replica.lag.time.max.ms": "3000",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}

Undo = Callable[[], None]


def _nothing() -> None:
    """What a schedule does while it waits, if there is nothing to do."""


class Brokers:
    """Clusters by name, started when they are first needed; a context manager.

    May be used by several threads.

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
        self._clusters: dict[str, Future[KafkaCluster]] = {}
        self._network = Network()
        self._stack.callback(self._network.close)
        self._first = threading.Lock()
        # brokers die with the thread that started them
        self._starter = self._stack.enter_context(
            ThreadPoolExecutor(1, thread_name_prefix="brokers")
        )
        self._state = threading.Condition()
        self._steady: Counter[str] = Counter()
        self._undos: dict[str, Undo] = {}
        """Of clusters that are disturbed."""
        self._lacking: set[str] = set()
        """Those of them that only lack a node."""
        self.counts: Counter[str] = Counter()
        """How often each kind of disturbance has happened."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.heal()
        finally:
            for cluster in self._clusters.values():
                if cluster.exception() is None:
                    cluster.result().stop(grace=1)
            self._stack.close()

    def __getitem__(self, name: str) -> KafkaCluster:
        with self._first:
            if name not in self._clusters:
                self._clusters[name] = self._starter.submit(self._started, name)
        return self._clusters[name].result()

    def nodes(self, name: str) -> range:
        """Return the numbers of a cluster's nodes."""
        return range(1, self._nodes[name] + 1)

    def kill(self, name: str, node: int, tend: Undo = _nothing) -> Undo | None:
        """Kill a node; returns how to start it again, or None if another node is disturbed.

        See `steady` for `tend`.
        """

        def act() -> None:
            self._lacking |= {name} if len(self.nodes(name)) > 1 else set()
            self[name].kill(node)

        return self._disturb("kill", name, act, lambda: self._restart(name, node), tend)

    def freeze(self, name: str, node: int, tend: Undo = _nothing) -> Undo | None:
        """Stop a node; returns how to let it continue, or None if another node is disturbed."""
        return self._disturb(
            "freeze",
            name,
            lambda: self[name].pause(node),
            lambda: self._end(name, self[name].resume, node),
            tend,
        )

    def cut(self, name: str, node: int, mode: Mode, tend: Undo = _nothing) -> Undo | None:
        """Disturb the network in front of a node.

        Returns how to mend it, or None if another node is disturbed.
        """
        port = self[name].advertised(node)
        return self._disturb(
            f"network {mode.value}",
            name,
            lambda: self._network.set_mode(port, mode),
            lambda: self._end(
                name, lambda n: self._network.set_mode(self[name].advertised(n), Mode.PASS), node
            ),
            tend,
        )

    @contextlib.contextmanager
    def steady(self, *names: str, tend: Undo = _nothing) -> Iterator[None]:
        """Let some clusters answer: no node is disturbed, also not by other schedules.

        A node of several that was killed may still be on its way back: the others lead, and a start
        takes long.

        Args:
            names: of the clusters.
            tend: called while the disturbances that there are come to their ends.

        Raises:
            TestbedError: a node did not come back.
        """
        with self._state:
            self._steady.update(names)
        try:
            if not self._wait(lambda: not self._silent(names), _STEADY, tend):
                raise TestbedError(
                    f"Kafka clusters {self._silent(names)} did not come back within {_STEADY:g} s"
                )
            yield
        finally:
            with self._state:
                self._steady.subtract(names)
                self._state.notify_all()

    @contextlib.contextmanager
    def exclusive(self, name: str, tend: Undo = _nothing) -> Iterator[bool]:
        """Be the only one who disturbs a cluster; yields whether that is so.

        All its nodes run again afterwards.
        """
        undo = self._disturb("exclusive", name, _nothing, lambda: self._restart_missing(name), tend)
        try:
            yield undo is not None
        finally:
            if undo is not None:
                undo()

    def start_node(self, name: str, node: int) -> None:
        """Start a node that was killed, and wait until it is back."""
        self._starter.submit(self[name].start_node, node).result()

    def heal(self) -> None:
        """Undo everything, and wait until all nodes are back.

        Raises:
            TestbedError: a node did not come back.
        """
        for undo in list(self._undos.values()):
            undo()
        if self._wait(lambda: not self._undos, _STEADY, _nothing):
            return
        # A node that needed longer than it may, on a busy machine, is there by now or starts again.
        for name in list(self._undos):
            self._restart_missing(name)
        if not self._wait(lambda: not self._undos, _STEADY, _nothing):
            raise TestbedError(
                f"Kafka clusters {sorted(self._undos)} did not come back within {_STEADY:g} s"
            )

    def _silent(self, names: Iterable[str]) -> list[str]:
        return sorted((self._undos.keys() & set(names)) - self._lacking)

    def _started(self, name: str) -> KafkaCluster:
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
        return self._stack.enter_context(made)

    def _disturb(self, kind: str, name: str, act: Undo, undo: Undo, tend: Undo) -> Undo | None:
        """Act unless the cluster is disturbed or must be steady.

        Returns `undo`, which has an effect once.
        """
        has_begun = False

        def once() -> None:
            nonlocal has_begun
            with self._state:
                is_due, has_begun = not has_begun, True
            if is_due:
                undo()

        def claim() -> bool:
            if name in self._undos or self._steady[name] > 0:
                return False
            self._undos[name] = once
            return True

        if not self._wait(claim, _FREE, tend):
            return None
        self.counts[kind] += 1
        act()
        return once

    def _wait(self, condition: Callable[[], bool], timeout: float, tend: Undo) -> bool:
        deadline = time.monotonic() + timeout
        while True:
            with self._state:
                if condition():
                    return True
                self._state.wait(0.1)
            if time.monotonic() >= deadline:
                return False
            tend()

    def _restart(self, name: str, node: int) -> None:
        self._starter.submit(self._end, name, self[name].start_node, node)

    def _restart_missing(self, name: str) -> None:
        self._starter.submit(self._end, name, lambda _: self[name].start_missing(), 0)

    def _end(self, name: str, act: Callable[[int], None], node: int) -> None:
        """Undo a disturbance. A node that does not start stays disturbed, and `steady` says so."""
        act(node)
        with self._state:
            self._undos.pop(name, None)
            self._lacking.discard(name)
            self._state.notify_all()
