"""Splits that move between running hosts: seconds from the patch to reading on the next host.

Several applications with free task slots read one source under load, and `parallelism` changes, so
that no process has to start. JSON on stdout, a table on stderr.
"""

import itertools
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.statistics_of import spread
from demo.host_scene import HostScene
from demo.scene import TOPICS, new_cluster
from support.story.host_sinks import moves
from support.story.load import Load
from support.story.operator_process import OperatorProcess
from testbed.progress import Progress
from testbed.waiting import wait_until

GOAL: Final = 2.0
"""Seconds that a hand-over may take besides two trigger intervals, in the median."""

console = Console(stderr=True, highlight=False, soft_wrap=True)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    hosts: int = typer.Option(3, min=2, help="Applications that read the source."),
    rescales: int = typer.Option(8, min=1, help="Changes of the number of readers."),
    trigger: float = typer.Option(2.0, min=0.5, help="Seconds between micro-batches."),
    rate: int = typer.Option(500, min=1, help="Records per second that are produced."),
) -> None:
    """Measure, print, and fail if a record was lost or duplicated, or a host was restarted."""
    progress = Progress(console)
    folder = Path(tempfile.mkdtemp(prefix="balanced-source-bench-"))
    with new_cluster(folder, progress=progress) as cluster:
        operator = OperatorProcess(cluster.control_plane, spark_conf=cluster.driver_spark_conf)
        scene = HostScene(cluster, operator, hosts={"count": hosts}, trigger=trigger)
        try:
            result = measure(scene, hosts=hosts, rescales=rescales, rate=rate, progress=progress)
        finally:
            operator.stop()
    result["trigger_seconds"] = trigger
    sys.stdout.write(json.dumps(result, indent=1) + "\n")
    show(result)
    raise typer.Exit(1 if result["lost"] or result["duplicated"] or result["restarts"] else 0)


def measure(
    scene: HostScene, *, hosts: int, rescales: int, rate: int, progress: Progress
) -> dict[str, Any]:
    """Change the number of readers again and again; returns the figures."""
    kafka = scene.cluster.kafka()
    kafka.admin.create_topics(TOPICS)
    scene.operator.start()
    sizes = (hosts + 1, 2 * hosts + 1, hosts, 2 * hosts)
    seconds: list[float] = []
    with Load(kafka.bootstrap, rate=rate, topics=tuple(TOPICS)) as load:
        with progress.step(f"start {hosts} applications"):
            scene.apply(readers=sizes[-1])
            scene.wait_reading(hosts=hosts, readers=sizes[-1])
        before = scene.incarnations()
        for number, size in enumerate(itertools.islice(itertools.cycle(sizes), rescales), 1):
            found = _rescale(scene, hosts=hosts, size=size)
            seconds += found
            console.print(
                f"rescale {number}/{rescales} to {size} readers: {len(found)} splits moved"
            )
        restarts = sum(before[host] != now for host, now in scene.incarnations().items())
        load.stop()
        with progress.step("read the rest"):
            wait_until(
                lambda: scene.sinks.rows >= load.produced, 180, "all records to arrive", interval=1
            )
    proof = scene.prove()
    return {
        "benchmark": "hand over",
        "hosts": hosts,
        "rescales": rescales,
        "records_per_second": rate,
        "moved_splits": len(seconds),
        "seconds_to_committed": spread(seconds) if seconds else None,
        "produced": proof.produced,
        "lost": proof.lost,
        "duplicated": proof.duplicated,
        "restarts": restarts,
    }


def _rescale(scene: HostScene, *, hosts: int, size: int) -> list[float]:
    """Return, for each split that got another host, the seconds until it was committed there."""
    asked = time.time()
    scene.scale(size)
    scene.wait_reading(hosts=hosts, readers=size)
    return [m.after.at - asked for m in moves(scene.sinks.commits()) if m.after.at > asked]


def show(result: dict[str, Any]) -> None:
    """Print the table for people."""
    table = Table("splits that moved", "min", "median", "max", "goal for the median")
    goal = GOAL + 2 * result["trigger_seconds"]
    if (found := result["seconds_to_committed"]) is not None:
        figures = (str(found[key]) for key in ("min", "median", "max"))
        table.add_row(str(result["moved_splits"]), *figures, f"{goal:g}")
    console.print(table)


if __name__ == "__main__":
    app()
