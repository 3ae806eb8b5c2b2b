"""Faults that destroy records before they are read. The product must name each of them."""

import contextlib
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from chaos.light import faults
from chaos.light.brokers import Brokers, Undo
from chaos.light.faults import Act, Scene
from chaos.light.load import Load
from testbed.errors import DeadlineError
from testbed.waiting import wait_until

_ELECTION: Final = 40.0


def delete_unread_topic(scene: Scene, dice: random.Random) -> None:
    """A topic is deleted while records in it are unread, and created again.

    Not before the query has begun to read all its partitions: no one can name what the product
    never saw.
    """
    name = dice.choice(scene.stage.world.clusters)
    load = scene.loads[name]
    if scene.stage.world.is_bounded or not load.topics:
        return
    topic, count = dice.choice(sorted(load.topics)), dice.randint(1, 4)
    admin = scene.brokers[name].admin
    before = load.topics[topic]
    with load.without(topic), scene.steady(name):
        if len(scene.begun(name, topic)) < before:
            count = before
        else:
            scene.dump(name, topic)
            admin.delete_topic(topic)
            admin.create_topic(topic, partitions=count)
    load.set_partitions(topic, count)


def expire_unread(scene: Scene, dice: random.Random) -> None:
    """Retention deletes records that no one has read, in partitions that the query has begun.

    The product cannot know what was deleted before it ever saw a partition.
    """
    name = dice.choice(scene.stage.world.clusters)
    load = scene.loads[name]
    if not load.topics:
        return
    topic = dice.choice(sorted(load.topics))
    with load.without(topic), scene.steady(name):
        scene.dump(name, topic)
        ends = {p: end for p, (_, end) in scene.brokers[name].admin.offsets(topic).items()}
        if begun := {p: end for p, end in ends.items() if p in scene.begun(name, topic)}:
            scene.brokers[name].admin.delete_records(topic, begun)
    load.set_partitions(topic, len(ends))


def elect_uncleanly(scene: Scene, dice: random.Random) -> None:
    """A replica that has missed records becomes the leader.

    The log is truncated, and grows again.
    """
    load = scene.loads["main"]
    if scene.stage.world.is_embedded or not load.topics or len(scene.brokers.nodes("main")) < 3:
        return
    topic = dice.choice(sorted(load.topics))
    with scene.brokers.exclusive("main", scene.tend) as is_free, contextlib.suppress(DeadlineError):
        if is_free:
            elect(
                scene.brokers,
                load,
                topic,
                dice,
                tend=scene.tend,
                dump=lambda: _dumped(scene, topic),
            )


def _dumped(scene: Scene, topic: str) -> Undo:
    """Keep what the log holds; returns what is called when it has been cut."""
    before, committed = scene.dump("main", topic), scene.stage.committed()
    return lambda: note_cut(scene.stage.folder, before, scene.dump("main", topic), committed)


def note_cut(
    folder: Path,
    before: Path,
    after: Path,
    committed: Mapping[tuple[str, str, int], tuple[str | None, int]],
) -> None:
    """Tell the checker of a log that was cut.

    Two dumps, and how far it was delivered at the first one.

    No one can name unread records that an unclean election takes: other records have their offsets
    before anybody asks.
    """
    reached = [[*split, topic_id, position] for split, (topic_id, position) in committed.items()]
    line = {"before": before.name, "after": after.name, "committed": reached}
    with (folder / "cuts.jsonl").open("a") as out:
        out.write(json.dumps(line) + "\n")


def elect(
    brokers: Brokers,
    load: Load,
    topic: str,
    dice: random.Random,
    *,
    tend: Undo,
    dump: Callable[[], Undo],
) -> None:
    """Let a replica of the cluster `main` lead a topic that has missed its newest records.

    Args:
        brokers: the cluster must be disturbed by no one else.
        load: of the cluster.
        topic: whose log is truncated.
        dice: chooses the nodes.
        tend: what a schedule does while it waits.
        dump: keeps what the log holds before it is truncated; what it returns does so afterwards.

    Raises:
        DeadlineError: a step took too long; nodes may be down.
    """
    leader, follower = dice.sample((1, 2, 3), 2)
    kafka, admin = brokers["main"], brokers["main"].admin
    admin.set_config(topic, {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"})
    kafka.reassign(topic, dict.fromkeys(range(load.topics[topic]), (leader, follower)))
    wait_until(
        lambda: admin.in_sync(topic) == {leader, follower}, _ELECTION, "both replicas to be in sync"
    )
    admin.prefer_leaders(topic)
    wait_until(lambda: admin.leaders(topic) == {leader}, _ELECTION, "the preferred leader")
    # What the follower has written as a leader, and no one else has, it drops before it follows.
    # Not yet, and it would come back with records of its own, maybe before the query has looked:
    # see docs/subscription-changes.md.
    load.settle(topic)
    kafka.kill(follower)
    wait_until(
        lambda: admin.in_sync(topic) == {leader}, _ELECTION, "the follower to be out of sync"
    )
    load.burst(topic, 40)
    tend()
    # What came after the dump, and only this leader has, would be in no dump at all.
    with load.held(topic):
        dump_again = dump()
        kafka.kill(leader)
    brokers.start_node("main", follower)
    wait_until(lambda: admin.leaders(topic) == {follower}, _ELECTION, "the unclean leader")
    dump_again()
    brokers.start_node("main", leader)


LOSSES: Final[dict[str, Act]] = {
    act.__name__: act for act in (delete_unread_topic, expire_unread, elect_uncleanly)
}
"""By name."""

RARE: Final = "elect_uncleanly"
"""Takes as long as all other faults of a schedule together: a part of the schedules has one."""

KINDS: Final = (*faults.KINDS, *(name for name in LOSSES if name != RARE))
"""What schedules draw from, with weights."""
