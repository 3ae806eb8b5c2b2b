"""Live rescale under load, against a restart of Spark's native Kafka source, in one run.

JSON on stdout, a table on stderr. Both applications run beside each other on the same cluster and
read the same topics; their rescales alternate, so that drift of the machine's speed hits both.

Each has one executor with `--slots` task slots. With the default of 5 no one waits for a process;
with fewer, ours asks for executors before it takes more readers, which the rival does not. The
rival's driver lives on: it stops its query and starts it again, which is its best case.
"""

import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.statistics_of import spread
from demo.scene import TOPICS, Scene, new_cluster
from support.story.load import Load
from support.story.operator_process import OperatorProcess
from support.story.sink import check_delivery, rows
from support.story.watch import Batch, batches
from testbed.errors import CommandError
from testbed.jars import ensure_jars
from testbed.progress import Progress
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

TRIGGER: Final = 0.5
"""Seconds; trigger interval of both applications."""

SIZES: Final = (4, 2, 5, 3)
"""Parallelism, in turn: up and down."""

console = Console(stderr=True, highlight=False, soft_wrap=True)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Native:
    """The rival: an application on Spark's own Kafka source that stops and starts its query."""

    def __init__(self, scene: Scene, slots: int) -> None:
        self._scene = scene
        self._slots = slots
        self._control = scene.data / "native-parallelism"

    def start(self, parallelism: int) -> None:
        """Submit it, in the same way and with the same resources as ours."""
        self.ask(parallelism)
        jars = ",".join(
            f"local://{jar}" for jar in sorted(ensure_jars("spark-kafka").glob("*.jar"))
        )
        program = self._scene.data / "native_rescale_app.py"
        program.write_text((CHECKOUT / "benchmarks" / "native_rescale_app.py").read_text())
        cluster = self._scene.cluster
        manifest = {
            "apiVersion": "sparkoperator.k8s.io/v1beta2",
            "kind": "SparkApplication",
            "metadata": {"name": "native", "namespace": "default"},
            "spec": {
                "type": "Python",
                "mode": "cluster",
                "pythonVersion": "3",
                "sparkVersion": "4.2.0",
                "image": cluster.image(),
                "mainApplicationFile": "local:///data/native_rescale_app.py",
                "arguments": [cluster.kafka().bootstrap, ",".join(TOPICS), "10"],
                "restartPolicy": {
                    "type": "Never",
                    "onSubmissionFailureRetryInterval": 5,
                    "onFailureRetryInterval": 5,
                },
                "sparkConf": {
                    **cluster.driver_spark_conf,
                    "spark.jars": jars,
                    "spark.kubernetes.driver.pod.excludedFeatureSteps": (
                        "org.apache.spark.deploy.k8s.features.NetworkPolicyFeatureStep"
                    ),
                },
                "driver": {
                    "cores": 1,
                    "memory": "768m",
                    "serviceAccount": "spark",
                    "template": self._pod("driver"),
                },
                "executor": {
                    "instances": 1,
                    "cores": self._slots,
                    "memory": "768m",
                    "template": self._pod("executor"),
                },
            },
        }
        cluster.control_plane.apply(manifest)

    def ask(self, parallelism: int) -> None:
        """Ask for another number of partitions."""
        new = self._control.with_suffix(".new")
        new.write_text(str(parallelism))
        new.replace(self._control)  # at once: the driver reads it all the time

    def batches(self) -> list[Batch]:
        """Finished micro-batches; none before there is a driver."""
        try:
            return list(batches(self._scene.cluster.logs("native-driver")))
        except CommandError:
            return []

    def _pod(self, role: str) -> dict[str, Any]:
        mount = {"name": "data", "mountPath": "/data"}
        return {
            "spec": {
                "containers": [{"name": f"spark-kubernetes-{role}", "volumeMounts": [mount]}],
                "volumes": [{"name": "data", "hostPath": {"path": str(self._scene.data)}}],
            }
        }


@app.command()
def main(
    rescales: int = typer.Option(20, help="Rescales of each."),
    rate: int = typer.Option(2000, help="Records per second that are produced."),
    slots: int = typer.Option(
        max(SIZES), help="Task slots of an executor; fewer than readers: ours wait for more."
    ),
    rival: bool = typer.Option(True, help="Measure Spark's native source too."),
) -> None:
    """Measure, print, and fail if a record was lost or duplicated."""
    progress = Progress(console)
    with new_cluster(
        Path(tempfile.mkdtemp(prefix="balanced-source-bench-")), progress=progress
    ) as cluster:
        scene = Scene(
            cluster,
            OperatorProcess(cluster.control_plane, spark_conf=cluster.driver_spark_conf),
            slots=slots,
        )
        native = Native(scene, slots) if rival else None
        result = {"slots": slots} | measure(
            scene, native, rescales=rescales, rate=rate, progress=progress
        )
        scene.operator.stop()
    sys.stdout.write(json.dumps(result, indent=1) + "\n")
    show(result)
    ours = result["ours"]
    raise typer.Exit(1 if ours["lost"] or ours["duplicated"] or ours["restarts"] else 0)


def measure(
    scene: Scene, native: Native | None, *, rescales: int, rate: int, progress: Progress
) -> dict[str, Any]:
    """One run."""
    cluster = scene.cluster
    cluster.kafka().admin.create_topics(TOPICS)
    scene.operator.start()
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    with Load(cluster.kafka().bootstrap, rate=rate, topics=tuple(TOPICS)) as load:
        with progress.step("start the applications"):
            _start(scene, native, rate)
        incarnation = scene.source.report.incarnation
        sizes = itertools.islice(itertools.cycle(SIZES), rescales)
        for number, size in enumerate(sizes, 1):
            ours.append(
                _rescale(scene.batches, lambda n=size: scene.source.patch({"parallelism": n}), size)
            )
            if native is not None:
                theirs.append(_rescale(native.batches, lambda n=size: native.ask(n), size))
            console.print(
                f"rescale {number}/{rescales} to {size}: {ours[-1]} native: {theirs[-1:] or '-'}",
                markup=False,
            )
        restarts = scene.source.report.incarnation - incarnation
        load.stop()
        with progress.step("read the rest"):
            wait_until(
                lambda: rows(scene.sink) >= load.produced,
                120,
                "all records to arrive",
                interval=0.5,
            )
        delivery = check_delivery(scene.sink, scene.expected)
    result: dict[str, Any] = {
        "benchmark": "rescale",
        "trigger_seconds": TRIGGER,
        "records_per_second": round(load.rate),
        "ours": {
            **_summary(ours),
            "produced": load.produced,
            "delivered": delivery.delivered,
            "lost": delivery.lost,
            "duplicated": delivery.duplicated + delivery.unexpected,
            "restarts": restarts,
        },
    }
    if theirs:
        result["native_stop_and_start"] = _summary(theirs)
        result["gap_ratio_native_to_ours"] = spread(
            [b["gap"] / a["gap"] for a, b in zip(ours, theirs, strict=True)], digits=2
        )
    return result


def show(result: dict[str, Any]) -> None:
    """The table for people."""
    table = Table(
        "",
        "patch → first batch begins",
        "… is committed",
        "longest gap in output",
        title="seconds: min / median / max",
    )
    for name in ("ours", "native_stop_and_start"):
        if name in result:
            figures = (result[name][key] for key in ("begins", "committed", "gap"))
            table.add_row(name, *(f"{f['min']} / {f['median']} / {f['max']}" for f in figures))
    console.print(table)


def _start(scene: Scene, native: Native | None, rate: int) -> None:
    scene.apply()
    if native is not None:
        native.start(2)
    scene.source.wait_adopted(parallelism=2, splits=13, timeout=300)
    wait_until(lambda: scene.has_caught_up(rate), 120, "our application to catch up", interval=0.5)
    if native is not None:
        wait_until(lambda: len(native.batches()) > 3, 300, "the rival to read", interval=1)
        wait_until(
            lambda: native.batches()[-1].rows < rate * 3, 300, "the rival to catch up", interval=1
        )


def _rescale(
    finished: Callable[[], list[Batch]], ask: Callable[[], None], size: int
) -> dict[str, float]:
    """Ask for another size.

    Returns seconds until the first micro-batch with it, and the longest gap in output.
    """
    seen = finished()[-1]
    asked = time.time()
    ask()

    def first() -> Sequence[Batch] | None:
        """The batches from the last one before until two with the new size have ended."""
        newer = [batch for batch in finished() if batch.ended >= seen.ended]
        fitting = [
            batch
            for batch in newer
            if batch.parallelism == size and batch.planned > asked and batch.rows
        ]
        return newer if len(fitting) > 1 else None

    window = wait_until(first, 120, f"micro-batches with {size} readers", interval=0.3) or []
    batch = next(b for b in window if b.parallelism == size and b.planned > asked)
    ends = [b.ended for b in window if b.rows]
    gap = max(after - before for before, after in itertools.pairwise(ends))
    return {
        "begins": round(batch.planned - asked, 3),
        "committed": round(batch.ended - asked, 3),
        "gap": round(gap, 3),
    }


def _summary(measured: Sequence[dict[str, float]]) -> dict[str, Any]:
    return {key: spread([entry[key] for entry in measured]) for key in measured[0]}


if __name__ == "__main__":
    app()
