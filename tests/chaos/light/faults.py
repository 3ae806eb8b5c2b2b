"""What happens to a schedule's parts.

Each fault is a function that may hand back how to undo it.
"""

import contextlib
import json
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil

from balanced_source_adapters.folder import assignment_path, report_path, state_path
from chaos.checker import broker_log
from chaos.light.brokers import Brokers, Undo
from chaos.light.driver import STEPS
from chaos.light.load import Load
from chaos.light.stage import Stage
from chaos.network import Mode
from chaos.world import STRATEGIES
from testbed.errors import DeadlineError, TestbedError
from testbed.waiting import wait_until

_DRAINED: Final = 20.0


@dataclass
class Scene:
    """All that faults can reach.

    Attributes:
        stage: processes and documents.
        brokers: of all clusters.
        loads: per cluster.
        copies: of documents, taken before each fault.
        dumps: how many logs were dumped before their records were destroyed.
        undos: of faults that last, and when they are due.
    """

    stage: Stage
    brokers: Brokers
    loads: dict[str, Load]
    copies: list[Path] = field(default_factory=list)
    dumps: int = 0
    undos: list[tuple[float, Undo]] = field(default_factory=list)

    def tend(self) -> None:
        """Undo what has lasted long enough, and start what should run.

        Called while anything is waited for.
        """
        now = time.monotonic()
        for entry in [entry for entry in self.undos if entry[0] <= now]:
            self.undos.remove(entry)
            entry[1]()
        self.stage.tend()

    def end_faults(self) -> None:
        """Undo all faults."""
        while self.undos:
            self.undos.pop()[1]()

    def steady(self, *clusters: str) -> contextlib.AbstractContextManager[None]:
        """Wait until no node of some clusters is disturbed, and keep it so."""
        return self.brokers.steady(*clusters, tend=self.tend)

    def keep_copy(self) -> None:
        """Copy the documents, to restore older ones later."""
        target = self.stage.folder / "copies" / str(len(self.copies))
        with contextlib.suppress(shutil.Error, OSError):  # a file was replaced meanwhile
            shutil.copytree(self.stage.documents, target)
            self.copies.append(target)

    def dump(self, cluster: str, *topics: str) -> Path:
        """Keep for the checker what the log holds now; returns the file."""
        self.dumps += 1
        file = self.stage.folder / "dumps" / f"{self.dumps:03}-{cluster}.csv"
        name = self.stage.world.name_of(cluster)
        broker_log.dump(file, name, self.brokers[cluster].bootstrap, topics)
        return file

    def is_drained(self, cluster: str, topic: str) -> bool:
        """Return whether everything in a topic is delivered and committed.

        Processes are tended meanwhile.
        """
        self.tend()
        committed, name = self.stage.committed(), self.stage.world.name_of(cluster)
        with self.steady(cluster):
            ids = broker_log.topic_ids(self.brokers[cluster].bootstrap, [topic])
            ends = self.brokers[cluster].admin.offsets(topic)
        reached = {p: committed.get((name, topic, p), (None, -1)) for p in ends}
        return all(
            reached[p][0] == ids.get(topic) and reached[p][1] >= end for p, (_, end) in ends.items()
        )

    def begun(self, cluster: str, topic: str) -> dict[int, int]:
        """Return how far each partition of a topic is delivered and committed, if anything was."""
        ids = broker_log.topic_ids(self.brokers[cluster].bootstrap, [topic])
        split = (self.stage.world.name_of(cluster), topic)
        return {
            s[2]: to
            for s, (i, to) in self.stage.committed().items()
            if s[:2] == split and i == ids.get(topic)
        }


Act = Callable[[Scene, random.Random], Undo | None]


def kill_worker(scene: Scene, dice: random.Random) -> None:
    """A reader task's process dies, in the middle of a task or between two."""
    with contextlib.suppress(psutil.NoSuchProcess):
        if (pid := scene.stage.pid("driver")) and (workers := _workers(psutil.Process(pid))):
            dice.choice(workers).kill()


def freeze_worker(scene: Scene, dice: random.Random) -> Undo | None:
    """A reader task's process stands still for a while."""
    with contextlib.suppress(psutil.NoSuchProcess):
        if (pid := scene.stage.pid("driver")) and (workers := _workers(psutil.Process(pid))):
            worker = dice.choice(workers)
            worker.suspend()
            return partial(_resume, worker)
    return None


def _resume(process: psutil.Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):  # it was killed meanwhile
        process.resume()


def kill_driver(scene: Scene, dice: random.Random) -> None:
    """The driver dies wherever it is."""
    scene.stage.kill("driver")


def crash_driver(scene: Scene, dice: random.Random) -> None:
    """The driver dies between two steps of a micro-batch."""
    unfinished = scene.stage.folder / ".crash.json"
    unfinished.write_text(json.dumps(dice.choice(STEPS)))
    unfinished.replace(scene.stage.folder / "crash.json")


def freeze_driver(scene: Scene, dice: random.Random) -> Undo:
    """The driver stands still for a while."""
    scene.stage.send("driver", signal.SIGSTOP)
    return lambda: scene.stage.send("driver", signal.SIGCONT)


def stop_driver(scene: Scene, dice: random.Random) -> Undo:
    """The query is stopped in peace and started later."""
    scene.stage.stop_driver()

    def undo() -> None:
        scene.stage.wants_driver = True

    return undo


def kill_operator(scene: Scene, dice: random.Random) -> Undo | None:
    """Local mode dies, and comes back later."""
    if scene.stage.world.is_embedded:
        return None
    scene.stage.wants_operator = False
    scene.stage.kill("operator")

    def undo() -> None:
        scene.stage.wants_operator = True

    return undo


def freeze_operator(scene: Scene, dice: random.Random) -> Undo:
    """Local mode stands still for a while."""
    scene.stage.send("operator", signal.SIGSTOP)
    return lambda: scene.stage.send("operator", signal.SIGCONT)


def kill_broker(scene: Scene, dice: random.Random) -> Undo | None:
    """A broker dies and comes back; leaders change."""
    name = dice.choice(scene.stage.world.clusters)
    return scene.brokers.kill(name, dice.choice(scene.brokers.nodes(name)), scene.tend)


def freeze_broker(scene: Scene, dice: random.Random) -> Undo | None:
    """A broker stands still: its connections stay open and no one answers."""
    name = dice.choice(scene.stage.world.clusters)
    return scene.brokers.freeze(name, dice.choice(scene.brokers.nodes(name)), scene.tend)


def disturb_network(scene: Scene, dice: random.Random) -> Undo | None:
    """The way to a broker is a black hole, slow, lossy, or resets every connection."""
    name = dice.choice(scene.stage.world.clusters)
    mode = dice.choice((Mode.HOLE, Mode.RESET, Mode.SLOW, Mode.LOSSY))
    return scene.brokers.cut(name, dice.choice(scene.brokers.nodes(name)), mode, scene.tend)


def reassign(scene: Scene, dice: random.Random) -> None:
    """Replicas move to other brokers; the leader's epoch grows, also where the leader stays."""
    topics = scene.loads["main"].topics
    if not topics or len(scene.brokers.nodes("main")) < 3:
        return
    topic = dice.choice(sorted(topics))
    orders = {p: dice.sample((1, 2, 3), dice.randint(2, 3)) for p in range(topics[topic])}
    with scene.brokers.exclusive("main", scene.tend) as is_free, contextlib.suppress(TestbedError):
        if is_free:  # it takes all nodes
            scene.brokers["main"].reassign(topic, orders)


def grow_topic(scene: Scene, dice: random.Random) -> None:
    """A topic gets more partitions."""
    name = dice.choice(scene.stage.world.clusters)
    if scene.stage.world.is_bounded or not scene.loads[name].topics:
        return
    topic, count = dice.choice(sorted(scene.loads[name].topics.items()))
    total = count + dice.randint(1, 2)
    with scene.steady(name):
        scene.brokers[name].admin.add_partitions(topic, total)
    scene.loads[name].set_partitions(topic, total)


def recreate_topic(scene: Scene, dice: random.Random) -> None:
    """A topic is deleted after everything was delivered, and recreated with other partitions."""
    name = dice.choice(scene.stage.world.clusters)
    if scene.stage.world.is_bounded or not scene.loads[name].topics:
        return
    topic, load, admin = (
        dice.choice(sorted(scene.loads[name].topics)),
        scene.loads[name],
        scene.brokers[name].admin,
    )
    before = load.topics[topic]
    with load.without(topic):
        try:
            wait_until(
                lambda: scene.is_drained(name, topic),
                _DRAINED,
                "a topic to be drained",
                interval=0.5,
            )
        except DeadlineError:
            load.set_partitions(topic, before)
            return
        count = dice.randint(1, 4)
        with scene.steady(name):
            scene.dump(name, topic)
            admin.delete_topic(topic)
            admin.create_topic(topic, partitions=count)
    load.set_partitions(topic, count)
    if scene.stage.kafka["onDataLoss"] == "Fail":
        scene.stage.accept_data_loss(f"topic {topic} was recreated")


def delete_records(scene: Scene, dice: random.Random) -> None:
    """Retention deletes records that were delivered."""
    name = dice.choice(scene.stage.world.clusters)
    if not scene.loads[name].topics:
        return
    topic = dice.choice(sorted(scene.loads[name].topics))
    with scene.steady(name):
        done = scene.begun(name, topic)
        scene.dump(name, topic)  # after that look: what is deleted is in the dump
        if done:
            scene.brokers[name].admin.delete_records(topic, done)


def remove_cluster(scene: Scene, dice: random.Random) -> Undo | None:
    """A cluster is taken out of the source, and put back later."""
    if scene.stage.world.is_embedded or scene.stage.world.is_bounded:
        return None
    cluster: dict[str, Any] = dice.choice(scene.stage.kafka["clusters"])
    cluster["active"] = False
    scene.stage.write_spec()

    def undo() -> None:
        cluster.pop("active", None)
        scene.stage.write_spec()

    return undo


def rescale(scene: Scene, dice: random.Random) -> None:
    """The number of readers changes."""
    scene.stage.spec["parallelism"] = dice.randint(1, 6)
    scene.stage.write_spec()


def change_strategy(scene: Scene, dice: random.Random) -> None:
    """Another assigner, and a rebalance at once."""
    scene.stage.spec["assignment"] = {"strategy": dice.choice(STRATEGIES)}
    scene.stage.spec["rebalanceNonce"] = scene.stage.spec.get("rebalanceNonce", 0) + 1
    scene.stage.write_spec()


def lose_document(scene: Scene, dice: random.Random) -> None:
    """A document is deleted, edited or restored from an older copy while local mode is down."""
    if scene.stage.world.is_embedded:
        return
    folder = scene.stage.documents
    file = dice.choice((state_path, assignment_path, lambda f: report_path(f, "0")))(folder)
    scene.stage.wants_operator = False
    scene.stage.kill("operator")
    dice.choice((_delete, _edit, _restore))(scene, file, dice)
    scene.stage.wants_operator = True


def _delete(scene: Scene, file: Path, dice: random.Random) -> None:
    file.unlink(missing_ok=True)


def _edit(scene: Scene, file: Path, dice: random.Random) -> None:
    if file.exists():
        file.write_text(file.read_text().replace("1", "2", 3))


def _restore(scene: Scene, file: Path, dice: random.Random) -> None:
    older = [copy / file.name for copy in scene.copies if (copy / file.name).exists()]
    if older:
        copied = file.with_name(".restored")
        shutil.copy(dice.choice(older), copied)
        copied.replace(file)


def _workers(driver: psutil.Process) -> list[psutil.Process]:
    """Return the processes that run tasks: they are children of the process that forks them."""
    daemons = driver.children()
    return [process for process in driver.children(recursive=True) if process not in daemons]


FAULTS: Final[dict[str, Act]] = {
    act.__name__: act
    for act in (
        kill_worker,
        freeze_worker,
        kill_driver,
        crash_driver,
        freeze_driver,
        stop_driver,
        kill_operator,
        freeze_operator,
        kill_broker,
        freeze_broker,
        disturb_network,
        reassign,
        grow_topic,
        recreate_topic,
        delete_records,
        remove_cluster,
        rescale,
        change_strategy,
        lose_document,
    )
}

KINDS: Final = (
    *FAULTS,
    "kill_driver",
    "crash_driver",
    "crash_driver",
    "crash_driver",
    "rescale",
    "rescale",
)
"""What schedules draw from, with weights."""
