"""The stack of the full engine: started once, disturbed for a long time."""

import contextlib
from functools import partial
from pathlib import Path
from typing import Final, Self

from chaos.full.source import Plan, Source
from chaos.light.brokers import Brokers
from chaos.light.load import Load
from support.story.operator_process import OperatorProcess
from testbed.cluster import ProcessCluster
from testbed.progress import Progress
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

PLANS: Final = (
    Plan(name="orders", topics={"main": {"orders-a": 4, "orders-b": 2}}, on_data_loss="Fail"),
    Plan(
        name="payments",
        topics={"main": {"payments-a": 3}, "east": {"payments-a": 2}},
        strategy="LoadAware",
        limits={"maxOffsetsPerTrigger": 200},
        slots=3,
    ),
)

_FAST: Final = {"RESYNC_SECONDS": "5", "SAVE_INTERVAL_SECONDS": "1"}
_START: Final = 420.0
_RATE: Final = 60


class Stack:
    """Control plane, process node, Spark operator, our operator, brokers, sources and load; a context manager.

    Args:
        run_dir: gets everything.
        brokers: shared with the light engine.
        progress: told about each step.
        plans: of the sources.
    """

    def __init__(self, run_dir: Path, brokers: Brokers, progress: Progress, plans: tuple[Plan, ...] = PLANS) -> None:
        self.brokers = brokers
        self._progress = progress
        self._plans = plans
        self.kafka = sorted({name for plan in plans for name in plan.topics})
        """Names of the Kafka clusters that are read."""
        self._exit = contextlib.ExitStack()
        self.cluster = ProcessCluster(run_dir, crds=[CHECKOUT / "crds"], keep_logs=True, progress=progress)
        self.sources: list[Source] = []
        self.is_api_down = False
        self.is_operator_up = True
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
            self.cluster.control_plane, spark_conf=self.cluster.driver_spark_conf, settings=_FAST
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
            self.cluster.control_plane.start_apiserver()
            self.is_api_down = False

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

    def _started(self, plan: Plan) -> Source:
        bootstraps = {name: self.brokers[name].bootstrap for name in plan.topics}
        source = Source(plan, self.cluster, bootstraps)
        for name, topics in plan.topics.items():
            self.brokers[name].admin.create_topics(topics)
            load = Load(name, bootstraps[name], dict(topics), rate=_RATE, seed=0)
            load.fill(200)
            source.loads[name] = load
            load.start()
        (source.folder / "bounds.json").write_text("{}")
        source.apply()
        return source


def _has_begun(source: Source) -> bool:
    splits = sum(count for topics in source.plan.topics.values() for count in topics.values())
    return len(source.committed()) >= splits
