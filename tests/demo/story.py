"""The story: start, rescale by kubectl, grow a topic, lose operator and driver, then count."""

import contextlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import typer
from rich.console import Console

from demo.scene import TOPICS, Scene, new_cluster
from support.story.load import Load
from support.story.operator_process import OperatorProcess
from support.story.sink import Delivery, check_delivery, rows
from support.story.watch import Batch, moves, owner_table
from testbed.control_plane import ADMIN
from testbed.errors import DeadlineError
from testbed.progress import Progress
from testbed.waiting import wait_until

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False, soft_wrap=True)

RATE = 6000
"""Records per second that are produced for the whole run."""


@app.command()
def main(
    keep: bool = typer.Option(False, help="Leave everything running at the end."),
    folder: Path = typer.Option(None, help="Where everything goes; a temporary folder by default."),
) -> None:
    """Play the story; exit code 1 when a record was lost or duplicated."""
    run_dir = folder or Path(tempfile.mkdtemp(prefix="balanced-source-demo-"))
    progress = Progress(console)
    cluster = new_cluster(run_dir, detach=keep, keep_logs=keep, progress=progress)
    with cluster if not keep else contextlib.nullcontext():
        if keep:
            cluster.start()
        scene = Scene(
            cluster,
            OperatorProcess(
                cluster.control_plane, spark_conf=cluster.driver_spark_conf, detach=keep
            ),
        )
        try:
            delivery, produced, restarts = play(scene, progress)
        finally:
            if keep:
                _say_how_to_go_on(scene)
        for example in delivery.examples:
            console.print(example, markup=False)
        if not keep:
            scene.operator.stop()
    is_ok = delivery.is_exact and restarts == 0
    console.print(
        f"demo: {'OK' if is_ok else 'FAILED'} produced={produced} delivered={delivery.delivered}"
        f" lost={delivery.lost} duplicated={delivery.duplicated + delivery.unexpected}"
        f" restarts_by_rescale={restarts}",
        markup=False,
    )
    raise typer.Exit(0 if is_ok else 1)


def play(scene: Scene, progress: Progress) -> tuple[Delivery, int, int]:
    """All acts; returns the arrived rows, the records produced, and restarts by rescales."""
    scene.cluster.kafka().admin.create_topics(TOPICS)
    with progress.step("start operator"):
        scene.operator.start()
    with Load(scene.cluster.kafka().bootstrap, rate=RATE, topics=tuple(TOPICS)) as load:
        _act(
            "kubectl apply -f examples/orders.yaml (broker, folders and memory of this machine"
            " filled in)"
        )
        scene.apply()
        with progress.step("driver and executor start, first micro-batches"):
            scene.source.wait_adopted(parallelism=2, splits=13, timeout=300)
        with progress.step("catch up with what was produced meanwhile"):
            wait_until(
                lambda: scene.has_caught_up(RATE),
                120,
                "the lag to be less than a second's load",
                interval=0.5,
            )
        console.print(owner_table(scene.source.assignment), markup=False)
        restarts = sum(rescale(scene, readers) for readers in (5, 3))
        grow(scene, progress)
        lose_operator(scene, progress)
        lose_driver(scene, progress)
        load.stop()
        console.print(f"produced {load.produced} records, {load.rate:.0f} per second", markup=False)
        with progress.step("read the rest"), contextlib.suppress(DeadlineError):
            wait_until(
                lambda: rows(scene.sink) >= load.produced,
                120,
                "all records to arrive",
                interval=0.5,
            )
        delivery = check_delivery(scene.sink, scene.expected)
    _act("kubectl get bsrc")
    console.print(scene.kubectl("get", "bsrc").rstrip(), markup=False)
    return delivery, load.produced, restarts


def rescale(scene: Scene, readers: int) -> int:
    """Change the parallelism by kubectl; returns 1 if anything was restarted by that."""
    before, pod, incarnation = (
        scene.source.assignment,
        scene.driver_pod,
        scene.source.report.incarnation,
    )
    _act(f'kubectl patch bsrc/orders --type merge -p \'{{"spec":{{"parallelism":{readers}}}}}\'')
    asked = time.time()
    scene.source.patch({"parallelism": readers})
    batch = _first_batch(scene, lambda b: b.parallelism == readers and b.planned > asked)
    scene.source.wait_adopted(parallelism=readers, timeout=30)
    after = scene.source.assignment
    console.print(
        f"{batch.planned - asked:.2f} s from the patch to the first micro-batch with {readers}"
        f" readers (number {batch.number}, {batch.rows} rows, committed after"
        f" {batch.ended - asked:.2f} s); {moves(before, after)} of {len(before.owners)} splits"
        " moved",
        markup=False,
    )
    console.print(owner_table(after), markup=False)
    is_same = (
        scene.driver_pod["metadata"]["uid"] == pod["metadata"]["uid"]
        and _restarts(scene.driver_pod) == _restarts(pod)
        and scene.source.report.incarnation == incarnation
    )
    return 0 if is_same else 1


def grow(scene: Scene, progress: Progress) -> None:
    """Add partitions to a topic: they are found, and nothing else moves."""
    _act("kafka-topics --alter --topic orders --partitions 12")
    before = scene.source.assignment
    scene.cluster.kafka().admin.add_partitions("orders", 12)
    with progress.step("discovery finds 4 new partitions"):
        scene.source.wait_adopted(parallelism=3, splits=17, timeout=120)
    after = scene.source.assignment
    console.print(owner_table(after) + f"\n{moves(before, after)} splits moved", markup=False)


def lose_operator(scene: Scene, progress: Progress) -> None:
    """Kill the operator: the query continues; its successor takes up where it was."""
    _act("kill -9 the operator")
    before = scene.source.assignment
    scene.operator.kill()
    with progress.step("ten more micro-batches without an operator"):
        _wait_for_batches(scene, 10)
    with progress.step("start the operator again"):
        scene.operator.start()
        wait_until(
            lambda: scene.source.condition("Ready").get("status") == "True",
            30,
            "the source to be Ready",
        )
    after = scene.source.assignment
    console.print(
        f"epoch {after.epoch} (was {before.epoch}), {moves(before, after)} splits moved",
        markup=False,
    )


def lose_driver(scene: Scene, progress: Progress) -> None:
    """Kill the driver.

    It comes back with its checkpoint, replays what was not committed, and registers again.
    """
    _act("kill -9 the driver")
    incarnation = scene.source.report.incarnation
    scene.cluster.kill_pod_process(scene.driver)
    with progress.step("a new driver reads"):
        wait_until(
            lambda: scene.source.report.incarnation > incarnation,
            300,
            "a new driver to register",
            interval=0.5,
        )
        scene.source.wait_adopted(parallelism=3, splits=17, timeout=120)
        _wait_for_batches(scene, 3)
    console.print(owner_table(scene.source.assignment), markup=False)


def _wait_for_batches(scene: Scene, count: int) -> None:
    seen = _newest(scene)
    wait_until(lambda: _newest(scene) >= seen + count, 90, f"{count} micro-batches", interval=0.2)


def _newest(scene: Scene) -> int:
    return max((batch.number for batch in scene.batches()), default=-1)


def _first_batch(scene: Scene, fits: Callable[[Batch], bool]) -> Batch:
    def first() -> Batch | None:
        return next((batch for batch in scene.batches() if fits(batch)), None)

    found = wait_until(first, 180, "a micro-batch with the new parallelism", interval=0.2)
    assert found is not None
    return found


def _restarts(pod: dict[str, object]) -> object:
    status = pod["status"]
    assert isinstance(status, dict)
    return [container["restartCount"] for container in status.get("containerStatuses", [])]


def _act(text: str) -> None:
    console.print(f"\n$ {text}", markup=False)


def _say_how_to_go_on(scene: Scene) -> None:
    kubeconfig = scene.cluster.control_plane.kubeconfig(ADMIN)
    console.print(
        f"\neverything goes on running:\n  export KUBECONFIG={kubeconfig}\n  kubectl get bsrc\n"
        "end it with: PYTHONPATH=tests .venv/bin/python -m testbed down"
        f" --dir {scene.cluster.run_dir}",
        markup=False,
    )
