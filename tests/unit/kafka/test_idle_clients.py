"""Clients that no one calls: what they queue is bounded, and they are closed in the end.

Counts, no durations.
"""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from balanced_source.connectors.kafka import Anchor, KafkaCluster
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_adapters.kafka.client import ClusterClient
from balanced_source_adapters.keeper import Keeper
from testbed.waiting import wait_until

TALKATIVE = {"statistics.interval.ms": "1", "log_level": "0"}
"""A user may ask for statistics more often than anybody looks at them."""


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """Librdkafka's mock cluster; it lives as long as the producer."""
    mock = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, "log_level": 0})
    mock.produce("t", b"x", partition=0)
    assert mock.flush(30) == 0
    broker = next(iter(mock.list_topics(timeout=30).brokers.values()))
    yield f"{broker.host}:{broker.port}"
    mock.flush(0)


def cluster(bootstrap: str, name: str = "c") -> KafkaCluster:
    return KafkaCluster(name=name, bootstrap_servers=bootstrap, properties=TALKATIVE)


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


class Clock:
    """A client whose statistics someone fetches.

    Tells that so many of them were made elsewhere, too.
    """

    def __init__(self, bootstrap: str) -> None:
        self.count = 0
        config = {**TALKATIVE, "bootstrap.servers": bootstrap, "stats_cb": self._note}
        self._client = Producer(config)

    def _note(self, _: str) -> None:
        self.count += 1

    def wait(self, count: int) -> None:
        target = self.count + count
        wait_until(
            lambda: self._client.poll(0.01) is not None and self.count >= target, 60, "statistics"
        )


def queued(client: ClusterClient) -> int:
    """Events that the client has made and no one has fetched."""
    admin: Any = client._admin
    return int(admin.poll(0))


def test_a_client_without_a_statistics_listener_collects_none(bootstrap: str) -> None:
    """They were made and queued forever: 60 MB a day, source and cluster."""
    client = ClusterClient("c", {"bootstrap.servers": bootstrap, **TALKATIVE})
    client.ends([("c", "t", 0)], Anchor.LATEST)
    queued(client)

    Clock(bootstrap).wait(200)

    assert queued(client) == 0


def test_queued_records_of_a_client_are_fetched_without_a_call(bootstrap: str) -> None:
    keeper = Keeper(interval=0.01)
    admin = KafkaAdmin(has_statistics=True, keeper=keeper)
    admin.begins(cluster(bootstrap), [("c", "t", 0)])
    (_, client), *_ = admin._clients.values()

    def has_fetched() -> bool:
        return client._notes.statistics is not None and client._notes.statistics.requests > 0

    wait_until(has_fetched, 60, "statistics that the keeper has fetched")


def test_unused_clients_are_closed_without_a_call_to_their_admin(
    bootstrap: str,
) -> None:
    """A cluster that was taken out: its client would try to connect forever."""
    before = threads()
    keeper = Keeper(interval=0.01)
    admin = KafkaAdmin(keeper=keeper, idle=0.0)
    for number in range(5):
        admin.begins(cluster(bootstrap, f"c{number}"), [(f"c{number}", "t", 0)])

    wait_until(lambda: not admin._clients, 60, "all clients to be given up")
    # the keeper's own remains
    wait_until(lambda: threads() <= before + 1, 60, "their threads to end")


def test_an_admin_that_is_dropped_closes_its_clients_at_once(bootstrap: str) -> None:
    """Without the help of the garbage collector, which an idle operator may not run for hours."""
    before = threads()
    gc.disable()
    try:
        for _ in range(5):
            admin = KafkaAdmin(keeper=Keeper(interval=0.01))
            admin.begins(cluster(bootstrap), [("c", "t", 0)])
        del admin
        wait_until(lambda: threads() <= before, 10, "their threads to end")
    finally:
        gc.enable()


class Member:
    """Is tended; the first time it may fail."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.tended = 0

    def tend(self) -> None:
        self.tended += 1
        if self.fails and self.tended == 1:
            raise OSError("no")


def test_a_failing_member_stops_neither_itself_nor_others_from_being_tended() -> None:
    keeper = Keeper(interval=0.001)
    members = [Member(fails=True), Member()]
    for member in members:
        keeper.add(member)

    wait_until(lambda: all(member.tended > 3 for member in members), 60, "both to be tended")


def test_the_keeper_keeps_no_member_alive_and_ends_with_the_last_one() -> None:
    keeper, members = Keeper(interval=0.001), [Member()]
    keeper.add(members[0])
    wait_until(lambda: members[0].tended > 3, 60, "the member to be tended")

    members.clear()
    wait_until(lambda: keeper._thread is None, 60, "the thread to end")
    keeper.add(again := Member())
    wait_until(lambda: again.tended > 3, 60, "the next member to be tended")
