"""The stack of the full engine: started once, disturbed for a long time."""

import contextlib
import dataclasses
import os
import random
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Self

from confluent_kafka import KafkaException

from balanced_source_spark.kafka import native
from chaos.checker import broker_log
from chaos.full.source import NATIVE_IMAGE, PYTHON_IMAGE, Plan, Source
from chaos.light.brokers import Brokers, Undo
from chaos.stable_ends import stable_ends
from support.story.operator_process import OperatorProcess
from testbed.cache import Cache
from testbed.cluster import ProcessCluster
from testbed.errors import DeadlineError, MissingPrerequisiteError, TestbedError
from testbed.images import spark_image
from testbed.process_node.images import ProcessImage
from testbed.progress import Progress
from testbed.venvs import ensure_venv
from testbed.versions import CHECKOUT, SPARK
from testbed.waiting import wait_until

PLANS: Final = (
    Plan(
        name="orders",
        topics={"main": {"orders-a": 4, "orders-b": 2}},
        on_data_loss="Fail",
        image=NATIVE_IMAGE,
    ),
    Plan(
        name="payments",
        topics={"main": {"payments-a": 3}, "east": {"payments-a": 2}, "west": {"payments-b": 1}},
        strategy="LoadAware",
        limits={"maxOffsetsPerTrigger": 200},
        slots=3,
        hosts=2,
    ),
    Plan(
        name="refunds",
        topics={"main": {"refunds-a": 3}},
        strategy="Hash",
        limits={"maxOffsetsPerSplit": 100},
        image=NATIVE_IMAGE,
    ),
)
"""Of the sources that are there all the time."""

_SMALL_WATCH_CACHE: Final = "--watch-cache-sizes=configmaps#10"
"""After a restart: a watch from an older revision is refused soon."""

_FAST: Final = {"RESYNC_SECONDS": "5", "SAVE_INTERVAL_SECONDS": "1"}
_START: Final = 1500.0
_PART: Final = 240.0
"""Seconds that a part may take to start again."""
_LOOK_EVERY: Final = 10.0
"""Seconds between two looks of the user at the conditions."""
_ATTEMPTS: Final = 3
_RATE: Final = 60
_PREFILL: Final = 200
_BATCH: Final = 1500
"""Records per cluster of a source that ends."""
_SEVERAL: Final = 0.3
"""Share of such sources that read all clusters."""


class Stack:
    """Control plane, process node, Spark operator, our operator, brokers, sources and load.

    A context manager.

    Args:
        run_dir: gets everything.
        brokers: shared with the light engine.
        progress: told about each step.
        plans: of the sources.
    """

    def __init__(
        self, run_dir: Path, brokers: Brokers, progress: Progress, plans: tuple[Plan, ...] = PLANS
    ) -> None:
        self.brokers = brokers
        self._progress = progress
        self._plans = plans
        self.kafka = sorted({name for plan in plans for name in plan.topics})
        """Names of the Kafka clusters that are read."""
        self._exit = contextlib.ExitStack()
        self.cluster = ProcessCluster(
            run_dir,
            crds=[CHECKOUT / "crds"],
            extra_images=_native_image(),
            keep_logs=True,
            progress=progress,
        )
        self.sources: list[Source] = []
        self.is_api_down = False
        self.is_operator_up = True
        self.undos: list[tuple[float, Undo]] = []
        """Of faults that last, and when they are due."""
        self.tell: Callable[[str], None] = lambda _: None
        self.user_actions: list[str] = []
        """What had to be decided since this was emptied."""
        self._next_look = 0.0
        self.counted = 0
        """Records that earlier schedules have counted already."""

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as parts:
            self._start(parts)
            self._exit = parts.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def operator_log(self) -> str:
        """Return what all runs of the operator have logged."""
        files = sorted((self.cluster.run_dir / "logs").glob("operator-*.log"))
        return "".join(file.read_text(errors="replace") for file in files)

    def _start(self, parts: contextlib.ExitStack) -> None:
        parts.enter_context(self.cluster)
        self.operator = OperatorProcess(
            self.cluster.control_plane,
            spark_conf=self.cluster.driver_spark_conf,
            settings=_FAST,
            start_timeout=_PART,
        )
        parts.callback(self.operator.stop)
        self.operator.start()
        parts.callback(self._stop_load)
        for plan in self._plans:
            self.sources.append(self._started(plan))
        with self._progress.step("drivers and executors start"):
            for source in self.sources:
                wait_until(partial(_has_begun, source), _START, f"{source.name} to read")

    def _stop_load(self) -> None:
        for source in self.sources:
            for load in source.loads.values():
                load.stop()

    def restart_operator(self) -> None:
        """Start our operator again after it was killed."""
        if not self.is_operator_up:
            self.operator.start()
            self.is_operator_up = True

    def restart_api(self) -> None:
        """Start the API server again after it was killed."""
        if self.is_api_down:
            try:
                self.cluster.control_plane.start_apiserver(_SMALL_WATCH_CACHE)
            except DeadlineError:
                wait_until(
                    self.cluster.control_plane.ready,
                    _PART,
                    "the API server to be ready",
                    interval=1,
                )
            self.is_api_down = False

    def tend(self) -> None:
        """Undo what has lasted long enough, and start what has ended by itself.

        Called while anything is waited for.
        """
        if self.is_operator_up and not self.is_api_down and not self.operator.is_running:
            self.tell(
                "the operator has ended, as without its lease: start it again, as a Deployment does"
            )
            self.operator.start()
        now = time.monotonic()
        for entry in [entry for entry in self.undos if entry[0] <= now]:
            self.undos.remove(entry)
            try:
                entry[1]()
            except TestbedError as error:
                # such as an edit while the API server is down: once more, later
                self.tell(f"undo later: {str(error)[:200]}")
                self.undos.append((now + 2, entry[1]))
        if now >= self._next_look and self.is_operator_up and not self.is_api_down:
            self._next_look = now + _LOOK_EVERY
            with contextlib.suppress(TestbedError):
                self._do_as_told()

    def _do_as_told(self) -> None:
        """Delete the states that the conditions ask the user to delete."""
        for source in self.sources:
            if source.has_unreadable_state:
                action = f"state of {source.name} deleted: it could not be read"
                self.tell(action)
                self.user_actions.append(action)
                source.delete_state()

    def steady(self, *names: str) -> contextlib.AbstractContextManager[None]:
        """Wait until no node of some clusters is disturbed, and keep it so."""
        return self.brokers.steady(*names, tend=self.tend)

    def heal(self) -> None:
        """Undo everything, and produce no more until `resume_load`."""
        self.restart_api()
        self.restart_operator()
        self.brokers.heal()
        for source in self.sources:
            for load in source.loads.values():
                load.pause()

    def resume_load(self) -> None:
        """Produce again."""
        for source in self.sources:
            for load in source.loads.values():
                load.resume()

    @property
    def streams(self) -> list[Source]:
        """Sources without an end."""
        return [source for source in self.sources if not source.plan.is_bounded]

    def ends(self, source: Source) -> dict[tuple[str, str, int], tuple[str, int]]:
        """Return how far the logs of a source's topics are: split → topic id and next offset.

        Raises:
            KafkaException: the brokers do not answer.
        """
        for _ in range(_ATTEMPTS - 1):
            # A client may drop a question when it learns that the brokers are others now.
            with contextlib.suppress(KafkaException):
                return self._asked_ends(source)
        return self._asked_ends(source)

    def _asked_ends(self, source: Source) -> dict[tuple[str, str, int], tuple[str, int]]:
        found = {}
        with self.steady(*source.loads):
            for name, load in source.loads.items():
                ids = broker_log.topic_ids(self.brokers[name].bootstrap, load.topics)
                for topic in load.topics:
                    admin = self.brokers[name].admin
                    for partition, end in stable_ends(admin, name, topic, tell=self.tell).items():
                        found[name, topic, partition] = ids[topic], end
        return found

    def start_batch(self, seed: int) -> None:
        """Start a source that ends, for one schedule."""
        dice = random.Random(f"batch-{seed}")
        clusters = self.kafka if dice.random() < _SEVERAL else ["main"]
        plan = Plan(
            name=f"batch{seed}",
            topics={name: {f"batch{seed}-a": dice.randint(1, 4)} for name in clusters},
            limits=dice.choice(({}, {"maxOffsetsPerTrigger": 100})),
            image=dice.choice((PYTHON_IMAGE, NATIVE_IMAGE)),
            is_bounded=True,
        )
        self.sources.append(self._started(plan))

    def end_batch(self) -> None:
        """Delete sources that end, with their topics."""
        for source in [source for source in self.sources if source.plan.is_bounded]:
            source.delete()
            self.sources.remove(source)
            with self.steady(*source.loads):
                for name, topics in source.plan.topics.items():
                    self.brokers[name].admin.delete_topic(*topics)

    def _started(self, plan: Plan) -> Source:
        source = Source(
            plan, self.cluster, {name: self.brokers[name].bootstrap for name in plan.topics}
        )
        with self.steady(*plan.topics):
            for name, topics in plan.topics.items():
                self.brokers[name].admin.create_topics(topics)
            source.produce(rate=_RATE, prefill=_BATCH if plan.is_bounded else _PREFILL)
        source.write_bounds(self.ends(source))
        source.apply()
        return source


def _has_begun(source: Source) -> bool:
    splits = sum(count for topics in source.plan.topics.values() for count in topics.values())
    return len(source.committed()) >= splits


def _native_image() -> dict[str, ProcessImage]:
    found = find_spec(native.MODULE)
    if found is None or found.origin is None:
        raise MissingPrerequisiteError(f"{native.MODULE} is missing. Run `make native`.")
    cache = Cache()
    made = spark_image(ensure_venv(SPARK[0], cache), cache)
    site = Path(found.origin).parent.parent
    path = os.pathsep.join((made.env["PYTHONPATH"], str(site)))
    return {NATIVE_IMAGE: dataclasses.replace(made, env={**made.env, "PYTHONPATH": path})}
