"""Which logs are checked before an end counts, over a stand-in for the client."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaCluster
from balanced_source.documents.stream_offset import TermEnd
from balanced_source.host.ends import Mark, SplitEnd
from balanced_source.host.log_check import Found
from balanced_source_adapters.kafka import admin as kafka_admin
from balanced_source_adapters.kafka.admin import KafkaAdmin, SharedClients
from balanced_source_adapters.kafka.client import Tail
from balanced_source_adapters.kafka.topics import Topic

A: SplitId = ("c", "t", 0)
CLUSTER = KafkaCluster(name="c", bootstrap_servers="nowhere:1")
READ = Mark(position=5, term=3)
PAST = (TermEnd(2, 4),)


class Client:
    """Answers one tail for every partition."""

    def __init__(self, offset: int, leader_epoch: int | None) -> None:
        self._tail = Tail(offset=offset, leader_epoch=leader_epoch)

    def tend(self) -> None:
        """Nothing is queued."""

    def tails(self, split_ids: Iterable[SplitId]) -> dict[SplitId, Tail]:
        return dict.fromkeys(split_ids, self._tail)

    def topics(self, names: Iterable[str], *, must_be_readable: bool = False) -> dict[str, Topic]:
        return dict.fromkeys(names, Topic(frozenset({0}), "id"))


def ends(
    monkeypatch: pytest.MonkeyPatch, client: Client, mark: Mark, cut: int | Exception | None
) -> SplitEnd:
    asked: list[Any] = []

    def check_logs(
        _config: Mapping[str, Any], marks: Mapping[SplitId, tuple[Mark, int | None]]
    ) -> dict[SplitId, Found]:
        asked.append(marks)
        if isinstance(cut, Exception):
            raise cut
        return dict.fromkeys(marks, Found(cut, PAST))

    monkeypatch.setattr(kafka_admin, "check_logs", check_logs)
    monkeypatch.setattr(KafkaAdmin, "_client", lambda *_: client)
    answer = KafkaAdmin().ends(CLUSTER, [A], {A: mark})[A]
    assert (answer.checked is not None) <= (asked == [{A: (mark, answer.term)}])
    return answer


@pytest.mark.parametrize(
    ("client", "mark"),
    [
        pytest.param(Client(9, 3), READ, id="the same leadership"),
        pytest.param(Client(9, None), READ, id="a broker that does not say"),
        pytest.param(Client(9, 7), Mark(position=5), id="a split that was not read yet"),
        pytest.param(Client(9, 2), READ, id="a leader of former times"),
        pytest.param(Client(3, 2), READ, id="a leader of former times, and its old end"),
    ],
)
def test_no_log_is_checked(monkeypatch: pytest.MonkeyPatch, client: Client, mark: Mark) -> None:
    assert ends(monkeypatch, client, mark, cut=1).checked is None


@pytest.mark.parametrize("cut", [None, 2])
@pytest.mark.parametrize(
    ("client", "mark"),
    [
        pytest.param(Client(9, 4), READ, id="another leader"),
        pytest.param(Client(4, 3), READ, id="the same, with an end before the position"),
        pytest.param(
            Client(4, None), READ, id="an end before the position, of a broker that does not say"
        ),
        pytest.param(
            Client(4, 7), Mark(position=5), id="an end before a position of unknown leadership"
        ),
    ],
)
def test_a_log_that_may_have_been_cut_is_checked(
    monkeypatch: pytest.MonkeyPatch, client: Client, mark: Mark, cut: int | None
) -> None:
    answer = ends(monkeypatch, client, mark, cut)

    assert (answer.checked, answer.cut, answer.past) == (mark, cut, PAST)


def test_a_cut_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for a user, and each look costs a consumer and a second."""
    asked: list[Any] = []

    def check_logs(_config: Any, marks: Mapping[SplitId, Any]) -> dict[SplitId, Found]:
        asked.append(marks)
        return {s: Found(2 if s == A else None, PAST) for s in marks}

    client = Client(9, 4)
    monkeypatch.setattr(kafka_admin, "check_logs", check_logs)
    monkeypatch.setattr(KafkaAdmin, "_client", lambda *_: client)
    admin, other = KafkaAdmin(), ("c", "t", 1)

    def cut(**marks: Mark) -> list[int | None]:
        given = {("c", "t", int(name[1:])): mark for name, mark in marks.items()}
        return [answer.cut for answer in admin.ends(CLUSTER, list(given), given).values()]

    for _ in range(3):
        assert cut(p0=READ) == [2]
    assert asked == [{A: (READ, 4)}]
    assert cut(p0=READ, p1=READ) == [2, None]
    assert asked[1:] == [{other: (READ, 4)}]
    client._tail = Tail(offset=9, leader_epoch=5)
    assert cut(p0=READ) == [2]
    assert asked[2:] == [{A: (READ, 5)}], "another leader"
    assert cut(p0=Mark(position=4, term=3)) == [2]
    assert len(asked) == 4, "another position"


def test_cuts_of_a_cluster_that_is_taken_out_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    def check_logs(_config: Any, marks: Mapping[SplitId, Any]) -> dict[SplitId, Found]:
        return dict.fromkeys(marks, Found(2, PAST))

    monkeypatch.setattr(kafka_admin, "check_logs", check_logs)
    monkeypatch.setattr(SharedClients, "get", lambda *_, **__: Client(9, 4))
    admin = KafkaAdmin(idle=-1.0)
    for day in range(50):
        split_id: SplitId = (f"day-{day}", "t", 0)
        cluster = KafkaCluster(name=f"day-{day}", bootstrap_servers="b:1")
        assert admin.ends(cluster, [split_id], {split_id: READ})[split_id].cut == 2
        admin.tend()

    assert admin._cuts == admin._clients == admin._used == {}


def test_a_check_that_fails_leaves_the_answer_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    error = KafkaException(KafkaError(KafkaError._INVALID_ARG))

    assert ends(monkeypatch, Client(9, 4), READ, error) == SplitEnd(end=9, identity="id", term=4)
