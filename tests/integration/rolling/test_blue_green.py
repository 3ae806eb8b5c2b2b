"""A source with one application gets another image while a second application reads it.

About five minutes, so `make test` leaves it out: ``pytest -m e2e
tests/integration/rolling/test_blue_green.py``.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from demo.host_scene import NEXT_IMAGE, images
from demo.scene import TOPICS, Scene, new_cluster
from support.kafka_records import records_of
from support.story.load import Load
from support.story.operator_process import OperatorProcess
from testbed.jars import ensure_jars
from testbed.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(1800)]

COPY = "copy"
"""Topic that the query writes to."""

SPLITS = sum(TOPICS.values())
PATIENCE = 600.0


class KafkaScene(Scene):
    """A source whose sink is a topic."""

    @property
    def manifest(self) -> dict[str, Any]:
        made = super().manifest
        application = made["spec"]["application"]
        jars = sorted(ensure_jars("spark-kafka").glob("*.jar"))
        application["sparkConf"] = {"spark.jars": ",".join(f"local://{jar}" for jar in jars)}
        options = {"kafka.bootstrap.servers": self.cluster.kafka().bootstrap, "topic": COPY}
        pipeline = application["pipeline"]
        pipeline.pop("transform", None)
        pipeline["sink"] = {"format": "kafka", "options": options}
        pipeline["columns"] = ["key", "value"]
        application["restart"] = {"strategy": "BlueGreen"}
        return made


@pytest.fixture
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaScene]:
    folder = tmp_path_factory.mktemp("cluster")
    with new_cluster(folder, images=images()) as cluster:
        made = KafkaScene(
            cluster, OperatorProcess(cluster.control_plane, spark_conf=cluster.driver_spark_conf)
        )
        cluster.kafka().admin.create_topics({**TOPICS, COPY: 1})
        try:
            made.operator.start()
            made.apply()
            made.source.wait_adopted(parallelism=2, splits=SPLITS, timeout=PATIENCE)
            yield made
        finally:
            made.operator.stop()


def test_another_image_takes_effect_while_a_second_application_reads(scene: KafkaScene) -> None:
    kafka = scene.cluster.kafka()
    with Load(kafka.bootstrap, rate=300, topics=tuple(TOPICS)) as load:
        before = scene.source.report
        scene.source.patch({"application": {"image": NEXT_IMAGE}})

        wait_until(lambda: _is_read_by("1", scene), PATIENCE, "the second one to read everything")
        wait_until(lambda: _is_alone(scene), PATIENCE, "the first one to have everything again")
        load.stop()
        assert scene.source.report.incarnation > before.incarnation
        application = scene.cluster.control_plane.items(
            "sparkapplications.sparkoperator.k8s.io", "default"
        )
        assert [one["spec"]["image"] for one in application] == [NEXT_IMAGE]

        produced = Counter(r[1:] for topic in TOPICS for r in records_of(kafka, topic))
        wait_until(lambda: kafka.admin.offsets(COPY)[0][1] >= produced.total(), 120, "all records")
        assert Counter(record[1:] for record in records_of(kafka, COPY)) == produced


def _is_read_by(host: str, scene: KafkaScene) -> bool:
    splits = {one["name"]: one["splits"] for one in scene.source.status.get("hosts", [])}
    return splits.get(host) == SPLITS


def _is_alone(scene: KafkaScene) -> bool:
    status = scene.source.status
    return (
        not status.get("hosts")
        and status["splits"] == SPLITS
        and status["acknowledgedEpoch"] == status["epoch"]
        and status["application"]["state"] == "Running"
    )
