"""KEDA's `kafka` trigger reads the consumer group that a source with `commitGroup` writes."""

from balanced_source.api import SplitId
from balanced_source_adapters.kafka.client import ClusterClient
from balanced_source_spark.kafka.group_commits import GroupCommits
from keda.conftest import Scene
from keda.scaled_object import TIMEOUT

PARTITIONS = 4
GROUP = "orders-lag"


def test_the_lag_of_the_group_decides_up_to_the_number_of_partitions(scene: Scene) -> None:
    world = scene.source
    world.kafka.admin.create_topic(world.topic, partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        world.kafka.admin.produce(world.topic, [b"x"] * 100, partition=partition)
    world.apply(source=world.kafka_spec(commitGroup=GROUP), parallelism=1)
    driver = world.driver()
    driver.adopt(parallelism=1, timeout=TIMEOUT)
    client = ClusterClient("main", {"bootstrap.servers": world.kafka.bootstrap})
    # the driver's own way to commit, on which a stand-in has nothing to say
    commits = GroupCommits(lambda _, offsets: client.commit(GROUP, offsets), interval=0.2)
    commits.note(positions(world.topic, 50))

    trigger = {
        "type": "kafka",
        "metadata": {
            "bootstrapServers": world.kafka.bootstrap,
            "consumerGroup": GROUP,
            "topic": world.topic,
            "lagThreshold": "100",
        },
    }
    scene.scaled.apply(triggers=[trigger])

    driver.adopt(parallelism=2, timeout=TIMEOUT)
    for partition in range(PARTITIONS):
        world.kafka.admin.produce(world.topic, [b"x"] * 500, partition=partition)
    driver.adopt(parallelism=PARTITIONS, timeout=TIMEOUT)
    commits.note(positions(world.topic, 600))
    driver.adopt(parallelism=1, timeout=TIMEOUT)
    commits.close()


def positions(topic: str, offset: int) -> dict[SplitId, int]:
    return {("main", topic, partition): offset for partition in range(PARTITIONS)}
