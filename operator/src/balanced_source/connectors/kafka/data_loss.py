"""Records that are gone before they were read.

Retention was faster, or the topic was deleted and recreated.
"""

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from balanced_source.api import Problem, SplitId
from balanced_source.connectors.kafka.reasons import KafkaReason
from balanced_source.connectors.kafka.split import KafkaSplitId
from balanced_source.connectors.kafka.titles import titled
from balanced_source.names import counted, first_of

SKIPPED_OFFSETS: Final = "skippedOffsets"
"""Number of a driver: offsets that were deleted before they were read, and skipped."""

UNCOUNTED_OFFSETS: Final = "uncountedOffsets"
"""Number of a driver: offsets of which no one knows yet whether they were skipped."""

CONSENT: Final = "set onDataLoss to Continue (without an operator: failOnDataLoss to false)"
"""How the user allows that lost records are skipped."""

KEPT: Final = 1000
"""Partitions that are remembered although the query does not hold them any more."""

LISTED: Final = 10
"""Partitions that a message names; it says how many more there are."""


class OnDataLoss(enum.Enum):
    """What happens then.

    FAIL: nothing is skipped silently; someone decides. CONTINUE: it is skipped, and counted.
    """

    FAIL = "Fail"
    CONTINUE = "Continue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """States which records of a partition cannot be read any more.

    Attributes:
        partition: its number.
        start: first offset.
        end: first offset after the gap; None: unknown.
        topic: its topic, where the text around it does not name it.
    """

    partition: int
    start: int
    end: int | None = None
    topic: str = ""

    def __str__(self) -> str:
        upto = "on" if self.end is None else f"to {self.end - 1}"
        topic = f"topic {self.topic} " if self.topic else ""
        return f"{topic}partition {self.partition} from offset {self.start} {upto}"

    @property
    def size(self) -> int:
        """Offsets in the gap, as far as its end is known."""
        return 0 if self.end is None else max(0, self.end - self.start)


class SkipCounter:
    """Counts offsets that were planned and do not exist any more, each of them once."""

    def __init__(self) -> None:
        self._upto: dict[SplitId, int] = {}
        self.total = 0

    def note(
        self, ranges: Mapping[SplitId, tuple[int, int]], begins: Mapping[SplitId, int]
    ) -> list[Gap]:
        """Return what of these ranges lies before what there is, and is not counted yet.

        Of splits that `begins` does not name, nothing is counted.
        """
        fresh = []
        for split_id, (start, end) in ranges.items():
            gone = min(begins.get(split_id, start), end)
            # What was counted once is not counted again when the same range is planned again.
            known = max(start, self._upto.get(split_id, start))
            if gone > known:
                place = KafkaSplitId.of(split_id)
                fresh.append(
                    Gap(topic=place.topic, partition=place.partition, start=known, end=gone)
                )
                self._upto[split_id] = gone
        self.total += sum(gap.size for gap in fresh)
        return fresh

    def keep(self, split_ids: Collection[SplitId]) -> None:
        """Forget partitions that are not among these, once there are many of them.

        Of a few, it is known a little longer: their tasks may tell late what they have skipped.
        """
        if len(self._upto) > max(KEPT, 2 * len(split_ids)):
            self._upto = {s: upto for s, upto in self._upto.items() if s in split_ids}

    def forget(self, split_id: SplitId) -> None:
        """Forget what was counted of a partition: its offsets begin again, in another topic."""
        self._upto.pop(split_id, None)


def listed(gaps: list[Gap], further: int = 0) -> str:
    """Returns the gaps in words, the first `LISTED` one by one; empty ones are left out.

    Args:
        gaps: to name.
        further: number of gaps that are counted, and not among them.
    """
    real = real_gaps(gaps)
    if not real:
        return "none that is known"
    more = len(real) + further - LISTED
    return "; ".join(map(str, real[:LISTED])) + (
        f"; and {counted(more, 'more partition')}" if more > 0 else ""
    )


def real_gaps(gaps: Iterable[Gap]) -> list[Gap]:
    """Returns the gaps that may have records: not those of partitions that were read to the end."""
    return [gap for gap in gaps if gap.end is None or gap.size]


def topic_recreated(
    cluster: str,
    topic: str,
    gaps: list[Gap],
    policy: OnDataLoss,
    *,
    exists: bool = True,
    title: str = "",
    further: int = 0,
) -> Problem:
    """Returns the problem of a topic that was deleted while it was read.

    Recreated if it `exists`.
    """
    return _by_policy(
        policy,
        KafkaReason.TOPIC_RECREATED,
        cluster,
        title,
        f"topic {topic} {_deletion(exists=exists)}. Unread records of the old topic are gone:"
        f" {listed(gaps, further)}",
        stopped=_STOPPED,
        consent="to read the new topic from its start",
        consented="The new topic is read from its start",
    )


def topic_unread(
    where: str, topic: str, topic_id: str | None, gaps: list[Gap], *, exists: bool
) -> str:
    """Returns what may be missing of a topic that was deleted, and created again if it `exists`.

    The ends of its partitions are unknown: records may have come after the last look at them.
    """
    event = _deletion(exists=exists)
    named = _named(topic, topic_id)
    return (
        f"{where}: topic {named} {event}. Records that were not read, if any, are gone:"
        f" {listed(gaps)}"
    )


def topic_begun_late(
    where: str,
    topic: str,
    topic_id: str | None,
    gaps: list[Gap],
    *,
    is_of_history: bool = False,
) -> str:
    """Returns what retention may have taken from new partitions of a topic before they were found.

    No one knows whether records were there: a topic that is subscribed only now may be old.
    """
    named = _named(topic, topic_id)
    begin = "where the history ends" if is_of_history else "at offset 0"
    return (
        f"{where}: new partitions of topic {named} did not begin {begin} when they"
        " were found. Records before that, if any, were deleted before they could be read:"
        f" {listed(gaps)}. If the topic is not older than its subscription, shorten"
        " discovery.interval or lengthen the topic's retention"
    )


def topic_of_history_recreated(where: str, topic: str, topic_id: str | None) -> str:
    """Returns what may be missing of a topic that is another one than when a history was begun."""
    named = _named(topic, topic_id)
    return (
        f"{where}: topic {named} {_deletion(exists=True)} since the history was begun."
        " Records of the former topic that the history does not have are lost. The new topic is"
        " read from its start (onDataLoss: Continue)"
    )


def records_behind_history(where: str, topic: str, topic_id: str | None, gaps: list[Gap]) -> str:
    """Returns which records are gone between the end of a history and the first one of a topic."""
    named = _named(topic, topic_id)
    return (
        f"{where}: topic {named} does not begin where the history ends. Records in"
        f" between are gone: {listed(gaps)}. Reading continues behind them (onDataLoss: Continue)"
    )


def records_before_time(
    where: str, topic: str, topic_id: str | None, gaps: list[Gap], millis: int
) -> str:
    """Returns which records are gone before the first one of a topic that follows a history.

    The history ends at a time, so no one knows which of them it has.
    """
    named = _named(topic, topic_id)
    return (
        f"{where}: topic {named} may begin behind the end of the history. Records before its first"
        f" one are gone, and some may be of {millis} ms or later: {listed(gaps)}. Reading continues"
        " behind them (onDataLoss: Continue)"
    )


def commits_overtaken(where: str, topic: str, topic_id: str | None, gaps: list[Gap]) -> str:
    """Returns which records are passed over, because a topic begins behind a group's commits."""
    named = _named(topic, topic_id)
    return (
        f"{where}: topic {named} begins behind committed offsets of the group in startingOffsets,"
        " so reading starts where startingOffsets.reset says. Records in between are not read:"
        f" {listed(gaps)}. Those before the first offset of a partition are gone"
    )


def commits_ahead(
    where: str, topic: str, topic_id: str | None, commits: Mapping[int, tuple[int, int]]
) -> str:
    """Returns which partitions of a topic end before a group's commits.

    Args:
        where: what messages call the cluster.
        topic: its name.
        topic_id: its id; None if no one told.
        commits: partition → committed offset, and where reading starts.
    """
    named = _named(topic, topic_id)
    texts = [f"partition {p} has {c} and starts at {s}" for p, (c, s) in sorted(commits.items())]
    return (
        f"{where}: topic {named} ends before committed offsets of the group in startingOffsets, so"
        " reading starts where startingOffsets.reset says. The commits are of a former topic of"
        f" this name, or records were lost: {first_of(texts, LISTED)}"
    )


def topic_deleted(
    cluster: str,
    topic: str,
    gaps: list[Gap],
    policy: OnDataLoss,
    *,
    title: str = "",
    further: int = 0,
) -> Problem:
    """Returns the problem of a bounded source's topic, deleted before it was read to its stops."""
    return _by_policy(
        policy,
        KafkaReason.TOPIC_RECREATED,
        cluster,
        title,
        f"topic {topic} was deleted before it was read to its stop offsets. Unread records are"
        f" gone: {listed(gaps, further)}",
        stopped="The source does not finish",
        consent="to finish without them",
        consented="The source finishes without them",
    )


def topic_vanished(
    cluster: str,
    topic: str,
    gaps: list[Gap],
    policy: OnDataLoss,
    *,
    title: str = "",
    further: int = 0,
) -> Problem:
    """Returns the problem of a topic of a query without an end, deleted before it was read."""
    return _by_policy(
        policy,
        KafkaReason.TOPIC_RECREATED,
        cluster,
        title,
        f"topic {topic} was deleted before it was read to its end. Unread records are gone:"
        f" {listed(gaps, further)}",
        stopped="The query ends, so that someone decides",
        consent="to continue without them",
        consented="Reading continues without them",
    )


def log_truncated(
    cluster: str,
    topic: str,
    gaps: list[Gap],
    policy: OnDataLoss,
    *,
    title: str = "",
    further: int = 0,
) -> Problem:
    """Returns the problem of partitions whose logs were cut before the offsets that were read."""
    return _by_policy(
        policy,
        KafkaReason.LOG_TRUNCATED,
        cluster,
        title,
        f"the log of topic {topic} was truncated, by an unclean leader election or a restored disk."
        " Records that were read are gone from it, and others take their offsets:"
        f" {listed(gaps, further)}",
        stopped=_STOPPED,
        consent="to read the records that are available now, from the first of these offsets",
        consented="The records that are available now are read, from the first of these offsets",
    )


_STOPPED: Final = (
    "Reading of these partitions has stopped, and a micro-batch that was planned with them ends the"
    " query at each start"
)


def how_to_continue(consent: str) -> str:
    """Returns how the user allows that lost records are skipped.

    Args:
        consent: what that is for, such as "to read the new topic".
    """
    return f"{CONSENT[0].upper()}{CONSENT[1:]} {consent}"


def _named(topic: str, topic_id: str | None) -> str:
    return f"{topic} (id {topic_id})" if topic_id else topic


def _deletion(*, exists: bool) -> str:
    return "was deleted and created again" if exists else "was deleted"


def _by_policy(
    policy: OnDataLoss,
    reason: KafkaReason,
    cluster: str,
    title: str,
    loss: str,
    *,
    stopped: str,
    consent: str,
    consented: str,
) -> Problem:
    """Returns the problem of a loss.

    Args:
        policy: what the user wants to happen.
        reason: of the problem.
        cluster: that lost records.
        title: what messages call the cluster, if not by its name.
        loss: what happened, and to which records.
        stopped: what does not continue without consent.
        consent: what consent is given for.
        consented: what continues with consent.
    """
    match policy:
        case OnDataLoss.FAIL:
            advice = f"{stopped}. {how_to_continue(consent)}"
        case OnDataLoss.CONTINUE:
            advice = f"{consented} (onDataLoss: Continue)"
    message = f"{titled(cluster, title)}: {loss}. {advice}"
    return Problem(
        reason=reason, message=message, scope=cluster, is_fatal=policy is OnDataLoss.FAIL
    )
