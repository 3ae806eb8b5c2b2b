"""The examples on a whole cluster.

Operator, Spark operator, real pods, a broker with TLS and SCRAM, an S3 server.
"""

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pyarrow.fs
import yaml

from support.story.operator_process import OperatorProcess
from support.story.sink import Delivery, check_delivery
from support.story.watch import SourceView, batches
from testbed import images
from testbed.cache import Cache
from testbed.cluster import ProcessCluster
from testbed.jars import ensure_jars
from testbed.kafka import KafkaSecurity
from testbed.process_node.images import ProcessImage
from testbed.s3 import s3_server
from testbed.venvs import ensure_venv
from testbed.versions import CHECKOUT, SPARK
from testbed.waiting import wait_until

USER: Final = "orders"
PASSWORD: Final = "correct-horse"  # noqa: S105 - of a broker on loopback
TOPIC: Final = "orders"
PARTITIONS: Final = 4
BUCKET: Final = "shop"
KEY: Final = "test"
"""Both halves of the bucket's credentials: the S3 server takes any."""
WITH_S3: Final = "REGISTRY/spark-with-s3:4.2.0"
WITH_ROLE: Final = "REGISTRY/spark-with-s3-and-role:4.2.0"
"""The same image; its pods find the bucket's credentials by themselves, as those of a service
account with a role."""
_SIZE: Final = {"memory": "768m"}


class ExampleStack:
    """See the module.

    Args:
        cluster: started, with the broker `main`.
        s3: address of the S3 server.
    """

    def __init__(self, cluster: ProcessCluster, s3: str) -> None:
        self.cluster, self._s3 = cluster, s3
        self.kafka = cluster.kafka()
        self.source = SourceView(cluster.control_plane.kubectl, "orders")
        self._produced = 0

    def produce(self, records: int) -> None:
        """Append records to the topic of the examples."""
        self.kafka.admin.produce(TOPIC, [b"x"] * records)
        self._produced += records

    @property
    def produced(self) -> int:
        """Number of records in the topic."""
        return self._produced

    def objects(self, example: str) -> list[dict[str, Any]]:
        """Return the objects of an example, with this machine's addresses and small processes."""
        text = (CHECKOUT / "examples" / f"{example}.yaml").read_text(encoding="utf-8")
        found = list(yaml.safe_load_all(text))
        for source in (each for each in found if each["kind"] == "BalancedSource"):
            self._adapt(source["spec"])
        return found

    def _adapt(self, spec: dict[str, Any]) -> None:
        for cluster in spec["source"]["kafka"]["clusters"]:
            cluster["bootstrapServers"] = self.kafka.bootstrap
        application = spec["application"]
        for role in ("driver", "executor"):
            application[role] = {**application.get(role, {}), **_SIZE}
        application["executor"]["cores"] = 4
        if "sparkConfFrom" not in application and application["image"] == WITH_S3:
            application["image"] = WITH_ROLE
        if "pipeline" in application:
            application["pipeline"]["trigger"] = {"processingTime": "2s"}

    def apply(self, objects: list[dict[str, Any]]) -> None:
        """Apply objects with `kubectl`."""
        self.cluster.control_plane.apply(yaml.safe_dump_all(objects))

    def delete(self) -> None:
        """Delete the source, and wait until its pods are gone; empty the bucket."""
        self.cluster.control_plane.kubectl("delete", "bsrc/orders", "--ignore-not-found")
        wait_until(
            lambda: not self.cluster.pods("spark-role"), 120, "the pods to be gone", interval=0.5
        )
        self.empty_bucket()

    def empty_bucket(self) -> None:
        """Forget all objects, and create the bucket of the examples."""
        httpx2.post(f"{self._s3}/moto-api/reset", timeout=30).raise_for_status()
        httpx2.put(f"{self._s3}/{BUCKET}", timeout=30).raise_for_status()

    @property
    def driver(self) -> str:
        """Name of the driver's pod."""
        return f"{self.source.status['application']['name']}-driver"

    @property
    def rows(self) -> int:
        """Number of rows in the finished micro-batches of the driver."""
        return sum(batch.rows for batch in batches(self.cluster.logs(self.driver)))

    def delivery(self, folder: Path) -> Delivery:
        """Copy a folder of the bucket, and compare it with what the topic holds."""
        host = self._s3.removeprefix("http://")
        store = pyarrow.fs.S3FileSystem(
            access_key=KEY, secret_key=KEY, endpoint_override=host, scheme="http"
        )
        target = folder / dt.datetime.now(dt.UTC).strftime("%H%M%S%f")
        target.mkdir()
        source = f"{BUCKET}/{folder.name}"
        if store.get_file_info(f"{source}/_spark_metadata").type is pyarrow.fs.FileType.Directory:
            pyarrow.fs.copy_files(source, str(target), source_filesystem=store)
        return check_delivery(target, self.expected)

    @property
    def expected(self) -> Mapping[tuple[str, str, int], int]:
        """Records per partition, as the broker counts them."""
        return {
            ("main", TOPIC, partition): end
            for partition, (_, end) in self.kafka.admin.offsets(TOPIC).items()
        }


@contextmanager
def example_stack(folder: Path) -> Iterator[ExampleStack]:
    """Start everything, and end it."""
    with s3_server() as environment:
        s3 = environment["AWS_ENDPOINT_URL"]
        crds = [
            CHECKOUT / "crds",
            CHECKOUT / "tests" / "support" / "keda_crd.yaml",
        ]
        with ProcessCluster(
            folder / "run", crds=crds, extra_images=_images(folder), keep_logs=True
        ) as cluster:
            cluster.add_kafka("main", security=KafkaSecurity(users={USER: PASSWORD}))
            stack = ExampleStack(cluster, s3)
            stack.kafka.admin.create_topic(TOPIC, partitions=PARTITIONS)
            stack.empty_bucket()
            conf = {
                "spark.hadoop.fs.s3a.endpoint": s3,
                "spark.hadoop.fs.s3a.path.style.access": "true",
            }
            operator = OperatorProcess(
                cluster.control_plane, spark_conf={**cluster.driver_spark_conf, **conf}
            )
            try:
                operator.start()
                yield stack
            finally:
                operator.stop()


def _images(folder: Path) -> dict[str, ProcessImage]:
    """Return the images of the examples.

    Spark with the jars of S3, without and with a role, and one with a program.
    """
    cache = Cache()
    plain = images.spark_image(ensure_venv(SPARK[0], cache), cache)
    with_s3 = images.with_jars(
        plain, folder / "spark-with-s3", sorted(ensure_jars("s3").glob("*.jar"))
    )
    role = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": KEY}
    return {
        WITH_S3: with_s3,
        WITH_ROLE: _with(with_s3, env=role),
        "REGISTRY/my-spark:1": _with(plain, binds={"/opt/my": str(CHECKOUT / "examples")}),
    }


def _with(
    image: ProcessImage,
    *,
    env: Mapping[str, str] | None = None,
    binds: Mapping[str, str] | None = None,
) -> ProcessImage:
    return ProcessImage(
        binds={**image.binds, **(binds or {})},
        env={**image.env, **(env or {})},
        entrypoint=image.entrypoint,
        path=image.path,
        visible=image.visible,
    )
