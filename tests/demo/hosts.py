"""One source, read by two and three applications: ``python -m demo.hosts``.

Readers go from 6 to 9 to 4 by `kubectl scale`, and hosts follow. The driver of a host is killed and
comes back. A host stays away, once with `hostLossPolicy` Wait and once with Reassign. The image
changes, and then to one that is broken. At the end the broker's log is compared with what all hosts
have written.
"""

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import typer
from rich.console import Console

from demo.away import without_applications, without_pods
from demo.host_scene import (
    BROKEN_IMAGE,
    NEXT_IMAGE,
    READERS_PER_HOST,
    SPLITS,
    TRIGGER,
    HostScene,
    images,
)
from demo.scene import TOPICS, new_cluster
from support.story.host_sinks import Gap, Proof, gaps, moves
from support.story.load import Load
from support.story.operator_process import OperatorProcess
from testbed.errors import DeadlineError
from testbed.progress import Progress
from testbed.waiting import wait_until

RATE = 300
"""Records per second that are produced for the whole run."""

AWAY = "1"
"""Name of the host that is lost."""

_PATIENCE = 1800.0
"""Seconds that a step may take, at most: a busy machine starts a driver in minutes."""

_OPERATOR = {
    "RETRY_FAILED_AFTER_SECONDS": "5",
    "RESYNC_SECONDS": "10",
    "SAVE_INTERVAL_SECONDS": "5",
}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False, soft_wrap=True)


class Act(NamedTuple):
    """A part of the story."""

    name: str
    began: float
    ended: float


class Story:
    """The acts that were played.

    Args:
        scene: where they are played.
        progress: told about each.
        readers: at the start.
    """

    def __init__(self, scene: HostScene, progress: Progress, *, readers: int) -> None:
        self.scene = scene
        self.readers = readers
        self.acts: list[Act] = []
        self.restarts = 0
        self.hand_overs: list[float] = []
        self._progress = progress

    @contextlib.contextmanager
    def act(self, name: str) -> Iterator[None]:
        """Play an act, then say how long splits were not read in it."""
        began = time.time()
        with self._progress.step(name):
            yield
        self.acts.append(Act(name, began, time.time()))
        worst = max(self.gaps(self.acts[-1]), default=None)
        if worst is not None:
            console.print(f"  longest gap of a split: {_words(worst)}", markup=False)

    def gaps(self, act: Act | None = None) -> Iterator[Gap]:
        """Yield the gaps that began in an act, or in any."""
        for gap in gaps(self.scene.sinks.commits()):
            if act is None or act.began <= gap.began < act.ended:
                yield gap

    def wait_reading(self, image: str | None = None) -> None:
        """Wait until as many hosts as there should be read, with as many readers."""
        hosts = -(-self.readers // READERS_PER_HOST)
        self.scene.wait_reading(hosts=hosts, readers=self.readers, image=image)

    def scale(self, readers: int) -> None:
        """Change the number of readers, and wait for the hosts that follow."""
        before, asked = self.scene.incarnations(), time.time()
        is_between_running, self.readers = readers <= self.readers, readers
        with self.act(f"kubectl scale bsrc/orders --replicas={readers}"):
            self.scene.scale(readers)
            self.wait_reading()
        after = self.scene.incarnations()
        self.restarts += sum(before[host] != after[host] for host in before.keys() & after.keys())
        found = [
            move.after.at - asked
            for move in moves(self.scene.sinks.commits())
            if move.after.at > asked
        ]
        self._note_moves(found, is_between_running=is_between_running)
        self.show()

    def show(self) -> None:
        """Print what `kubectl get bsrc -o wide` and the status say of the hosts."""
        console.print(self.scene.kubectl("get", "bsrc", "-o", "wide").rstrip(), markup=False)
        for name, host in self.scene.hosts.items():
            image = host["image"].rpartition(":")[2]
            words = (
                f"{host['role']}, {host['state']}, {host['readers']} readers, {host['splits']}"
                " splits"
            )
            console.print(
                f"  host {name}: {host['application']}, {words}, image {image}", markup=False
            )

    def _note_moves(self, seconds: list[float], *, is_between_running: bool) -> None:
        if not seconds:
            return
        console.print(
            f"  {len(seconds)} splits moved; median {statistics.median(seconds):.2f} s from the"
            " command to the first micro-batch on the next host, committed",
            markup=False,
        )
        if is_between_running:
            self.hand_overs += seconds


def play(scene: HostScene, progress: Progress, acts: Sequence[str]) -> tuple[Story, Proof]:
    """Play acts; returns them, and the broker's log against the sinks."""
    scene.cluster.kafka().admin.create_topics(TOPICS)
    story = Story(scene, progress, readers=6)
    with progress.step("start operator"):
        scene.operator.start()
    with Load(scene.cluster.kafka().bootstrap, rate=RATE, topics=tuple(TOPICS)) as load:
        with story.act("kubectl apply: 6 readers, 3 for each host"):
            scene.apply(readers=story.readers)
            story.wait_reading()
        story.show()
        for name in acts:
            ACTS[name](story)
        load.stop()
        produced = load.produced
        with progress.step("read the rest"), contextlib.suppress(DeadlineError):
            wait_until(
                lambda: scene.sinks.rows >= produced, 180, "all records to arrive", interval=2
            )
    with progress.step("compare the broker's log with the sinks of all hosts"):
        return story, scene.prove()


def scale(story: Story) -> None:
    """Hosts follow the number of readers: three, then two."""
    story.scale(9)
    story.scale(4)


def crash(story: Story) -> None:
    """A driver dies; its splits wait for the next one."""
    with story.act("kill -9 the driver of host 1"):
        kill(story.scene)
        story.wait_reading()


def kill(scene: HostScene) -> None:
    """Kill the driver of a host, and wait until its application has noticed."""
    before = scene.incarnations()[AWAY]
    scene.kill_driver(AWAY)
    wait_until(
        lambda: scene.incarnations().get(AWAY) != before,
        _PATIENCE,
        "the driver to be gone",
        interval=2,
    )


def lose_and_wait(story: Story) -> None:
    """A host stays away; its splits wait for it, and all others are read."""
    scene = story.scene
    with story.act("host 1 is lost, hostLossPolicy Wait: its splits wait until it is back"):
        with without_pods(scene.cluster.control_plane, AWAY):
            kill(scene)
            wait_until(
                lambda: scene.condition("Degraded", "HostLost"),
                _PATIENCE,
                "host 1 to count as lost",
                interval=1,
            )
            console.print(f"  {scene.condition('Degraded', 'HostLost')}", markup=False)
            held = frozenset(split for split, host in owners(scene).items() if host == AWAY)
            scene.wait_read_again(without=held)
        story.wait_reading()


def lose_and_reassign(story: Story) -> None:
    """A host stays away.

    A drain attempt settles what it has delivered, and the others read its splits.
    """
    scene, api = story.scene, story.scene.cluster.control_plane
    scene.patch(hostLossPolicy={"type": "Reassign"})
    wait_until(
        lambda: scene.source.assignment.report_within, 60, "the drivers to be told", interval=2
    )
    with story.act("host 1 is lost, hostLossPolicy Reassign: the other hosts read its splits"):
        with without_applications(api, AWAY):
            with without_pods(api, AWAY):
                kill(scene)
                wait_until(
                    lambda: scene.role(AWAY) == "Draining",
                    _PATIENCE,
                    "host 1 to be given up",
                    interval=2,
                )
                console.print(f"  {scene.condition('Degraded', 'HostLost')}", markup=False)
            wait_until(
                lambda: _others_read_all(scene),
                _PATIENCE,
                "the others to read all splits",
                interval=2,
            )
            scene.wait_read_again()
            story.show()
        story.wait_reading()


def change_image(story: Story) -> None:
    """Another image tag: the hosts restart in turn."""
    with story.act(f"kubectl patch: image {NEXT_IMAGE}, one host after the other"):
        story.scene.patch(image=NEXT_IMAGE)
        story.wait_reading(NEXT_IMAGE)
    story.show()


def break_image(story: Story) -> None:
    """An image that does not work: only one host tries it, and it gets the former image back."""
    scene = story.scene
    before = scene.image
    with story.act(f"kubectl patch: image {BROKEN_IMAGE}, which is rolled back"):
        scene.patch(image=BROKEN_IMAGE, restart={"rollbackAfter": "30s"})
        wait_until(
            lambda: scene.condition("Degraded", "RolledBack"), _PATIENCE, "the rollback", interval=2
        )
        console.print(f"  {scene.condition('Degraded', 'RolledBack')}", markup=False)
        story.wait_reading(before)
    story.show()
    with story.act("kubectl patch: the spec is corrected"):
        scene.patch(image=before)
        wait_until(
            lambda: not scene.condition("Degraded", "RolledBack"),
            60,
            "the condition to go",
            interval=2,
        )


ACTS: Final[Mapping[str, Callable[[Story], None]]] = {
    "scale": scale,
    "crash": crash,
    "wait": lose_and_wait,
    "reassign": lose_and_reassign,
    "image": change_image,
    "broken": break_image,
}
"""What can be played, in the order of the story."""


def owners(scene: HostScene) -> dict[tuple[str, str, int], str]:
    """Return the host that has committed each split last."""
    return {split: commit.host for commit in scene.sinks.commits() for split in commit.splits}


def _others_read_all(scene: HostScene) -> bool:
    splits = {name: host["splits"] for name, host in scene.hosts.items()}
    return sum(splits.values()) == SPLITS and not splits.get(AWAY)


def _words(gap: Gap) -> str:
    where = " → ".join(dict.fromkeys(f"host {host}" for host in gap.hosts))
    return f"{gap.seconds:.1f} s ({gap.split[1]}/{gap.split[2]}, {where})"


def sum_up(story: Story, proof: Proof) -> bool:
    """Print the figures; returns whether all is well."""
    median = statistics.median(story.hand_overs) if story.hand_overs else float("nan")
    console.print(
        f"hand-over between running hosts: median {median:.2f} s from the command to the first"
        f" micro-batch of a moved split on its next host, committed ({len(story.hand_overs)}"
        f" splits, trigger {TRIGGER:g} s); host restarts by scale: {story.restarts}",
        markup=False,
    )
    longest = max(story.gaps(), default=None)
    is_ok = proof.is_exact and proof.produced > 0 and not story.restarts
    console.print(
        f"demo-hosts: {'OK' if is_ok else 'FAILED'} produced={proof.produced}"
        f" delivered={proof.delivered} lost={proof.lost} duplicated={proof.duplicated}"
        f" longest_gap_of_a_split={longest.seconds if longest else 0:.1f}s",
        markup=False,
    )
    return is_ok


@app.command()
def main(
    folder: Path | None = typer.Option(
        None, help="Where everything goes; a temporary folder by default."
    ),
    acts: str = typer.Option(",".join(ACTS), help="Acts to play, with commas."),
) -> None:
    """Play the story.

    Exit code 1 when a record was lost or duplicated, or a change of readers restarted a host.
    """
    progress = Progress(console)
    run_dir = folder or Path(tempfile.mkdtemp(prefix="balanced-source-demo-"))
    with new_cluster(
        run_dir / "cluster", images=images(), progress=progress, keep_logs=folder is not None
    ) as cluster:
        conf = cluster.driver_spark_conf
        scene = HostScene(
            cluster, OperatorProcess(cluster.control_plane, spark_conf=conf, settings=_OPERATOR)
        )
        try:
            is_ok = sum_up(*play(scene, progress, acts.split(",")))
        finally:
            scene.operator.stop()
    raise typer.Exit(0 if is_ok else 1)


if __name__ == "__main__":
    app()
