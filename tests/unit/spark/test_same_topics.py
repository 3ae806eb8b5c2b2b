"""A task reads from the topics that its micro-batch was planned for, or says why not."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import pytest

from balanced_source.connectors.kafka import OnDataLoss
from balanced_source.errors import TransientDiscoveryError
from balanced_source.host import SplitRange
from balanced_source_spark.kafka import same_topics
from balanced_source_spark.kafka.renewals import renewals_of
from balanced_source_spark.kafka.same_topics import SameTopics
from balanced_source_spark.kafka.settings import OffsetsLostError, ReadStalledError
from balanced_source_spark.kafka.topic_watch import Interrupt, TopicWatch

T = SplitRange(split_id=("c", "t", 0), start=5, end=9, identity="first")
U = SplitRange(split_id=("c", "u", 0), start=0, end=3, identity="u")
OLD = SplitRange(split_id=("c", "old", 0), start=0, end=3)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_topics, "RETRY", 0.0)


class Cluster:
    """Says the next ids each time that it is asked, then the last ones forever."""

    def __init__(self, *answers: Mapping[str, str] | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0

    def ask(self, topics: Collection[str]) -> Callable[[], Mapping[str, str]]:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

        def ids() -> Mapping[str, str]:
            if isinstance(answer, Exception):
                raise answer
            return {topic: answer[topic] for topic in topics if topic in answer}

        return ids


def read(
    cluster: Cluster,
    ranges: Sequence[SplitRange] = (T, U),
    *,
    policy: OnDataLoss = OnDataLoss.FAIL,
    error: Exception | None = None,
    skip: Callable[[Sequence[SplitRange]], None] = lambda _: None,
) -> list[Any]:
    def reader(kept: Sequence[SplitRange]) -> Iterator[Any]:
        yield from kept
        if error is not None:
            raise error

    topics = SameTopics(cluster="c", ask=cluster.ask, policy=policy, missing=0.0, skip=skip)
    return list(topics.read(ranges, reader, Interrupt()))


SAME = {"t": "first", "u": "u"}
RECREATED = {"t": "second", "u": "u"}


def test_planned_ranges_are_read() -> None:
    cluster = Cluster(SAME)

    assert read(cluster) == [T, U]
    assert cluster.asked == 2, "before the first batch is delivered, and after the last is fetched"


def test_a_read_of_one_batch_asks_once() -> None:
    """Small micro-batches are such reads, and a question takes longer than they do."""
    cluster = Cluster(SAME)

    assert read(cluster, [T]) == [T]
    assert cluster.asked == 1


@pytest.mark.parametrize("policy", list(OnDataLoss))
def test_the_last_batch_is_delivered_after_the_last_question(policy: OnDataLoss) -> None:
    cluster, asked = Cluster(SAME), list[int]()
    topics = SameTopics(cluster="c", ask=cluster.ask, policy=policy, missing=0.0)

    for _ in topics.read([T, U], iter, Interrupt()):
        asked.append(cluster.asked)

    # With consent, what to read is also asked for before.
    before = policy is OnDataLoss.CONTINUE
    assert asked == [before + 1, before + 2]


def test_one_batch_is_held_back_at_a_time() -> None:
    """Until the next one is fetched, or the last question is answered."""
    cluster, told = Cluster(SAME), list[tuple[SplitRange, int, int]]()
    pieces = [
        SplitRange(split_id=("c", "t", p), start=0, end=1, identity="first") for p in range(5)
    ]
    fetched: list[SplitRange] = []

    def reader(_: Sequence[SplitRange]) -> Iterator[Any]:
        for piece in pieces:
            fetched.append(piece)
            yield piece

    topics = SameTopics(cluster="c", ask=cluster.ask, policy=OnDataLoss.FAIL, missing=0.0)
    for piece in topics.read(pieces, reader, Interrupt()):
        told.append((piece, len(fetched), cluster.asked))

    assert told == [
        (pieces[0], 2, 1),
        (pieces[1], 3, 1),
        (pieces[2], 4, 1),
        (pieces[3], 5, 1),
        (pieces[4], 5, 2),
    ]


def test_the_last_batch_is_not_delivered_if_its_topic_was_recreated_meanwhile() -> None:
    delivered: list[Any] = []
    topics = SameTopics(
        cluster="c", ask=Cluster(SAME, RECREATED).ask, policy=OnDataLoss.FAIL, missing=0.0
    )

    with pytest.raises(OffsetsLostError):
        delivered.extend(topics.read([T, U], iter, Interrupt()))

    assert delivered == [T]


def test_a_recreated_topic_is_not_read() -> None:
    with pytest.raises(
        OffsetsLostError,
        match=r"topic t was deleted and created again.*partition 0 from offset 5 to 8",
    ):
        read(Cluster(RECREATED))


def test_all_partitions_of_recreated_topics_are_named_in_their_order() -> None:
    """A split of which nothing was read yet has no position."""
    others = [
        SplitRange(split_id=("c", "t", 3), start=None, end=4, identity="first"),
        SplitRange(split_id=("c", "s", 1), start=2, end=3, identity="first"),
    ]
    with pytest.raises(OffsetsLostError) as caught:
        read(Cluster({"t": "second", "s": "second", "u": "u"}), [T, U, *others])

    says = str(caught.value)
    assert says.index("topic s was deleted") < says.index("topic t was deleted")
    assert "partition 0 from offset 5 to 8" in says
    assert "partition 3 from offset 0 to 3" in says


def test_no_row_leaves_before_the_topics_were_compared() -> None:
    """With `limit`, Spark may stop after the first rows, and never come to the check at the end."""
    cluster = Cluster(RECREATED)
    delivered: list[Any] = []
    topics = SameTopics(cluster="c", ask=cluster.ask, policy=OnDataLoss.FAIL, missing=0.0)
    with pytest.raises(OffsetsLostError):
        delivered.extend(topics.read([T, U], iter, Interrupt()))
    assert delivered == []


def test_waiting_for_a_deleted_topic_ends() -> None:
    with pytest.raises(OffsetsLostError, match=r"topic t was deleted\."):
        read(Cluster({"u": "u"}))


@pytest.mark.parametrize("answer", [RECREATED, {"u": "u"}], ids=["recreated", "deleted"])
def test_with_consent_only_the_others_are_read(answer: Mapping[str, str]) -> None:
    skipped: list[SplitRange] = []
    assert read(Cluster(answer), policy=OnDataLoss.CONTINUE, skip=skipped.extend) == [U]
    assert skipped == [T], "planning is told"


@pytest.mark.parametrize("policy", list(OnDataLoss))
def test_records_read_while_the_topic_was_recreated_do_not_count(policy: OnDataLoss) -> None:
    """The task fails, Spark drops its rows, and the next attempt asks before it reads."""
    cluster = Cluster(SAME, RECREATED)

    with pytest.raises(OffsetsLostError, match="topic t was deleted"):
        read(cluster, policy=policy)
    if policy is OnDataLoss.CONTINUE:
        assert read(cluster, policy=policy) == [U]
    else:
        with pytest.raises(OffsetsLostError, match="topic t was deleted"):
            read(cluster, policy=policy)


@pytest.mark.parametrize("error", [OffsetsLostError("gone"), ReadStalledError("nothing arrived")])
def test_a_failed_read_says_that_the_topic_is_another_one(error: Exception) -> None:
    with pytest.raises(OffsetsLostError, match="deleted and created again"):
        read(Cluster(SAME, RECREATED), error=error)
    with pytest.raises(type(error), match=str(error)):
        read(Cluster(SAME), error=error)


@pytest.mark.parametrize("policy", list(OnDataLoss))
@pytest.mark.parametrize("answer", [RECREATED, {"u": "u"}], ids=["recreated", "deleted"])
def test_a_read_ends_soon_after_its_topic_does(
    answer: Mapping[str, str], policy: OnDataLoss
) -> None:
    """Nothing else would end it before it counts as stalled.

    Two minutes, in which nothing else is read either.
    """
    cluster, interrupt, is_over = Cluster(SAME), Interrupt(), threading.Event()
    down = TransientDiscoveryError("c is down", scope="c")

    def reader(kept: Sequence[SplitRange]) -> Iterator[Any]:
        yield kept[0]
        with interrupt.calls(is_over.set):
            cluster.answers = [down, SAME, answer]
            assert is_over.wait(20), "the watch ends the read"
        raise ReadStalledError("the read was interrupted")

    watch = TopicWatch(look_after=0.0, look_every=0.001)
    topics = SameTopics(cluster="c", ask=cluster.ask, policy=policy, missing=0.0, watch=watch)
    with pytest.raises(OffsetsLostError, match="topic t was deleted"):
        list(topics.read([T, U], reader, interrupt))


def test_a_read_that_is_interrupted_before_it_begins_ends_too() -> None:
    interrupt, calls = Interrupt(), list[str]()
    interrupt.set()

    with interrupt.calls(lambda: calls.append("stop")):
        assert interrupt.is_set

    assert calls == ["stop"]


def test_a_read_that_has_ended_is_not_stopped() -> None:
    """Its consumer may be another reader's by then."""
    interrupt, calls = Interrupt(), list[str]()
    with interrupt.calls(lambda: calls.append("stop")):
        pass

    interrupt.set()

    assert calls == []


def test_a_cluster_that_does_not_answer_is_waited_for() -> None:
    down = TransientDiscoveryError("c is down", scope="c")

    assert read(Cluster(down, down, SAME)) == [T, U]
    topics = SameTopics(cluster="c", ask=Cluster(down).ask, policy=OnDataLoss.FAIL, patience=0.0)
    with pytest.raises(TransientDiscoveryError):
        list(topics.read([T], iter, Interrupt()))


def test_ranges_of_a_previous_state_know_no_ids() -> None:
    cluster = Cluster({})

    assert read(cluster, [OLD]) == [OLD]
    assert cluster.asked == 0


def test_a_consumer_that_is_kept_serves_no_other_topic() -> None:
    """It may hold records of the old topic at offsets that the new one has, too."""
    before = renewals_of("x", [T, U])
    assert renewals_of("x", [U]) == before
    assert (
        renewals_of("x", [SplitRange(split_id=T.split_id, start=0, end=1, identity="second")])
        == before + 1
    )
    assert renewals_of("x", [U]) == before + 1
