"""Files under the operator: ``python -m demo.files``.

First a folder that is read to its end. Then a folder, and after it a bucket of an S3 server, that
get new files while 2, 5 and 3 readers read them, and while the driver and an executor are killed.
"""

import json
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow.parquet as pq
import typer
import yaml
from pyarrow.fs import S3FileSystem
from rich.console import Console

from demo.acts import Acts
from demo.producing import repeated
from demo.scene import fit_machine, new_cluster
from support.story.operator_process import OperatorProcess
from support.story.sink import committed_files, rows
from testbed.cluster import ProcessCluster
from testbed.progress import Progress
from testbed.s3 import BUCKET, s3_server
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

EXAMPLE: Final = CHECKOUT / "examples" / "files.yaml"
LINES: Final = 100
LARGE: Final = 8000
"""Lines of a file that has several blocks."""
KEY: Final = "test"
"""Both halves of the credentials: the S3 server takes any."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False, soft_wrap=True)


class Record(NamedTuple):
    """A line of a file."""

    file: str
    line: int


class Place(ABC):
    """Where files appear, and what was written into them."""

    def __init__(self) -> None:
        self.written: Counter[Record] = Counter()

    @property
    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """What ``spec.source.files`` says of the place."""

    @abstractmethod
    def put(self, name: str, text: str) -> None:
        """Make a file appear as a whole."""

    def write(self, lines: int = LINES) -> None:
        """Write the next file."""
        name = f"{len({record.file for record in self.written}):05}.json"
        records = [Record(name, line) for line in range(lines)]
        self.put(name, "".join(json.dumps(record._asdict()) + "\n" for record in records))
        self.written.update(records)


class Folder(Place):
    """A folder on the volume that driver and executors mount.

    Args:
        volume: on this machine.
        name: of the folder.
    """

    def __init__(self, volume: Path, name: str) -> None:
        super().__init__()
        self._name, self._path = name, volume / "in" / name
        self._path.mkdir(parents=True)

    @property
    def spec(self) -> dict[str, Any]:
        return {"paths": [f"/data/in/{self._name}"]}

    def put(self, name: str, text: str) -> None:
        hidden = self._path / f"_{name}"
        hidden.write_text(text)
        hidden.rename(self._path / name)


class Bucket(Place):
    """A bucket of an S3 server."""

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        self._endpoint = endpoint
        host = endpoint.removeprefix("http://")
        self._client = S3FileSystem(
            access_key=KEY, secret_key=KEY, endpoint_override=host, scheme="http"
        )

    @property
    def spec(self) -> dict[str, Any]:
        store = {"endpoint": self._endpoint, "region": "us-east-1", "secret": "store"}
        return {"paths": [f"s3://{BUCKET}/in/*.json"], "s3": store}

    def put(self, name: str, text: str) -> None:
        with self._client.open_output_stream(f"{BUCKET}/in/{name}") as file:
            file.write(text.encode())


def volume_of(cluster: ProcessCluster) -> Path:
    """Return the folder that the pods mount as /data."""
    return cluster.run_dir / "data"


class FilesScene(Acts):
    """One source of files.

    Args:
        cluster: started.
        operator: started.
        name: of the source.
        place: what it reads.
    """

    def __init__(
        self, cluster: ProcessCluster, operator: OperatorProcess, name: str, place: Place
    ) -> None:
        self._data = volume_of(cluster)
        super().__init__(cluster, operator, name, self._data / name)
        self.name, self.place = name, place

    @property
    def produced(self) -> int:
        return self.place.written.total()

    @property
    def delivered(self) -> Counter[Record]:
        """What is in the sink."""
        tables = (pq.read_table(file).to_pylist() for file in committed_files(self.sink))
        return Counter(Record(row["file"], row["line"]) for table in tables for row in table)

    def apply(self, *, interval: str | None) -> None:
        """``kubectl apply``; without an interval the source ends."""
        file = self.cluster.run_dir / f"{self.name}.yaml"
        file.write_text(yaml.safe_dump(self._manifest(interval)))
        self.cluster.control_plane.kubectl("apply", "-f", str(file))

    def delete(self) -> None:
        """Delete the source, and wait for its pods to be gone: two applications do not fit."""
        self.cluster.control_plane.kubectl("delete", f"bsrc/{self.name}")
        wait_until(
            lambda: not self.cluster.pods("spark-role"), 120, "the pods to be gone", interval=0.5
        )

    def wait_finished(self) -> None:
        """Wait until the source has read everything and says so."""
        wait_until(self._is_finished, 600, "the end", interval=0.5)

    def _is_finished(self) -> bool:
        state = self.source.status.get("application", {}).get("state")
        return state == "Finished" and self.source.condition("Ready").get("reason") == "Finished"

    def _manifest(self, interval: str | None) -> dict[str, Any]:
        manifest: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
        manifest["metadata"]["name"], spec = self.name, manifest["spec"]
        files = {
            "format": "Json",
            "schema": "file STRING, line BIGINT",
            "splitBytes": 65536,
            "lookAhead": 8,
        }
        spec["source"] = {
            "files": {
                **files,
                **self.place.spec,
                **({"discoveryInterval": interval} if interval else {}),
            }
        }
        pipeline = spec["application"]["pipeline"]
        pipeline["sink"]["options"]["path"] = f"/data/{self.name}"
        pipeline["checkpointLocation"] = f"/data/checkpoints/{self.name}"
        fit_machine(spec, self._data)
        return manifest


def play_bounded(scene: FilesScene, progress: Progress) -> None:
    """A folder that is read to its end."""
    for number in range(60):
        scene.place.write(LARGE if number % 20 == 0 else LINES)
    with progress.step(f"{scene.name}: apply, read everything, Finished"):
        scene.apply(interval=None)
        scene.wait_finished()
        scene.delete()


def play_continuous(scene: FilesScene, progress: Progress) -> int:
    """Files that appear forever; returns how often a rescale restarted something."""
    for number in range(20):
        scene.place.write(LARGE if number % 10 == 0 else LINES)
    restarts = 0
    with repeated(scene.place.write, every=0.5):
        with progress.step(f"{scene.name}: apply, first micro-batches"):
            scene.apply(interval="1s")
            wait_until(lambda: rows(scene.sink) > 0, 600, "the first records", interval=0.5)
            scene.wait_more()
        for readers in (5, 3):
            with progress.step(f"{scene.name}: kubectl patch: {readers} readers"):
                restarts += scene.rescale(readers)
        with progress.step(f"{scene.name}: kill -9 the driver"):
            scene.kill_driver()
        with progress.step(f"{scene.name}: kill -9 an executor"):
            scene.kill_executor()
    with progress.step(f"{scene.name}: read the rest"):
        scene.wait_all()
        scene.delete()
    return restarts


def play(
    cluster: ProcessCluster, operator: OperatorProcess, endpoint: str, progress: Progress
) -> bool:
    """Play all acts.

    Returns whether each record was delivered once, and no rescale restarted anything.
    """
    credentials = [f"--from-literal={name}={KEY}" for name in ("accessKeyId", "secretAccessKey")]
    cluster.control_plane.kubectl("create", "secret", "generic", "store", *credentials)
    volume = volume_of(cluster)
    bounded = FilesScene(cluster, operator, "backlog", Folder(volume, "backlog"))
    disk = FilesScene(cluster, operator, "disk", Folder(volume, "disk"))
    bucket = FilesScene(cluster, operator, "bucket", Bucket(endpoint))
    play_bounded(bounded, progress)
    restarts = sum(play_continuous(scene, progress) for scene in (disk, bucket))
    return _sum_up((bounded, disk, bucket), restarts)


def _sum_up(scenes: tuple[FilesScene, ...], restarts: int) -> bool:
    produced, delivered, lost, more = 0, 0, 0, 0
    for scene in scenes:
        written, found = scene.place.written, scene.delivered
        produced, delivered = produced + written.total(), delivered + found.total()
        lost, more = lost + (written - found).total(), more + (found - written).total()
    is_ok = not (lost or more or restarts)
    console.print(
        f"demo-files: {'OK' if is_ok else 'FAILED'} produced={produced} delivered={delivered} "
        f"lost={lost} duplicated={more} restarts_by_rescale={restarts}",
        markup=False,
    )
    return is_ok


@app.command()
def main(
    folder: Path = typer.Option(None, help="Where everything goes; a temporary folder by default."),
) -> None:
    """Play the story; exit code 1 when a record was lost or duplicated."""
    progress = Progress(console)
    run_dir = folder or Path(tempfile.mkdtemp(prefix="balanced-source-demo-"))
    with s3_server() as environment, new_cluster(run_dir / "cluster", kafka=()) as cluster:
        operator = OperatorProcess(cluster.control_plane, spark_conf=cluster.driver_spark_conf)
        with progress.step("start operator"):
            operator.start()
        is_ok = play(cluster, operator, environment["AWS_ENDPOINT_URL"], progress)
        operator.stop()
    raise typer.Exit(0 if is_ok else 1)


if __name__ == "__main__":
    app()
