"""How answers of the client library are understood, over a stand-in for it.

Silence is no offset.
"""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import (
    EARLIEST,
    LATEST,
    Anchor,
    FromTime,
    InitializeKafka,
    KafkaCluster,
)
from balanced_source.connectors.kafka.properties import RESERVED
from balanced_source.errors import DiscoveryError, RefusedDiscoveryError, TransientDiscoveryError
from balanced_source.host.alignment import RecordTime
from balanced_source_adapters.kafka import client as kafka_client
from balanced_source_adapters.kafka import client_errors
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_adapters.kafka.client import ClusterClient, Tail
from balanced_source_adapters.kafka.offsets import ListedOffsets
from balanced_source_adapters.kafka.offsets_admin import EARLIEST as ADMIN_EARLIEST
from balanced_source_adapters.kafka.offsets_admin import LATEST as ADMIN_LATEST
from balanced_source_adapters.kafka.property_names import NAMES
from support.offsets_admin import together

A: SplitId = ("c", "t", 0)
B: SplitId = ("c", "t", 1)


def done(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
    return future


def failed(code: int, says: str | None = None) -> KafkaException:
    return KafkaException(KafkaError(code, says))


class Library:
    """What `OffsetsAdmin` answers: an offset or an error for each partition."""

    answers: Mapping[int, Any] = {}

    def __init__(self, _config: Mapping[str, Any]) -> None:
        self.refreshed: list[str | None] = []
        self.controller_is_known = True

    def list_together(
        self, wanted: list[TopicPartition], **_: Any
    ) -> Future[Mapping[TopicPartition, Any]]:
        def answer(partition: int) -> Any:
            told = self.answers[partition]
            return (
                told if isinstance(told, Exception) else SimpleNamespace(offset=told, timestamp=0)
            )

        return together({tp: answer(tp.partition) for tp in wanted})

    def describe_topics(self, names: Any, **_: Any) -> Mapping[str, Future[Any]]:
        partitions = [SimpleNamespace(id=number) for number in self.answers]
        listed: Iterable[str] = names if isinstance(names, list) else ["t"]
        if not self.controller_is_known:
            return {name: done(failed(KafkaError._TIMED_OUT)) for name in listed}
        return {
            name: done(SimpleNamespace(partitions=partitions, topic_id="id")) for name in listed
        }

    def list_topics(self, topic: str | None, **_: Any) -> Any:
        self.refreshed.append(topic)
        self.controller_is_known = True
        partitions = {number: SimpleNamespace(leader=1) for number in self.answers}
        return SimpleNamespace(topics={"t": SimpleNamespace(error=None, partitions=partitions)})

    def poll(self, _timeout: float) -> None:
        """Nothing to deliver."""


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_client, "OffsetsAdmin", Library)


@pytest.fixture
def client() -> ClusterClient:
    return ClusterClient("c", {"bootstrap.servers": "nowhere:1"})


def initialize(**changes: Any) -> InitializeKafka:
    cluster = KafkaCluster(name="c", bootstrap_servers="nowhere:1")
    values = {
        "scope": "c",
        "split_ids": (A, B),
        "cluster": cluster,
        "starting_offsets": EARLIEST,
        **changes,
    }
    return InitializeKafka(**values)


def test_a_partition_that_does_not_exist_is_left_out_of_what_can_be_read_now(
    client: ClusterClient,
) -> None:
    Library.answers = {0: 7, 1: failed(KafkaError.UNKNOWN_TOPIC_OR_PART)}

    assert client.ends([A, B], Anchor.LATEST) == {A: 7}


@pytest.mark.parametrize(
    "silence",
    [
        OFFSET_INVALID,
        failed(KafkaError.FENCED_LEADER_EPOCH),
        failed(KafkaError.LEADER_NOT_AVAILABLE),
    ],
)
def test_a_partition_that_exists_and_does_not_answer_is_an_error_with_the_other_answers(
    client: ClusterClient, silence: Any
) -> None:
    """Left out, it would count as deleted; as an error of the cluster, it would stop all others."""
    Library.answers = {0: 7, 1: silence}

    with pytest.raises(
        TransientDiscoveryError, match=r"1 partition, e\.g\. t/1, without a leader"
    ) as caught:
        client.ends([A, B], Anchor.LATEST)

    assert (caught.value.answers, caught.value.reason) == ({A: 7}, "NoLeader")


def test_an_old_complaint_does_not_explain_a_new_failure(
    client: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection refused while a broker restarted is not why a request fails an hour later."""
    client._notes.on_error(KafkaError(KafkaError._TRANSPORT, "Connection refused"))
    Library.answers = {0: failed(KafkaError._TIMED_OUT)}
    with pytest.raises(TransientDiscoveryError, match="Connection refused"):
        client.ends([A], Anchor.LATEST)

    hour_later = time.monotonic() + 3600
    monkeypatch.setattr(client_errors.time, "monotonic", lambda: hour_later)
    with pytest.raises(TransientDiscoveryError) as caught:
        client.ends([A], Anchor.LATEST)
    assert "refused" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "complaint", "is_hinted"),
    [
        (KafkaError._TRANSPORT, None, True),
        (KafkaError._TIMED_OUT, None, True),
        (KafkaError._TIMED_OUT, "b:1/bootstrap: Disconnected (after 3ms in state UP)", True),
        (KafkaError._TRANSPORT, "Connection refused (after 0ms in state CONNECT)", False),
        (KafkaError.LEADER_NOT_AVAILABLE, None, False),
    ],
)
def test_a_port_that_closes_connections_may_speak_another_protocol(
    client: ClusterClient, code: int, complaint: str | None, is_hinted: bool
) -> None:
    if complaint is not None:
        client._notes.on_error(KafkaError(KafkaError._TRANSPORT, complaint))

    raised = client._errors.translated(failed(code))

    hint = (
        ". If the port expects TLS or SASL, set security.protocol (as an option"
        " kafka.security.protocol)"
    )
    assert str(raised).endswith(f" and the network{hint if is_hinted else ''}; trying again")


@pytest.mark.parametrize(
    ("says", "suggests"),
    [
        ('No such configuration property: "max.pol.records"', " (did you mean max.poll.records?)"),
        ('No such configuration property: "fetch.min.byte"', " (did you mean fetch.min.bytes?)"),
        ('No such configuration property: "acks.of.all"', ""),
        ("sasl.username and sasl.password must be set", ""),
    ],
)
def test_a_refused_property_is_named_as_the_spec_and_as_options_have_it(
    client: ClusterClient, says: str, suggests: str
) -> None:
    raised = client._errors.translated(failed(KafkaError._INVALID_ARG, says))

    assert str(raised) == (
        f"cluster c: {says}{suggests}: check the properties of the client (properties of the"
        " cluster; as options kafka.*)"
    )


@pytest.mark.parametrize(
    ("mechanism", "names"),
    [("GSSAPI", "GSSAPI (Kerberos), the default where none is set"), ("NTLM", "NTLM")],
)
def test_a_client_without_a_mechanism_is_not_to_be_compiled_again(
    client: ClusterClient, mechanism: str, names: str
) -> None:
    """With SASL and no mechanism, the library looks for Kerberos, which it is built without."""
    says = f"No provider for SASL mechanism {mechanism}: recompile librdkafka with libsasl2"

    raised = client._errors.translated(failed(KafkaError._INVALID_ARG, says))

    assert str(raised) == (
        f"cluster c: the client has no SASL mechanism {names}. Set sasl.mechanism (as an option"
        " kafka.sasl.mechanism) to PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
    )


@pytest.mark.parametrize(
    ("servers", "at"),
    [
        ("a:1,b:2", "cluster c at a:1, b:2 does not answer ("),
        (",a:1, ", "cluster c at a:1 does not answer ("),
        ("", "cluster c does not answer ("),
        (
            ",".join(f"b{n}:9" for n in range(7)),
            "b3:9, b4:9 and 2 more does not",
        ),
    ],
)
def test_a_cluster_that_does_not_answer_is_named_with_its_address(servers: str, at: str) -> None:
    client = ClusterClient("c", {"bootstrap.servers": servers})

    assert at in str(client._errors.translated(failed(KafkaError._TIMED_OUT)))


def test_no_reserved_property_is_suggested() -> None:
    assert NAMES.isdisjoint(RESERVED)


def test_a_dead_controller_is_looked_up_again(client: ClusterClient) -> None:
    """The client continues asking the one that it knows.

    While it does, nothing is discovered and nothing is planned.
    """
    Library.answers = {0: 7, 1: 7}
    client._admin.controller_is_known = False

    assert client.topics(["t"])["t"].partitions == {0, 1}
    assert client._admin.refreshed == [None]


@pytest.mark.parametrize("starting", [EARLIEST, LATEST, FromTime(5)])
def test_while_a_leader_moves_no_start_is_decided(starting: Any) -> None:
    """Left out, the partition would be found later, as new, and start at another place."""
    Library.answers = {0: 7, 1: OFFSET_INVALID}

    with pytest.raises(
        TransientDiscoveryError, match=r"1 partition, e\.g\. t/1, without a leader"
    ) as caught:
        KafkaAdmin().initialize(initialize(starting_offsets=starting))

    assert (caught.value.reason, caught.value.scope) == ("NoLeader", "c")


def test_a_moment_after_the_last_record_is_an_answer(client: ClusterClient) -> None:
    Library.answers = {0: 7, 1: -1}

    assert client.at_times({A: 5, B: 5}) == {A: 7}


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, RefusedDiscoveryError, "NotAuthorized"),
        (KafkaError._AUTHENTICATION, RefusedDiscoveryError, "AuthenticationFailed"),
        (KafkaError._TIMED_OUT, TransientDiscoveryError, "ClusterUnreachable"),
    ],
)
def test_errors_say_whether_someone_has_to_act(
    client: ClusterClient, code: int, kind: type[DiscoveryError], reason: str
) -> None:
    Library.answers = {0: failed(code)}

    with pytest.raises(kind) as caught:
        client.ends([A], Anchor.EARLIEST)

    assert caught.value.reason == reason


HANDSHAKE = "b:1: SASL PLAIN mechanism handshake failed: Broker: {why}: broker's supported {them}"


@pytest.mark.parametrize(
    ("why", "mechanisms", "advice"),
    [
        ("Request not valid in current SASL state", "", "the port does not expect SASL"),
        ("Unsupported SASL mechanism", "SCRAM-SHA-512", "set sasl.mechanism"),
    ],
)
def test_a_broker_without_the_mechanism_is_not_blamed_on_credentials(
    client: ClusterClient, why: str, mechanisms: str, advice: str
) -> None:
    them = f"mechanisms: {mechanisms} (after 0ms in state AUTH_HANDSHAKE)"
    text = HANDSHAKE.format(why=why, them=them)
    Library.answers = {0: failed(KafkaError._AUTHENTICATION, text)}

    with pytest.raises(RefusedDiscoveryError, match=advice) as caught:
        client.ends([A], Anchor.EARLIEST)

    assert caught.value.reason == "AuthenticationFailed"
    assert "credentials" not in str(caught.value)


def test_committed_offsets_are_those_that_were_asked_for(client: ClusterClient) -> None:
    answer = [
        TopicPartition("t", 0, 5),
        TopicPartition("t", 1, -1001),
        TopicPartition("other", 0, 7),
    ]
    library: Any = client._admin
    library.list_consumer_group_offsets = lambda *_, **__: {
        "g": done(SimpleNamespace(topic_partitions=answer))
    }

    assert client.committed("g", [A, B]) == {A: 5}


def test_a_negative_partition_number_is_an_error_that_names_the_topic(
    client: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Library, "answers", {0: 5, -1: 5})

    with pytest.raises(DiscoveryError, match=r"cluster c lists partition -1 of topic 't'"):
        client.topics(["t"])


def test_topics_that_the_cluster_cannot_describe_are_not_listed(
    client: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = SimpleNamespace(error=KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    listed = SimpleNamespace(topics={"t": SimpleNamespace(error=None), "gone": broken})
    monkeypatch.setattr(client._admin, "list_topics", lambda **_: listed)

    assert client.topic_names() == ["t"]


def partition_with(number: int, *, offset: int = -1, error: int | None = None) -> Any:
    told = None if error is None else KafkaError(error)
    return SimpleNamespace(topic="t", partition=number, offset=offset, error=told)


def with_groups(monkeypatch: pytest.MonkeyPatch, name: str, *answers: Any) -> list[Any]:
    """Let the library answer a question about a group; returns what it was asked."""
    asked: list[Any] = []

    def ask(_: Library, request: list[Any], **_more: Any) -> Mapping[str, Future[Any]]:
        asked.extend(request)
        answer: Any = SimpleNamespace(topic_partitions=answers)
        if answers and isinstance(answers[0], Exception):
            answer = answers[0]
        return {request[0].group_id: done(answer)}

    monkeypatch.setattr(Library, name, ask, raising=False)
    return asked


ABSENT, FORBIDDEN = KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_AUTHORIZATION_FAILED


def test_offsets_of_a_group_are_set_in_the_order_of_the_splits(
    monkeypatch: pytest.MonkeyPatch, client: ClusterClient
) -> None:
    asked = with_groups(
        monkeypatch,
        "alter_consumer_group_offsets",
        partition_with(0),
        partition_with(1, error=ABSENT),
    )

    client.commit("g", {B: 7, A: 5})

    (request,) = asked
    assert request.group_id == "g"
    assert [(tp.topic, tp.partition, tp.offset) for tp in request.topic_partitions] == [
        ("t", 0, 5),
        ("t", 1, 7),
    ]


@pytest.mark.parametrize("answer", [partition_with(0, error=FORBIDDEN), failed(FORBIDDEN)])
def test_a_group_that_may_not_be_used_is_an_error(
    monkeypatch: pytest.MonkeyPatch, client: ClusterClient, answer: Any
) -> None:
    with_groups(monkeypatch, "alter_consumer_group_offsets", answer)
    with_groups(monkeypatch, "list_consumer_group_offsets", answer)

    for ask in (lambda: client.commit("g", {A: 5}), lambda: client.committed("g", [A])):
        with pytest.raises(DiscoveryError):
            ask()


def test_only_partitions_with_a_committed_offset_are_answers(
    monkeypatch: pytest.MonkeyPatch, client: ClusterClient
) -> None:
    with_groups(
        monkeypatch,
        "list_consumer_group_offsets",
        partition_with(0, offset=0),
        partition_with(1, offset=-1001),
        partition_with(2, offset=5, error=ABSENT),
        partition_with(3, offset=9),
    )

    assert client.committed("g", [A, B, ("c", "t", 2)]) == {A: 0}


class Offsets:
    """Answers of leaders, and errors of those that have none."""

    def __init__(self, answers: Mapping[SplitId, Any], *, fails: tuple[SplitId, ...] = ()) -> None:
        self.answers, self.fails = answers, fails
        self.wanted: list[Any] = []

    def ask(self, wanted: Any) -> ListedOffsets:
        self.wanted.append(wanted)
        errors = dict.fromkeys(self.fails, KafkaError(KafkaError._TIMED_OUT, "silent"))
        return ListedOffsets(answers=self.answers, errors=errors)


def at(offset: int, timestamp: int = 7, epoch: int | None = 3) -> Any:
    return SimpleNamespace(offset=offset, timestamp=timestamp, leader_epoch=epoch)


def test_the_first_records_after_a_time_may_be_unknown_for_some_partitions(
    client: ClusterClient,
) -> None:
    offsets: Any = Offsets({A: at(5, 70), B: at(-1)}, fails=(("c", "t", 2),))
    client._offsets = offsets

    assert client.records_from({A: 60, B: 60}) == {A: RecordTime(offset=5, time=70), B: None}
    offsets.answers = {}
    with pytest.raises(DiscoveryError):
        client.records_from({A: 60})
    offsets.answers, offsets.fails = {A: at(0, 70)}, ()
    assert client.records_from({A: 60}) == {A: RecordTime(offset=0, time=70)}


def test_ends_have_the_leadership_that_names_them(client: ClusterClient) -> None:
    offsets: Any = Offsets({A: at(5), B: at(7, epoch=None)})
    client._offsets = offsets

    assert client.tails([A, B]) == {
        A: Tail(offset=5, leader_epoch=3),
        B: Tail(offset=7, leader_epoch=None),
    }
    offsets.fails = (("c", "t", 2),)
    with pytest.raises(DiscoveryError) as caught:
        client.tails([A, B])
    assert caught.value.answers == {
        A: Tail(offset=5, leader_epoch=3),
        B: Tail(offset=7, leader_epoch=None),
    }


def test_high_watermarks_count_records_of_open_transactions(client: ClusterClient) -> None:
    committed: Any = Offsets({A: at(5)})
    everything: Any = Offsets({A: at(9)})
    client._offsets, client._uncommitted = committed, everything

    assert client.high_watermarks([A]) == {A: 9}
    assert client.ends([A], Anchor.LATEST) == {A: 5}
    assert client.ends([A], Anchor.EARLIEST) == {A: 5}
    assert everything.wanted == [{A: ADMIN_LATEST}]
    assert committed.wanted == [{A: ADMIN_LATEST}, {A: ADMIN_EARLIEST}]


def test_a_partition_without_an_answer_to_a_time_is_an_error(client: ClusterClient) -> None:
    """That there is no record would be an answer."""
    offsets: Any = Offsets({A: at(5)})
    client._offsets = offsets

    assert client.at_times({A: 60}) == {A: 5}
    with pytest.raises(TransientDiscoveryError):
        client.at_times({A: 60, B: 60})
    offsets.answers = {A: at(0), B: at(-1)}
    assert client.at_times({A: 60, B: 60}) == {A: 0}


def test_no_time_is_before_0_because_brokers_take_it_for_an_end(client: ClusterClient) -> None:
    offsets: Any = Offsets({A: at(5)})
    client._offsets = offsets
    client.at_times({A: -1})
    client.records_from({A: -2})
    assert offsets.wanted == [{A: 0}, {A: 0}]
