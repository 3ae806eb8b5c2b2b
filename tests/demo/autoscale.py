"""A load goes up and down, and autoscalers follow it: ``python -m demo.autoscale``.

Kubernetes' own horizontal pod autoscaler (the controller of the testbed's control plane) follows
the lag of a running source, then `spec.autoscaling` follows the same load. Each record takes a
fixed time (`demo.slow`), so the number of readers decides what is read. Readers are slots of one
executor. At the end the broker's log is compared with the sink.
"""

import contextlib
import dataclasses
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import typer
import yaml
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from demo.curve import Curve, Point, picture
from demo.scene import EXAMPLE, fit_machine, new_cluster
from support.metrics_server import METRIC, MetricsServer
from support.story.load import Load
from support.story.operator_process import OperatorProcess
from support.story.sink import Delivery, check_delivery, rows
from support.story.watch import SourceView
from testbed.cache import Cache
from testbed.cluster import ProcessCluster
from testbed.errors import DeadlineError
from testbed.images import spark_image
from testbed.ports import PortPool
from testbed.process_node.images import ProcessImage
from testbed.progress import Progress
from testbed.venvs import ensure_venv
from testbed.versions import CHECKOUT, SPARK
from testbed.waiting import wait_until

IMAGE: Final = "balanced-source/spark:slow"
NAME: Final = "orders"
PARTITIONS: Final = 24
MOST: Final = 8
"""Readers that an autoscaler may use."""

STEPS: Final[Sequence[tuple[int, float]]] = ((500, 40.0), (2500, 120.0), (500, 120.0))
"""Records per second, and for how many seconds."""

LAG_PER_READER: Final = 1000
"""Records of lag for each reader, the target of the HPA."""

SCALE_DOWN_AFTER: Final = 30
"""Seconds for which fewer readers must suffice, for both autoscalers."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False, soft_wrap=True)


class AutoscaleScene:
    """A source of one topic, its operator, and what the operator's metrics say of it.

    Args:
        cluster: started, with a broker.
        operator: not started yet.
        metrics_port: of the operator.
    """

    def __init__(
        self, cluster: ProcessCluster, operator: OperatorProcess, metrics_port: int
    ) -> None:
        self.cluster, self.operator = cluster, operator
        self.kubectl = cluster.control_plane.kubectl
        self.source = SourceView(self.kubectl, NAME)
        self._port = metrics_port
        self._data = cluster.run_dir / "data"
        self._data.mkdir(exist_ok=True)
        self.sink = self._data / NAME

    def apply(self) -> None:
        """``kubectl apply`` of the example, with one topic and records that take their time."""
        file = self.cluster.run_dir / f"{NAME}.yaml"
        file.write_text(yaml.safe_dump(self._manifest(), sort_keys=False))
        self.kubectl("apply", "-f", str(file))

    def scale(self, readers: int) -> None:
        """``kubectl scale``."""
        self.kubectl("scale", f"bsrc/{NAME}", f"--replicas={readers}")

    def look(self) -> tuple[int, int] | None:
        """Return readers and lag, as the operator serves them; None while one is unknown."""
        url = f"http://127.0.0.1:{self._port}/metrics"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                families = list(text_string_to_metric_families(answer.read().decode()))
        except OSError:
            return None
        samples = {sample.name: sample.value for one in families for sample in one.samples}
        found = [samples.get(f"balanced_source_{word}") for word in ("readers", "lag_records")]
        return None if None in found else (int(found[0] or 0), int(found[1] or 0))

    def is_calm(self) -> bool:
        """Whether one reader reads, and less than a second's load is left."""
        readers, lag = self.look() or (0, 0)
        return readers == 1 and lag < STEPS[0][0]

    def identity(self) -> tuple[Any, ...]:
        """Return what a restart would change."""
        name = str(self.source.status["application"]["name"])
        plane = self.cluster.control_plane
        application = plane.get("sparkapplications.sparkoperator.k8s.io", name) or {}
        pod = plane.get("pods", f"{name}-driver") or {}
        restarts = [one["restartCount"] for one in pod["status"].get("containerStatuses", [])]
        metadata = application["metadata"]
        return (
            metadata["uid"],
            metadata["generation"],
            pod["metadata"]["uid"],
            restarts,
            self.source.report.incarnation,
        )

    def delivery(self) -> Delivery:
        """Compare the sink with the broker's log."""
        ends = self.cluster.kafka().admin.offsets(NAME)
        return check_delivery(self.sink, {("main", NAME, p): end for p, (_, end) in ends.items()})

    def _manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
        spec = manifest["spec"]
        spec["parallelism"] = 1
        kafka, application = spec["source"]["kafka"], spec["application"]
        kafka["clusters"][0]["bootstrapServers"] = self.cluster.kafka().bootstrap
        kafka["subscription"]["topics"] = [NAME]
        application["image"] = IMAGE
        application["pipeline"]["transform"] = "demo.slow:pause"
        application["pipeline"]["trigger"]["processingTime"] = "1s"
        application["executor"]["cores"] = MOST
        fit_machine(spec, self._data)
        return manifest


class Recorder:
    """Looks at the source each second while a load runs; a context manager.

    Args:
        scene: what is looked at.
        on_lag: is told each lag.

    Attributes:
        load: records per second that are produced now.
    """

    def __init__(self, scene: AutoscaleScene, on_lag: Callable[[int], None]) -> None:
        self._scene, self._on_lag = scene, on_lag
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._points: list[Point] = []
        self.load = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def curve(self, name: str) -> Curve:
        """Return all that was seen."""
        return Curve(name=name, points=tuple(self._points))

    def _run(self) -> None:
        began = time.monotonic()
        while not self._over.wait(1):
            if (found := self._scene.look()) is not None:
                readers, lag = found
                self._on_lag(lag)
                at = time.monotonic() - began
                self._points.append(Point(at=at, load=self.load, readers=readers, lag=lag))


class Story:
    """Plays the load to one autoscaler after the other.

    Args:
        scene: its source reads with one reader.
        metrics: what the HPA asks.
        progress: is told what happens.

    Attributes:
        produced: records so far.
    """

    def __init__(self, scene: AutoscaleScene, metrics: MetricsServer, progress: Progress) -> None:
        self._scene, self._metrics, self._progress = scene, metrics, progress
        self.produced = 0

    def follow(self, name: str) -> Curve:
        """Play the load, and return what was seen until readers have become fewer again."""
        with Recorder(self._scene, self._tell) as recorder:
            for rate, seconds in STEPS:
                with self._progress.step(f"{name}: {rate} records/s for {seconds:g} s"):
                    self._produce(recorder, rate, seconds)
            curve = recorder.curve(name)
            if not curve.is_followed:
                with (
                    self._progress.step(f"{name}: fewer readers"),
                    contextlib.suppress(DeadlineError),
                ):
                    wait_until(lambda: recorder.curve(name).is_followed, 300, "fewer readers")
                curve = recorder.curve(name)
        console.print(curve.text(), markup=False)
        return curve

    def calm(self) -> None:
        """Return to one reader, and wait until all is read."""
        with self._progress.step("kubectl scale --replicas=1, and the rest is read"):
            wait_until(lambda: rows(self._scene.sink) >= self.produced, 600, "the rest", interval=1)
            self._scene.scale(1)
            wait_until(self._scene.is_calm, 300, "one reader", interval=1)

    def _produce(self, recorder: Recorder, rate: int, seconds: float) -> None:
        bootstrap = self._scene.cluster.kafka().bootstrap
        recorder.load = rate
        with Load(bootstrap, rate=rate, topics=(NAME,)) as load:
            threading.Event().wait(seconds)
        recorder.load = 0
        self.produced += load.produced

    def _tell(self, lag: int) -> None:
        self._metrics.value = lag


def play(scene: AutoscaleScene, progress: Progress) -> tuple[list[Curve], int, Delivery]:
    """Play all acts.

    Returns what the autoscalers did, how many restarts there were, and what arrived.
    """
    scene.cluster.kafka().admin.create_topics({NAME: PARTITIONS})
    with progress.step("start operator"):
        scene.operator.start()
    with progress.step("kubectl apply: driver and executor start"):
        scene.apply()
        scene.source.wait_adopted(parallelism=1, splits=PARTITIONS, timeout=600)
        wait_until(scene.is_calm, 120, "the first report", interval=1)
    before = scene.identity()
    with MetricsServer(scene.cluster.control_plane, scene.cluster.run_dir) as metrics:
        story = Story(scene, metrics, progress)
        scene.cluster.control_plane.apply(_horizontal_pod_autoscaler())
        curves = [story.follow("HPA on lag")]
        scene.kubectl("delete", f"hpa/{NAME}")
        story.calm()
        scene.source.patch({"autoscaling": _autoscaling()})
        curves.append(story.follow("spec.autoscaling"))
    with progress.step("read the rest"), contextlib.suppress(DeadlineError):
        wait_until(lambda: rows(scene.sink) >= story.produced, 600, "all records", interval=1)
    return curves, int(scene.identity() != before), scene.delivery()


def _autoscaling() -> Mapping[str, Any]:
    return {
        "minReaders": 1,
        "maxReaders": MOST,
        "maxLag": "20s",
        "scaleDownDelay": f"{SCALE_DOWN_AFTER}s",
    }


def _horizontal_pod_autoscaler() -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": str(LAG_PER_READER)}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "balancedsource.io/v1alpha1",
                "kind": "BalancedSource",
                "name": NAME,
            },
            "minReplicas": 1,
            "maxReplicas": MOST,
            "metrics": [
                {"type": "External", "external": {"metric": {"name": METRIC}, "target": target}}
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": SCALE_DOWN_AFTER}},
        },
    }


def image() -> ProcessImage:
    """The image of the checkout, with the transform on its Python path."""
    cache = Cache()
    same = spark_image(ensure_venv(SPARK[0], cache), cache)
    path = f"{same.env['PYTHONPATH']}:{CHECKOUT / 'tests'}"
    return dataclasses.replace(same, env={**same.env, "PYTHONPATH": path})


def sum_up(curves: Sequence[Curve], restarts: int, delivery: Delivery, figure: Path) -> bool:
    """Draw the curves and print the figures; returns whether all is well."""
    figure.parent.mkdir(parents=True, exist_ok=True)
    figure.write_text(picture("Readers and lag while a load goes up and down", curves) + "\n")
    for example in delivery.examples:
        console.print(example, markup=False)
    for curve in curves:
        words = "" if curve.is_followed else " (readers did not go up and down)"
        console.print(f"{curve.name}: {curve.figures()}{words}", markup=False)
    is_ok = delivery.is_exact and delivery.delivered > 0 and not restarts
    is_ok = is_ok and all(curve.is_followed for curve in curves)
    hours = " ".join(f"{c.reader_hours:.3f}" for c in curves)
    console.print(f"curves in {figure}; reader-hours {hours}", markup=False)
    console.print(
        f"demo-autoscale: {'OK' if is_ok else 'FAILED'} delivered={delivery.delivered}"
        f" lost={delivery.lost} duplicated={delivery.duplicated + delivery.unexpected}"
        f" restarts={restarts}",
        markup=False,
    )
    return is_ok


@app.command()
def main(
    folder: Path | None = typer.Option(
        None, help="Where everything goes; a temporary folder by default."
    ),
    figure: Path = typer.Option(
        CHECKOUT / "build" / "demo-autoscale.svg", help="Where the curves are drawn."
    ),
) -> None:
    """Play the story.

    Exit code 1 when a record was lost or duplicated, something was restarted, or an autoscaler did
    not follow the load up and down.
    """
    progress = Progress(console)
    run_dir = folder or Path(tempfile.mkdtemp(prefix="balanced-source-demo-"))
    with (
        new_cluster(
            run_dir / "cluster",
            images={IMAGE: image()},
            progress=progress,
            keep_logs=folder is not None,
        ) as cluster,
        contextlib.closing(PortPool()) as ports,
    ):
        port = ports.take()
        operator = OperatorProcess(
            cluster.control_plane,
            spark_conf=cluster.driver_spark_conf,
            settings={"METRICS_PORT": str(port)},
        )
        scene = AutoscaleScene(cluster, operator, port)
        try:
            is_ok = sum_up(*play(scene, progress), figure)
        finally:
            operator.stop()
    raise typer.Exit(0 if is_ok else 1)


if __name__ == "__main__":
    app()
