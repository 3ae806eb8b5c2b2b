"""Asks the leaders of partitions for offsets.

Each partition gets an answer, or an error, of its own.

One call of the client library for all partitions ends when the slowest leader has answered, and a
broker that is down never does. So there is a call per leader, and a leader that is late is not
waited for again until it has answered.

librdkafka keeps leaders and their epochs until `metadata.max.age.ms` (15 minutes). It forgets them
when a broker says that it is not the leader, but not for a fenced or unknown leader epoch, which is
what a broker says after a restart or after replicas were reassigned: the picture is renewed here
after any error.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from balanced_source.api import SplitId
from balanced_source_adapters.kafka.offsets_admin import OffsetsAdmin

PATIENCE: Final = 1.0
"""Seconds to wait for a leader after the first one has answered; longer for one that was slow
before."""

RENEW: Final = (0.05, 1.0)
"""Seconds between two looks at the metadata on behalf of a partition without an answer: at first,
and at most."""

RENEW_TIMEOUT: Final = 2.0
"""Seconds for such a look: the client library may ask a broker that hangs, and another one the next
time."""

MANY: Final = 16
"""Topics: with more of them the metadata of the whole cluster is cheaper than a request for each.
"""

NOT_THERE: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}
)
"""A partition that does not exist now, according to the broker or to the client's own picture."""

_UNANSWERED: Final = frozenset(
    {KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.REQUEST_TIMED_OUT}
)
"""Errors that the client library makes up while a broker says nothing."""

FORGET: Final = 600.0
"""Seconds after which the leaders of a topic are forgotten that no one has asked for: a client may
have several users, each with topics of its own."""

OVERDUE: Final = 60.0
"""Seconds after which a partition without an answer is forgotten that no one has asked for again:
while someone asks, its next look is at most a second away."""

_NO_LEADERS: Final[Mapping[int, int]] = MappingProxyType({})

Wanted: TypeAlias = Mapping[SplitId, int]
"""What is asked of each partition: `EARLIEST`, `LATEST`, or a time in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOffsets:
    """What was found out about partitions. One that does not exist is in neither.

    Attributes:
        answers: offset and timestamp by partition, as the client library has them.
        errors: why a partition has no answer now.
    """

    answers: Mapping[SplitId, Any]
    errors: Mapping[SplitId, KafkaError]


class _Groups(NamedTuple):
    """Whom to ask for what.

    Attributes:
        leaders: what was known of the cluster.
        wanted: what was to be asked.
        groups: the partitions of each leader, with what is asked of them, and their splits; the
            leader is negative while a partition has none.
        unknown: splits whose partitions do not exist as far as is known.
    """

    leaders: Mapping[str, Mapping[int, int]]
    wanted: Wanted
    groups: Mapping[int, Mapping[TopicPartition, SplitId]]
    unknown: Collection[SplitId]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """A call for the partitions of one leader, which are answered together.

    Attributes:
        leader: number of the broker.
        splits: that were asked for, by their partitions.
        future: see `OffsetsAdmin.list_together`.
    """

    leader: int
    splits: Mapping[TopicPartition, SplitId]
    future: Future[Mapping[TopicPartition, Any]]

    def answers(self) -> Iterator[tuple[SplitId, Any]]:
        """What the leader has answered for each split, or a KafkaError."""
        found = _answers_of(self.future)
        if found is None or isinstance(found, KafkaError):
            error = no_leader(self.leader) if found is None else found
            return ((split_id, error) for split_id in self.splits.values())
        return (
            (split_id, no_leader(self.leader) if _is_missing(it := found.get(partition)) else it)
            for partition, split_id in self.splits.items()
        )


class _Leaders:
    """Which brokers answer, and how fast. Thread-safe.

    Args:
        patience: see `PATIENCE`.
        longest: seconds after which the client library gives up.
        clock: seconds, monotonic.
    """

    def __init__(self, patience: float, longest: float, clock: Callable[[], float]) -> None:
        self._patience = patience
        self._longest = longest
        self._clock = clock
        self._lock = threading.Lock()
        self._pending: dict[int, Future[Any]] = {}
        self._suspects: set[int] = set()
        self._took: dict[int, float] = {}

    def is_late(self, leader: int) -> bool:
        """Whether an earlier request still waits: a second one would queue up behind it."""
        with self._lock:
            return leader in self._pending and not self._pending[leader].done()

    def note_sent(self, request: _Request) -> None:
        """Watch a request that was just sent."""
        # The callback must not hold the request, which holds the future that holds the callback:
        # each look-up would leave garbage that only the cyclic collector finds.
        done = partial(self._note_done, request.leader, self._clock())
        request.future.add_done_callback(done)

    def wait(self, requests: Collection[_Request]) -> None:
        """Wait for the first answer, then a little for the others.

        Who failed last time is not waited for.
        """
        with self._lock:
            # If all of them failed last time there is no one else to wait for.
            trusted = [r for r in requests if r.leader not in self._suspects] or list(requests)
        wait([r.future for r in trusted], self._longest, FIRST_COMPLETED)
        if late := [r for r in trusted if not r.future.done()]:
            wait([r.future for r in late], max(self._patience_for(r.leader) for r in late))
        with self._lock:
            self._pending = {n: f for n, f in self._pending.items() if not f.done()}
            for request in requests:
                if not request.future.done():
                    # The next call does not wait for this leader, so a dead broker costs its
                    # patience once.
                    self._suspects.add(request.leader)
                    self._pending[request.leader] = request.future

    def _patience_for(self, leader: int) -> float:
        with self._lock:
            return min(self._longest, max(self._patience, 2 * self._took.get(leader, 0.0)))

    def _note_done(self, leader: int, began: float, future: Future[Any]) -> None:
        with self._lock:
            if has_answered(future):
                self._suspects.discard(leader)
                self._took[leader] = self._clock() - began
            else:
                self._suspects.add(leader)


class OffsetRequests:
    """Requests of one admin client. Thread-safe.

    Args:
        admin: of the client library.
        isolation: whether records of open transactions count.
        timeout: seconds for one request.
        patience: see `PATIENCE`.
        renew: see `RENEW`.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        admin: OffsetsAdmin,
        isolation: IsolationLevel,
        *,
        timeout: float,
        patience: float = PATIENCE,
        renew: tuple[float, float] = RENEW,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admin = admin
        self._isolation = isolation
        self._timeout = timeout
        self._renew_first, self._renew_most = renew
        self._clock = clock
        self._brokers = _Leaders(patience, timeout, clock)
        self._lock = threading.Lock()
        self._leaders: Mapping[str, Mapping[int, int]] = {}
        self._grouped = _Groups({}, {}, {}, ())
        self._due_at: dict[SplitId, tuple[float, float]] = {}
        self._used: dict[str, float] = {}

    def ask(self, wanted: Wanted) -> ListedOffsets:
        """Return offsets of partitions, after a second try with newer metadata where none came."""
        # There is a call per leader, so the leaders must be known first.
        unknown = self._by_leader(wanted).unknown
        failed = self._renew(unknown, self._timeout) if unknown else {}
        listed = self._asked(wanted)
        # Nearly always, and a driver asks up to 50 times a second.
        if len(listed.answers) == len(wanted) and not self._due_at:
            return listed
        missing = {s: spec for s, spec in wanted.items() if s not in listed.answers}
        if due := self._due(missing):
            failed |= self._renew(due, min(RENEW_TIMEOUT, self._timeout))
            again = self._asked(missing)
            answers = {**listed.answers, **again.answers}
            listed = ListedOffsets(
                answers={s: answers[s] for s in wanted if s in answers}, errors=again.errors
            )
        overdue = self._clock() - OVERDUE
        with self._lock:
            self._due_at = {
                s: due
                for s, due in self._due_at.items()
                if s not in listed.answers and due[0] > overdue
            }
        # Why there is no metadata explains the silence of a whole cluster, but not that of one
        # broker.
        errors = {**failed, **listed.errors} if listed.answers else {**listed.errors, **failed}
        return ListedOffsets(
            answers=listed.answers,
            errors={s: e for s, e in errors.items() if s not in listed.answers},
        )

    def _by_leader(self, wanted: Wanted) -> _Groups:
        # As a rule the same is asked again and again.
        known, leaders = self._grouped, self._leaders
        is_same = known.wanted is wanted or known.wanted == wanted
        if known.leaders is leaders and is_same:
            return known
        groups: dict[int, dict[TopicPartition, SplitId]] = {}
        unknown: list[SplitId] = []
        for split_id, at in wanted.items():
            topic, number = str(split_id[1]), int(split_id[2])
            leader = leaders.get(topic, _NO_LEADERS).get(number)
            if leader is None:
                unknown.append(split_id)
            else:
                groups.setdefault(leader, {})[TopicPartition(topic, number, at)] = split_id
        self._grouped = found = _Groups(leaders, wanted, groups, unknown)
        self._note_used(known.wanted, wanted)
        return found

    def _note_used(self, before: Wanted, wanted: Wanted) -> None:
        """Take note of the topics that were asked for up to now, and of those that are."""
        now = self._clock()
        topics = {str(split_id[1]) for asked in (before, wanted) for split_id in asked}
        with self._lock:
            self._used.update(dict.fromkeys(topics, now))

    # --- metadata ---------------------------------------------------------------------------------

    def _due(self, splits: Iterable[SplitId]) -> list[SplitId]:
        now = self._clock()
        with self._lock:
            return [s for s in splits if s not in self._due_at or now >= self._due_at[s][0]]

    def _renew(self, splits: Iterable[SplitId], timeout: float) -> dict[SplitId, KafkaError]:
        """Ask for the leaders of partitions again, where that is due.

        Errors of those that cannot be asked for.
        """
        due, now = self._due(splits), self._clock()
        with self._lock:
            for split_id in due:
                _, delay = self._due_at.get(split_id, (now, self._renew_first))
                # Later and later: a partition may have no leader for hours.
                self._due_at[split_id] = now + delay, min(2 * delay, self._renew_most)
        names = {str(s[1]) for s in due}
        try:
            failed = self._looked_up(names, timeout) if names else {}
        except KafkaException as error:
            return dict.fromkeys(due, error.args[0])
        return {s: failed[str(s[1])] for s in due if str(s[1]) in failed}

    def _looked_up(self, names: Collection[str], timeout: float) -> dict[str, KafkaError]:
        """Take over what the cluster says of topics.

        Errors of topics other than that they do not exist.
        """
        errors: dict[str, KafkaError] = {}
        everything = self._metadata(None, timeout) if len(names) > MANY else {}
        for name in names:
            topic = (everything or self._metadata(name, timeout)).get(name)
            if topic is None or topic.error is not None:
                # Gone, or not described now: the known leaders may be those of a former topic.
                self._note_leaders(name, {})
                if topic is not None and topic.error.code() not in NOT_THERE:
                    errors[name] = topic.error
            else:
                numbers = topic.partitions.items()
                self._note_leaders(name, {number: one.leader for number, one in numbers})
        return errors

    def _note_leaders(self, topic: str, leaders: Mapping[int, int]) -> None:
        # A new table, so that `_by_leader` notices.
        with self._lock:
            is_new = bool(leaders) and topic not in self._leaders
            known = self._without_unused() if is_new else self._leaders
            others = {name: one for name, one in known.items() if name != topic}
            self._leaders = {**others, topic: leaders} if leaders else others

    def _without_unused(self) -> Mapping[str, Mapping[int, int]]:
        """Forget topics that no one asks for, such as those of former days. Holds the lock."""
        now = self._clock()
        asked = {str(split_id[1]) for split_id in self._grouped.wanted}
        self._used = {
            name: at for name, at in self._used.items() if name in asked or now - at < FORGET
        }
        return {name: one for name, one in self._leaders.items() if name in self._used}

    def _metadata(self, topic: str | None, timeout: float) -> Mapping[str, Any]:
        topics: Mapping[str, Any] = self._admin.list_topics(topic, timeout=timeout).topics
        return topics

    # --- offsets ----------------------------------------------------------------------------------

    def _asked(self, wanted: Wanted) -> ListedOffsets:
        groups = self._by_leader(wanted).groups
        # A request to a leader that is late would queue up behind the one that still waits.
        silent = {leader for leader in groups if leader < 0 or self._brokers.is_late(leader)}
        errors = {s: no_leader(leader) for leader in silent for s in groups[leader].values()}
        requests = [self._sent(n, group) for n, group in groups.items() if n not in silent]
        if requests:
            self._brokers.wait(requests)
        answers: dict[SplitId, Any] = {}
        for request in requests:
            for split_id, found in request.answers():
                if not isinstance(found, KafkaError):
                    answers[split_id] = found
                elif found.code() not in NOT_THERE:
                    errors[split_id] = found
        if len(requests) > 1:
            answers = {s: answers[s] for s in wanted if s in answers}
        return ListedOffsets(answers=answers, errors=errors)

    def _sent(self, leader: int, group: Mapping[TopicPartition, SplitId]) -> _Request:
        future = self._admin.list_together(
            list(group), isolation=self._isolation, timeout=self._timeout
        )
        request = _Request(leader=leader, splits=group, future=future)
        self._brokers.note_sent(request)
        return request


def has_answered(future: Future[Mapping[TopicPartition, Any]]) -> bool:
    """Whether a broker has said something, be it that it refuses."""
    found = _answers_of(future)
    if found is None or isinstance(found, KafkaError):
        return found is not None and found.code() not in _UNANSWERED
    return any(not _is_missing(it) and not _is_unanswered(it) for it in found.values())


def no_leader(leader: int) -> KafkaError:
    """An error for a partition whose leader is unknown (negative), or does not answer."""
    if leader < 0:
        return KafkaError(KafkaError.LEADER_NOT_AVAILABLE, "the partition has no leader")
    return KafkaError(KafkaError.REQUEST_TIMED_OUT, f"broker {leader}, its leader, does not answer")


def partition_of(split_id: SplitId) -> TopicPartition:
    """The partition that a split is, as the client library names it."""
    return TopicPartition(str(split_id[1]), int(split_id[2]))


def _answers_of(
    future: Future[Mapping[TopicPartition, Any]],
) -> Mapping[TopicPartition, Any] | KafkaError | None:
    """What a leader has answered; None: nothing yet."""
    try:
        return future.result(0)
    except TimeoutError:
        return None
    except KafkaException as error:
        found: KafkaError = error.args[0]
        return found


def _is_missing(found: Any) -> bool:
    """Whether this is no answer: what the client library says if the leader was not reached."""
    return found is None or (not isinstance(found, KafkaError) and found.offset == OFFSET_INVALID)


def _is_unanswered(found: Any) -> bool:
    return isinstance(found, KafkaError) and found.code() in _UNANSWERED
