"""A cluster whose driver is a stand-in, and one with real Spark."""

from collections.abc import Iterator

import pytest

from support import stand_in_pod
from support.page_world import PARTITIONS, PageWorld
from testbed.cluster import ProcessCluster
from testbed.ports import PortPool


@pytest.fixture(scope="package", params=["stand-in", pytest.param("spark", marks=pytest.mark.slow)])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PageWorld]:
    pool = PortPool()
    images = {stand_in_pod.IMAGE: stand_in_pod.image()}
    folder = tmp_path_factory.mktemp("pages") / "run"
    with ProcessCluster(folder, kafka=["main"], extra_images=images) as cluster:
        cluster.kafka().admin.create_topics({"orders": PARTITIONS})
        cluster.kafka().admin.produce("orders", [b"x"] * 100)
        image = stand_in_pod.IMAGE if request.param == "stand-in" else cluster.image()
        made = PageWorld(cluster, pool, image)
        made.start()
        yield made
    pool.close()
