"""The story on real pods.

Install, read, rescale live, lose the driver, lose the operator, then count.

`python -m e2e.node.story` plays it in the kind of cluster that CLUSTER names: process, node or
kind.
"""

import contextlib
import os
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import typer
from rich.console import Console

from e2e.node.inside import check_commands
from e2e.node.reachability import check_reachability, enforced
from e2e.node.scene import JOBS, SLOTS, SPLITS, SYSTEM, TOPICS, Scene
from support.story.load import Load
from support.story.sink import Delivery, check_delivery, rows
from testbed.choice import new_cluster
from testbed.errors import DeadlineError
from testbed.progress import Progress
from testbed.waiting import wait_until

RATE = 400
"""Records per second."""

_PATIENCE = 420.0  # seconds for what starts a JVM or two; everything may be slow on a busy machine

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False, soft_wrap=True)


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What the story has shown.

    Attributes:
        produced: records that the brokers have acknowledged.
        delivery: what is in the sink's files.
        complaints: what went otherwise than it should, in words.
    """

    produced: int
    delivery: Delivery
    complaints: list[str] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        """Everything exactly once, and no complaint."""
        return self.delivery.is_exact and not self.complaints

    @property
    def line(self) -> str:
        """The verdict."""
        delivery = self.delivery
        return (
            f"e2e: {'OK' if self.is_ok else 'FAILED'} produced={self.produced}"
            f" delivered={delivery.delivered} lost={delivery.lost}"
            f" duplicated={delivery.duplicated + delivery.unexpected}"
        )


@app.command()
def main(
    cluster: str = typer.Option("node", envvar="CLUSTER", help="process, node or kind."),
    folder: Path | None = typer.Option(
        None, help="Where everything goes; a temporary folder by default."
    ),
) -> None:
    """Play the story.

    Exit code 1 when a record was lost or duplicated, or something was restarted by a rescale.
    """
    run_dir = folder or Path(tempfile.mkdtemp(prefix="balanced-source-e2e-"))
    progress = Progress(console)
    share = run_dir / "share"
    with new_cluster(cluster, run_dir, share=share, kafka=["main"], progress=progress) as started:
        outcome = play(Scene(started, share), progress)
    shutil.rmtree(run_dir, ignore_errors=True)  # only after a failure there is something to look at
    for text in (*outcome.complaints, *outcome.delivery.examples):
        console.print(text, markup=False)
    console.print(outcome.line, markup=False)
    raise typer.Exit(0 if outcome.is_ok else 1)


def play(scene: Scene, progress: Progress) -> Outcome:
    """All acts."""
    scene.prepare()
    with enforced(scene):
        return _acts(scene, progress)


def _acts(scene: Scene, progress: Progress) -> Outcome:
    scene.cluster.kafka().admin.create_topics(TOPICS)
    with progress.step("helm install, helm test"):
        scene.install()
    complaints: list[str] = []
    with Load(scene.cluster.kafka().bootstrap, rate=RATE, topics=tuple(TOPICS)) as load:
        scene.apply_source()
        with progress.step("kubectl apply: driver and executor start, the source is Ready"):
            scene.source.wait_adopted(parallelism=2, splits=SPLITS, timeout=_PATIENCE)
        with progress.step("connections that the NetworkPolicy allows, and others"):
            complaints += check_reachability(scene)
        with progress.step("commands of the pages, in these pods"):
            complaints += check_commands(scene)
        for readers in (4, 2):
            complaints += rescale(scene, progress, readers)
        lose_driver(scene, progress)
        lose_operator(scene, progress)
        load.stop()
        with progress.step("read the rest"), contextlib.suppress(DeadlineError):
            wait_until(
                lambda: rows(scene.sink) >= load.produced,
                _PATIENCE,
                "all records to arrive",
                interval=1,
            )
    console.print(scene.kubectl("get", "bsrc,pods", "-n", JOBS).rstrip(), markup=False)
    return Outcome(
        produced=load.produced,
        delivery=check_delivery(scene.sink, scene.expected),
        complaints=complaints,
    )


def rescale(scene: Scene, progress: Progress, readers: int) -> list[str]:
    """Change the parallelism by kubectl; says what was restarted by that."""
    before = _run_of(scene)
    with progress.step(f'kubectl patch bsrc/orders {{"spec":{{"parallelism":{readers}}}}}'):
        scene.source.patch({"parallelism": readers})
        scene.source.wait_adopted(parallelism=readers, splits=SPLITS, timeout=_PATIENCE)
    executors = -(-readers // SLOTS)
    with progress.step(f"{executors} executors are left, or have come"):
        wait_until(
            lambda: len(scene.pods("executor")) == executors,
            _PATIENCE,
            "executors to follow",
            interval=1,
        )
    balance = scene.source.status["balance"]
    complaints = (
        []
        if balance["max"] - balance["min"] <= 1
        else [f"{readers} readers are not balanced: {balance}"]
    )
    if _run_of(scene) != before:
        complaints.append(f"the change to {readers} readers restarted the driver")
    return complaints


def lose_driver(scene: Scene, progress: Progress) -> None:
    """Delete the driver's pod: it comes back with its checkpoint and registers again."""
    pod, incarnation = scene.driver["metadata"], scene.source.report.incarnation
    with progress.step("kubectl delete the driver's pod: another one reads"):
        scene.kubectl("delete", "pod", pod["name"], "-n", JOBS, "--wait=false")
        wait_until(
            lambda: scene.source.report.incarnation > incarnation,
            _PATIENCE,
            "a new driver to register",
            interval=1,
        )
        scene.source.wait_adopted(parallelism=2, splits=SPLITS, timeout=_PATIENCE)


def lose_operator(scene: Scene, progress: Progress) -> None:
    """Delete the operator's pod: its successor takes up where it was, and nothing moves."""
    pod = scene.operator["metadata"]
    with progress.step("kubectl delete the operator's pod: another one serves"):
        scene.kubectl("delete", "pod", pod["name"], "-n", SYSTEM)
        holder = "jsonpath={.spec.holderIdentity}"
        wait_until(
            lambda: (
                scene.kubectl(
                    "get", "lease", "balanced-source-operator", "-n", SYSTEM, "-o", holder
                )
                not in ("", pod["name"])
            ),
            _PATIENCE,
            "another operator to hold the Lease",
            interval=0.5,
        )
        begun = time.time()
        scene.source.patch({"parallelism": 3})
        scene.source.wait_adopted(parallelism=3, splits=SPLITS, timeout=_PATIENCE)
    console.print(
        f"the new operator had a rescale adopted after {time.time() - begun:.1f} s", markup=False
    )


def _run_of(scene: Scene) -> tuple[object, ...]:
    """Changes when the driver, or anything that it is made of, was started again."""
    pod = scene.driver
    restarts = [status["restartCount"] for status in pod["status"].get("containerStatuses", [])]
    return pod["metadata"]["uid"], tuple(restarts), scene.source.report.incarnation


if __name__ == "__main__":
    os.umask(0o022)
    app()
