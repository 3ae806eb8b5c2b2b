"""What happens to the parts of the full stack.

Each fault is a function that may hand back how to undo it.
"""

import contextlib
import json
import random
import signal
from collections.abc import Callable, Iterable
from typing import Any, Final

import psutil

from chaos.checker import broker_log
from chaos.full.source import Source
from chaos.full.stack import Stack
from chaos.light.brokers import Undo
from chaos.light.losses import elect, note_cut
from chaos.network import Mode
from chaos.world import STRATEGIES
from testbed.errors import TestbedError
from testbed.waiting import wait_until

_DRAINED: Final = 60.0
Act = Callable[[Stack, random.Random], Undo | None]


def kill_operator(stack: Stack, dice: random.Random) -> Undo | None:
    """Our operator dies and comes back."""
    if stack.is_api_down or not stack.is_operator_up:
        return None
    stack.is_operator_up = False
    stack.operator.kill()
    return stack.restart_operator


def freeze_operator(stack: Stack, dice: random.Random) -> Undo:
    """Our operator stands still."""
    stack.operator.signal(signal.SIGSTOP)
    return lambda: stack.operator.signal(signal.SIGCONT)


def kill_driver(stack: Stack, dice: random.Random) -> None:
    """A driver's pod dies."""
    source = dice.choice(stack.sources)
    if not stack.is_api_down and (pods := source.drivers):
        stack.cluster.kill_pod_process(dice.choice(pods))


def kill_executor(stack: Stack, dice: random.Random) -> None:
    """An executor's pod dies in the middle of its tasks."""
    source = dice.choice(stack.sources)
    if not stack.is_api_down and (pods := source.executors):
        stack.cluster.kill_pod_process(dice.choice(pods))


def kill_python(stack: Stack, dice: random.Random) -> None:
    """A Python worker of an executor dies."""
    workers = [
        p for process in _jvms(stack, dice, "executor") for p in process.children(recursive=True)
    ]
    if workers:
        with contextlib.suppress(psutil.NoSuchProcess):
            dice.choice(workers).kill()


def freeze_driver(stack: Stack, dice: random.Random) -> Undo:
    """A driver with all its processes stands still."""
    return _frozen(_jvms(stack, dice, "driver"))


def freeze_executor(stack: Stack, dice: random.Random) -> Undo:
    """An executor with all its processes stands still."""
    return _frozen(_jvms(stack, dice, "executor"))


def kill_broker(stack: Stack, dice: random.Random) -> Undo | None:
    """A broker dies and comes back; leaders change."""
    name = dice.choice(stack.kafka)
    return stack.brokers.kill(name, dice.choice(stack.brokers.nodes(name)), stack.tend)


def freeze_broker(stack: Stack, dice: random.Random) -> Undo | None:
    """A broker stands still: its connections stay open and no one answers."""
    name = dice.choice(stack.kafka)
    return stack.brokers.freeze(name, dice.choice(stack.brokers.nodes(name)), stack.tend)


def disturb_network(stack: Stack, dice: random.Random) -> Undo | None:
    """The way to a broker is a black hole, slow, lossy, or resets every connection."""
    name = dice.choice(stack.kafka)
    mode = dice.choice((Mode.HOLE, Mode.RESET, Mode.SLOW, Mode.LOSSY))
    return stack.brokers.cut(name, dice.choice(stack.brokers.nodes(name)), mode, stack.tend)


def lose_api(stack: Stack, dice: random.Random) -> Undo | None:
    """The API server dies; it comes back without its watch cache."""
    if stack.is_api_down:
        return None
    stack.is_api_down = True
    stack.cluster.control_plane.kill_apiserver()
    return stack.restart_api


def lose_document(stack: Stack, dice: random.Random) -> None:
    """A ConfigMap is deleted, edited, or replaced by an older copy, while everything runs."""
    source = dice.choice(stack.sources)
    if stack.is_api_down or not (names := sorted(source.documents())):
        return
    name, kubectl = dice.choice(names), stack.cluster.control_plane.kubectl
    older = [copy[name] for copy in source.copies if name in copy]
    match dice.choice(("delete", "edit", "restore")):
        case "edit":
            kubectl(
                "patch",
                "configmap",
                name,
                "--type=merge",
                "-p",
                json.dumps({"data": {"document.json": "{}"}}),
            )
        case "restore" if older:
            kubectl(
                "patch",
                "configmap",
                name,
                "--type=merge",
                "-p",
                json.dumps(_content(dice.choice(older))),
            )
        case _:
            kubectl("delete", "configmap", name, "--ignore-not-found")


def reassign(stack: Stack, dice: random.Random) -> None:
    """Replicas move to other brokers; the leader's epoch grows, also where the leader stays."""
    topics = dice.choice(stack.streams).loads["main"].topics
    if not topics or len(stack.brokers.nodes("main")) < 3:
        return
    topic = dice.choice(sorted(topics))
    orders = {p: dice.sample((1, 2, 3), dice.randint(2, 3)) for p in range(topics[topic])}
    with stack.brokers.exclusive("main", stack.tend) as is_free:
        if is_free:  # it takes all nodes
            stack.brokers["main"].reassign(topic, orders)


def grow_topic(stack: Stack, dice: random.Random) -> None:
    """A topic gets a partition."""
    source = dice.choice(stack.streams)
    name = dice.choice(sorted(source.loads))
    if not source.loads[name].topics:
        return
    topic, count = dice.choice(sorted(source.loads[name].topics.items()))
    with stack.steady(name):
        stack.brokers[name].admin.add_partitions(topic, count + 1)
    source.loads[name].set_partitions(topic, count + 1)


def recreate_topic(stack: Stack, dice: random.Random) -> None:
    """A topic is deleted after everything was delivered, and created again."""
    source = dice.choice(stack.streams)
    name = dice.choice(sorted(source.loads))
    load = source.loads[name]
    if source.plan.on_data_loss == "Fail" or not load.topics:
        return
    topic = dice.choice(sorted(load.topics))
    count = load.topics[topic]
    with load.without(topic):
        try:
            wait_until(
                lambda: _is_drained(stack, source, name, topic),
                _DRAINED,
                "a topic to be drained",
                interval=1,
            )
            with stack.steady(name):
                source.dump(name, topic)
                stack.brokers[name].admin.delete_topic(topic)
                stack.brokers[name].admin.create_topic(topic, partitions=count)
        finally:
            load.set_partitions(topic, count)


def elect_uncleanly(stack: Stack, dice: random.Random) -> None:
    """A replica that has missed records becomes the leader.

    The log is truncated, and grows again.
    """
    accepting = [source for source in stack.streams if source.plan.on_data_loss == "Continue"]
    if not accepting or len(stack.brokers.nodes("main")) < 3:
        return
    source = dice.choice(accepting)
    load = source.loads["main"]
    if not load.topics:
        return
    topic = dice.choice(sorted(load.topics))
    with stack.brokers.exclusive("main", stack.tend) as is_free:
        if is_free:
            elect(
                stack.brokers,
                load,
                topic,
                dice,
                tend=stack.tend,
                dump=lambda: _dumped(source, topic),
            )


def _dumped(source: Source, topic: str) -> Undo:
    before, committed = source.dump("main", topic), source.committed()
    return lambda: note_cut(source.folder, before, source.dump("main", topic), committed)


def remove_cluster(stack: Stack, dice: random.Random) -> Undo | None:
    """A cluster is taken out of a source, and put back later."""
    source = dice.choice(stack.streams)
    if stack.is_api_down:
        return None
    cluster: dict[str, Any] = dice.choice(source.kafka["clusters"])
    cluster["active"] = False
    source.apply()

    def undo() -> None:
        cluster["active"] = True
        source.apply()

    return undo


def rescale(stack: Stack, dice: random.Random) -> None:
    """The number of readers changes."""
    source = dice.choice(stack.sources)
    if not stack.is_api_down:
        source.spec["parallelism"] = dice.randint(1, 6)
        source.apply()


def change_hosts(stack: Stack, dice: random.Random) -> None:
    """The number of applications of a source changes; one that goes hands its splits over first."""
    several = [source for source in stack.sources if source.hosts is not None]
    if several and not stack.is_api_down:
        source = dice.choice(several)
        source.hosts = dice.randint(1, 3)
        source.apply()


def change_strategy(stack: Stack, dice: random.Random) -> None:
    """Another assigner, and a rebalance at once."""
    source = dice.choice(stack.sources)
    if not stack.is_api_down:
        source.spec["assignment"] = {"strategy": dice.choice(STRATEGIES)}
        source.spec["rebalanceNonce"] += 1
        source.apply()


def suspend(stack: Stack, dice: random.Random) -> Undo | None:
    """A source is stopped, and continues later."""
    source = dice.choice(stack.sources)
    if stack.is_api_down:
        return None
    source.spec["suspend"] = True
    source.apply()

    def undo() -> None:
        source.spec["suspend"] = False
        source.apply()

    return undo


def _content(copy: dict[str, Any]) -> dict[str, Any]:
    return {"data": copy.get("data"), "binaryData": copy.get("binaryData")}


def _is_drained(stack: Stack, source: Source, name: str, topic: str) -> bool:
    stack.tend()
    committed = source.committed()
    with stack.steady(name):
        ends = stack.brokers[name].admin.offsets(topic)
        ids = broker_log.topic_ids(stack.brokers[name].bootstrap, [topic])
    reached = {p: committed.get((name, topic, p), (None, -1)) for p in ends}
    return all(
        reached[p][0] == ids.get(topic) and reached[p][1] >= end for p, (_, end) in ends.items()
    )


def _jvms(stack: Stack, dice: random.Random, role: str) -> list[psutil.Process]:
    """Return the processes of one source's driver or of one of its executors."""
    if stack.is_api_down:
        return []
    source = dice.choice(stack.sources)
    pods = source.executors if role == "executor" else source.drivers
    found = stack.cluster.control_plane.get("pods", dice.choice(pods)) if pods else None
    statuses = found["status"].get("containerStatuses", []) if found else []
    pids = [
        int(one["containerID"].removeprefix("process://"))
        for one in statuses
        if "running" in one["state"]
    ]
    with contextlib.suppress(psutil.NoSuchProcess):
        return [
            process
            for process in map(psutil.Process, pids)
            if process.ppid() == stack.cluster.node.pid
        ]
    return []


def _frozen(roots: Iterable[psutil.Process]) -> Undo:
    stopped: list[psutil.Process] = []
    for root in roots:
        with contextlib.suppress(psutil.NoSuchProcess):
            stopped += [root, *root.children(recursive=True)]
    for process in stopped:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.suspend()

    def undo() -> None:
        for process in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    return undo


FAULTS: Final[dict[str, Act]] = {
    act.__name__: act
    for act in (
        kill_operator,
        freeze_operator,
        kill_driver,
        kill_executor,
        kill_python,
        freeze_driver,
        freeze_executor,
        kill_broker,
        freeze_broker,
        disturb_network,
        lose_api,
        lose_document,
        reassign,
        grow_topic,
        recreate_topic,
        elect_uncleanly,
        remove_cluster,
        rescale,
        change_hosts,
        change_strategy,
        suspend,
    )
}

KINDS: Final = (*FAULTS, "kill_driver", "kill_executor", "rescale", "rescale", "lose_document")
"""What schedules draw from, with weights."""

EXPECTED: Final = (TestbedError,)
"""A fault that cannot happen now, such as an edit of what was deleted, is skipped."""
