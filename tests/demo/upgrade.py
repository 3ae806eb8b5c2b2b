"""The operator is upgraded from release 0.1.0 under running queries: ``python -m demo.upgrade``.

Helm installs the chart of the release with its CRD and its operator. Two sources are read by
drivers with the image of that release. Then Helm upgrades to the chart of this checkout, changes a
value, takes that back, uninstalls the operator and installs it again. SparkApplications and driver
pods must be the same as before, also after rescales by the new operators. At the end the broker's
log is compared with the sinks.
"""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import typer
import yaml
from rich.console import Console

from chaos.checker import broker_log
from demo.scene import TOPICS
from support import release
from support.release import InstalledRelease
from support.story.host_sinks import HostSinks, Proof
from support.story.load import Load
from support.story.watch import SourceView
from testbed.cache import Cache
from testbed.cluster import ProcessCluster
from testbed.errors import DeadlineError
from testbed.helm import Helm
from testbed.images import OPERATOR, spark_image_name
from testbed.ports import PortPool
from testbed.progress import Progress
from testbed.versions import CHECKOUT, SPARK
from testbed.waiting import wait_until

RATE: Final = 300
"""Records per second that are produced for the whole run."""

SYSTEM: Final = "balanced-source"
RELEASE: Final = "balanced-source"
WAITING: Final = ("--namespace", SYSTEM, "--wait", "--timeout", "5m")
OLD_IMAGE: Final = f"balanced-source/spark:{release.FIRST.version}"
NEW_IMAGE: Final = spark_image_name(SPARK[0])
CHART: Final = CHECKOUT / "charts" / "balanced-source"

_PATIENCE: Final = 600.0
_QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False, soft_wrap=True)


class UpgradeScene:
    """One source for each topic, in the namespace `default`, and the operator's chart in its own.

    Args:
        cluster: started, with a broker and without the CRD.
        former: the release to start with.
        ports: where free ports come from: all pods of the process node listen on the same
            addresses.
        program: `helm`, which is version 3, or `helm4`.
    """

    def __init__(
        self, cluster: ProcessCluster, former: InstalledRelease, ports: PortPool, program: str
    ) -> None:
        self.cluster, self.former = cluster, former
        self.kubectl = cluster.control_plane.kubectl
        self.helm = Helm(
            cluster.run_dir / "helm", control_plane=cluster.control_plane, program=program
        )
        self.sources = {name: SourceView(self.kubectl, name) for name in TOPICS}
        self._ports = ports
        self._data = cluster.run_dir / "data"
        self._data.mkdir(exist_ok=True)
        self.sinks = {name: HostSinks(self._data / name) for name in TOPICS}

    def install(self) -> None:
        """``helm install`` of the release's chart."""
        self.kubectl("create", "namespace", SYSTEM)
        self._helm("install", self.former.chart, self.former.release.version)

    def upgrade(self) -> None:
        """``helm upgrade`` to the chart of this checkout."""
        self._helm("upgrade", CHART, OPERATOR.rpartition(":")[2])

    def change_and_roll_back(self) -> None:
        """``helm upgrade`` with another value, then ``helm rollback``: two new operators."""
        self._helm("upgrade", CHART, OPERATOR.rpartition(":")[2], logging={"debug": True})
        self.helm("rollback", RELEASE, *WAITING)

    def uninstall(self) -> None:
        """``helm uninstall``, and wait until no operator runs. Sources and queries stay."""
        self.helm("uninstall", RELEASE, *WAITING)
        wait_until(lambda: not self.operator_images(), 120, "the operator to be gone", interval=1)

    def install_again(self) -> None:
        """``helm install`` of the chart of this checkout, over the CRD that Helm left."""
        self._helm("install", CHART, OPERATOR.rpartition(":")[2])

    def apply(self) -> None:
        """``kubectl apply`` of the sources."""
        for name in self.sources:
            file = self.cluster.run_dir / f"{name}.yaml"
            file.write_text(yaml.safe_dump(self._manifest(name), sort_keys=False))
            self.kubectl("apply", "-f", str(file))

    def patch(self, spec: Mapping[str, Any]) -> None:
        """``kubectl patch`` of all sources."""
        for source in self.sources.values():
            source.patch(spec)

    def wait_adopted(self, readers: int) -> None:
        """Wait until all sources are read by so many readers, and records have arrived since."""
        for name, source in self.sources.items():
            source.wait_adopted(parallelism=readers, splits=TOPICS[name], timeout=_PATIENCE)
        self.wait_more()

    def wait_more(self) -> None:
        """Wait until each source has committed two further micro-batches."""
        before = {name: len(sink.commits()) for name, sink in self.sinks.items()}

        def is_more() -> bool:
            return all(
                len(self.sinks[name].commits()) > count + 1 for name, count in before.items()
            )

        wait_until(is_more, _PATIENCE, "further micro-batches of all sources", interval=1)

    def runs(self) -> dict[str, tuple[str, ...]]:
        """Return what a restart would change.

        Uids of SparkApplication and driver pod, restarts, incarnation.
        """
        return {name: self._run(source) for name, source in self.sources.items()}

    def _run(self, source: SourceView) -> tuple[str, ...]:
        plane, name = self.cluster.control_plane, str(source.status["application"].get("name", ""))
        application = plane.get("sparkapplications.sparkoperator.k8s.io", name) if name else None
        pod = plane.get("pods", f"{name}-driver") if name else None
        if application is None or pod is None:
            return ()
        restarts = [str(one["restartCount"]) for one in pod["status"].get("containerStatuses", [])]
        incarnation = str(source.report.incarnation)
        return (application["metadata"]["uid"], pod["metadata"]["uid"], *restarts, incarnation)

    def operator_images(self) -> set[str]:
        """Return the images of the operator's pods."""
        pods = self.cluster.pods(f"app.kubernetes.io/instance={RELEASE}", SYSTEM)
        return {container["image"] for pod in pods for container in pod["spec"]["containers"]}

    @property
    def rows(self) -> int:
        """Number of delivered records."""
        return sum(sink.rows for sink in self.sinks.values())

    def prove(self) -> Proof:
        """Compare the broker's log with the sinks of both sources."""
        proofs = []
        for name, sink in self.sinks.items():
            dump = self.cluster.run_dir / f"{name}.csv"
            broker_log.dump(dump, "main", self.cluster.kafka().bootstrap, [name])
            proofs.append(sink.prove(dump))
        return Proof(*map(sum, zip(*proofs, strict=True)))

    def _helm(self, verb: str, chart: Path, tag: str, **more: Any) -> None:
        values = {
            "image": {"repository": "balanced-source/operator", "tag": tag},
            "sparkConf": self.cluster.driver_spark_conf,
            "metrics": {"port": self._ports.take()},
            "probes": {"port": self._ports.take()},
            "settings": {"resyncSeconds": 5, "saveIntervalSeconds": 2},
            **more,
        }
        file = self.helm.values(f"{verb}-values", values)
        self.helm(verb, RELEASE, chart, "--values", file, *WAITING)

    def _manifest(self, name: str) -> dict[str, Any]:
        """The release's own example, for one topic."""
        manifest: dict[str, Any] = yaml.safe_load(
            (self.former.tree / "examples" / "orders.yaml").read_text()
        )
        manifest["metadata"]["name"], spec = name, manifest["spec"]
        kafka, application = spec["source"]["kafka"], spec["application"]
        kafka["clusters"][0]["bootstrapServers"] = self.cluster.kafka().bootstrap
        kafka["subscription"]["topics"] = [name]
        application["image"] = OLD_IMAGE
        application["pipeline"]["sink"]["options"]["path"] = f"/data/{name}"
        application["pipeline"]["checkpointLocation"] = f"/data/checkpoints/{name}"
        application["pipeline"]["trigger"]["processingTime"] = "2s"
        application["sparkConf"] = {
            "spark.sql.streaming.fileSink.log.compactInterval": "1000000",
            "spark.driver.extraJavaOptions": _QUICK_JVM,
            "spark.executor.extraJavaOptions": _QUICK_JVM,
            "spark.ui.enabled": "false",
        }
        for role in ("driver", "executor"):
            settings = application[role]
            settings["memory"] = "640m"
            settings["template"]["spec"]["volumes"] = [
                {"name": "data", "hostPath": {"path": str(self._data)}}
            ]
        application["executor"]["cores"] = 3
        return manifest


def play(scene: UpgradeScene, progress: Progress) -> tuple[int, Proof]:
    """Play all acts.

    Returns how many sources the upgrade restarted, and the broker's log against the sinks.
    """
    former = scene.former.release
    scene.cluster.kafka().admin.create_topics(TOPICS)
    with progress.step(
        f"helm install: chart, CRD and operator of release {former.version} ({former.commit[:7]})"
    ):
        scene.install()
    with Load(scene.cluster.kafka().bootstrap, rate=RATE, topics=tuple(TOPICS)) as load:
        with progress.step("kubectl apply: two sources, with the image of the release"):
            scene.apply()
            scene.wait_adopted(2)
        before = scene.runs()
        with progress.step("helm upgrade: chart, CRD and operator of this checkout"):
            scene.upgrade()
            wait_until(
                lambda: scene.operator_images() == {OPERATOR},
                120,
                "the former operator to be gone",
                interval=1,
            )
            scene.wait_more()
        with progress.step("kubectl patch: 3 readers, told by the new operator to the old drivers"):
            scene.patch({"parallelism": 3})
            scene.wait_adopted(3)
        with progress.step("helm upgrade with another value, and helm rollback"):
            scene.change_and_roll_back()
            scene.wait_more()
        with progress.step("helm uninstall: the queries continue without an operator"):
            scene.uninstall()
            scene.wait_more()
        with progress.step("helm install, and kubectl patch: 2 readers, told to the old drivers"):
            scene.install_again()
            scene.patch({"parallelism": 2})
            scene.wait_adopted(2)
        restarts = _compared(before, scene.runs())
        console.print(scene.kubectl("get", "bsrc", "-o", "wide").rstrip(), markup=False)
        with progress.step(
            "kubectl patch: the image of this checkout, a restart that the user asks for"
        ):
            scene.patch({"application": {"image": NEW_IMAGE}})
            wait_until(lambda: _all_new(before, scene.runs()), _PATIENCE, "new drivers", interval=1)
            scene.wait_adopted(2)
        load.stop()
        with progress.step("read the rest"), contextlib.suppress(DeadlineError):
            wait_until(
                lambda: scene.rows >= load.produced, 180, "all records to arrive", interval=1
            )
    with progress.step("compare the broker's log with the sinks"):
        return restarts, scene.prove()


def _compared(before: Mapping[str, tuple[str, ...]], after: Mapping[str, tuple[str, ...]]) -> int:
    """Print what a restart would have changed; returns how many sources were restarted."""
    for name, run in after.items():
        words = "the same" if run == before[name] else f"was {before[name]}"
        console.print(
            f"  {name}: SparkApplication {run[0]}, driver pod {run[1]}, incarnation {run[-1]}:"
            f" {words}"
        )
    return sum(before[name] != after[name] for name in before)


def _all_new(before: Mapping[str, tuple[str, ...]], after: Mapping[str, tuple[str, ...]]) -> bool:
    return all(after[name] and after[name][-1] != before[name][-1] for name in before)


@contextlib.contextmanager
def started(
    run_dir: Path, progress: Progress, *, keep_logs: bool, program: str
) -> Iterator[UpgradeScene]:
    """Start a cluster with a broker that knows the images of both releases."""
    cache = Cache()
    former = release.install(release.FIRST, cache, progress)
    images = {
        f"balanced-source/operator:{former.release.version}": former.operator_image(),
        OLD_IMAGE: former.spark_image(cache),
    }
    ports = PortPool()
    try:
        with ProcessCluster(
            run_dir, kafka=["main"], extra_images=images, keep_logs=keep_logs, progress=progress
        ) as cluster:
            yield UpgradeScene(cluster, former, ports, program)
    finally:
        ports.close()


@app.command()
def main(
    folder: Path | None = typer.Option(
        None, help="Where everything goes; a temporary folder by default."
    ),
    helm: int = typer.Option(3, min=3, max=4, help="Version of Helm."),
) -> None:
    """Play the story.

    Exit code 1 when the upgrade restarted a query, or a record was lost or duplicated.
    """
    progress = Progress(console)
    run_dir = folder or Path(tempfile.mkdtemp(prefix="balanced-source-demo-"))
    program = "helm" if helm == 3 else f"helm{helm}"
    is_kept = folder is not None
    with started(run_dir / "cluster", progress, keep_logs=is_kept, program=program) as scene:
        restarts, proof = play(scene, progress)
    console.print(f"produced={proof.produced} delivered={proof.delivered}", markup=False)
    is_ok = proof.is_exact and proof.produced > 0 and not restarts
    console.print(
        f"demo-upgrade: {'OK' if is_ok else 'FAILED'} restarts={restarts} lost={proof.lost} "
        f"duplicated={proof.duplicated}",
        markup=False,
    )
    raise typer.Exit(0 if is_ok else 1)


if __name__ == "__main__":
    app()
