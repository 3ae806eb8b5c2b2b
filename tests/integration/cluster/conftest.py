"""The whole cluster once.

Kubeflow's controller, a driver and its executor as real processes, and load.
"""

from collections.abc import Iterator

import pytest

from demo.scene import TOPICS, Scene, new_cluster
from support.story.load import Load
from support.story.operator_process import OperatorProcess

RATE = 500
"""Records per second for as long as the tests run."""


@pytest.fixture(scope="package")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A source that is read."""
    with new_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        made = Scene(
            cluster, OperatorProcess(cluster.control_plane, spark_conf=cluster.driver_spark_conf)
        )
        cluster.kafka().admin.create_topics(TOPICS)
        try:
            made.operator.start()
            made.apply()
            made.source.wait_adopted(parallelism=2, splits=sum(TOPICS.values()), timeout=300)
            yield made
        finally:
            made.operator.stop()


@pytest.fixture(scope="module")
def load(scene: Scene) -> Iterator[Load]:
    """Records that come in all the while."""
    with Load(scene.cluster.kafka().bootstrap, rate=RATE, topics=tuple(TOPICS)) as made:
        yield made
