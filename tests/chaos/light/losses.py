"""Faults that destroy records before they are read. The product must name each of them."""

import random
from typing import Final

from chaos.light.faults import Act, Scene
from testbed.errors import DeadlineError
from testbed.waiting import wait_until

_ELECTION: Final = 40.0


def delete_unread_topic(scene: Scene, dice: random.Random) -> None:
    """A topic is deleted while records in it are unread, and created again."""
    name = dice.choice(scene.stage.world.clusters)
    load = scene.loads[name]
    if scene.stage.world.is_bounded or scene.brokers.is_disturbed(name) or not load.topics:
        return
    topic, count = dice.choice(sorted(load.topics)), dice.randint(1, 4)
    admin = scene.brokers[name].admin
    with load.without(topic):
        scene.dump(name, topic)
        admin.delete_topic(topic)
        admin.create_topic(topic, partitions=count)
    load.set_partitions(topic, count)


def expire_unread(scene: Scene, dice: random.Random) -> None:
    """Retention deletes records that nobody has read."""
    name = dice.choice(scene.stage.world.clusters)
    load = scene.loads[name]
    if scene.brokers.is_disturbed(name) or not load.topics:
        return
    topic = dice.choice(sorted(load.topics))
    admin = scene.brokers[name].admin
    with load.without(topic):
        scene.dump(name, topic)
        admin.delete_records(topic, {p: end for p, (_, end) in admin.offsets(topic).items()})
    load.set_partitions(topic, len(admin.offsets(topic)))


def elect_uncleanly(scene: Scene, dice: random.Random) -> None:
    """A replica that has missed records becomes the leader: the log is truncated, and grows again."""
    brokers, load = scene.brokers, scene.loads["main"]
    if scene.stage.world.is_embedded or brokers.is_disturbed("main") or len(brokers.nodes("main")) < 3:
        return
    if not load.topics:
        return
    topic, (leader, follower) = dice.choice(sorted(load.topics)), dice.sample((1, 2, 3), 2)
    admin, kafka = brokers["main"].admin, brokers["main"]
    partitions = range(load.topics[topic])
    admin.set_config(topic, {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"})
    kafka.reassign(topic, dict.fromkeys(partitions, (leader, follower)))
    try:
        wait_until(lambda: admin.in_sync(topic) == {leader, follower}, _ELECTION, "both replicas to be in sync")
        admin.prefer_leaders(topic)
        kafka.kill(follower)
        wait_until(lambda: admin.in_sync(topic) == {leader}, _ELECTION, "the follower to be out of sync")
        load.burst(topic, 40)
        scene.stage.tend()
        scene.dump("main", topic)
        kafka.kill(leader)
    except DeadlineError:
        kafka.start_missing()
        return
    kafka.start_node(follower)
    wait_until(lambda: admin.leaders(topic) == {follower}, _ELECTION, "the unclean leader")
    kafka.start_node(leader)


LOSSES: Final[dict[str, Act]] = {act.__name__: act for act in (delete_unread_topic, expire_unread, elect_uncleanly)}
"""By name."""
