"""From wishes to offsets, with as few questions as possible.

Pure except for the look-ups behind a port.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol, assert_never

from balanced_source.api import SplitId
from balanced_source.connectors.kafka.data_loss import CONSENT, how_to_continue
from balanced_source.connectors.kafka.offsets import (
    AfterHistory,
    AfterOffset,
    AfterTime,
    Anchor,
    AtCommit,
    AtOffset,
    AtTime,
    OffsetsInitializer,
    Wish,
)
from balanced_source.connectors.kafka.reasons import KafkaReason
from balanced_source.connectors.kafka.split import KafkaSplitId
from balanced_source.connectors.kafka.titles import titled
from balanced_source.errors import RefusedDiscoveryError
from balanced_source.names import first_of, split_name

Offsets = Mapping[SplitId, int]
Chains = Mapping[SplitId, tuple[Wish, ...]]

_SHOWN: Final = 3

_LOOKED_AT: Final = (AtOffset, AtCommit, AfterOffset, AfterTime)
"""Wishes that are compared with the ends of the log."""


class OffsetLookup(Protocol):
    """What a cluster can be asked. Partitions without an answer are left out of it."""

    def ends(self, split_ids: Collection[SplitId], anchor: Anchor) -> Offsets:
        """First offsets, or next ones (what an open transaction holds back is not there yet)."""
        ...

    def high_watermarks(self, split_ids: Collection[SplitId]) -> Offsets:
        """Next offsets, behind the records of open transactions."""
        ...

    def at_times(self, millis: Mapping[SplitId, int]) -> Offsets:
        """Offsets of the first records at or after the moments."""
        ...

    def committed(self, group: str, split_ids: Collection[SplitId]) -> Offsets:
        """Commits of a consumer group."""
        ...


def resolve_start(
    initializer: OffsetsInitializer,
    split_ids: Iterable[SplitId],
    lookup: OffsetLookup,
    topic_ids: Mapping[str, str] = MappingProxyType({}),
    *,
    title: str = "",
) -> Offsets:
    """Where reading of each split starts; splits that do not exist any more are left out.

    Args:
        initializer: the user's choice.
        split_ids: of one cluster.
        lookup: asks the cluster.
        topic_ids: topic → its id now, as far as known.
        title: what messages call the cluster, if not by its name.

    Raises:
        RefusedDiscoveryError: a split has no answer, or an offset that was asked for does not
            exist.
    """
    chains = _chains(initializer, split_ids)
    if isinstance(initializer, AfterHistory):
        chains = {**chains, **_of_history(initializer, chains, topic_ids, title)}
    # Ends are asked for only where a wish must be compared with them: they cost requests.
    exact = [s for s, chain in chains.items() if isinstance(chain[0], _LOOKED_AT)]
    first, last = lookup.ends(exact, Anchor.EARLIEST), lookup.ends(exact, Anchor.LATEST)
    # A partition without ends vanished meanwhile. It is found again if it comes back.
    existing = {
        s: chain for s, chain in chains.items() if s not in exact or (s in first and s in last)
    }
    last = {**last, **_ends_before_times(existing, lookup, besides=last)}
    return _resolve(existing, lookup, first=first, last=last, option="startingOffsets")


def cut_at_start(
    initializer: OffsetsInitializer, starts: Offsets, lookup: OffsetLookup
) -> frozenset[SplitId]:
    """Return the splits whose logs begin where reading starts, although records may be lost then.

    Of a history that ends at a time, no one knows whether it has the records before that.

    Args:
        initializer: the user's choice.
        starts: where reading of each split starts.
        lookup: asks the cluster.
    """
    history = initializer if isinstance(initializer, AfterHistory) else None
    if history is None or history.millis is None or not history.may_lose:
        return frozenset()
    first = lookup.ends([s for s, start in starts.items() if start], Anchor.EARLIEST)
    return frozenset(s for s, begin in first.items() if starts[s] <= begin)


def void_commits(initializer: OffsetsInitializer, starts: Offsets, lookup: OffsetLookup) -> Offsets:
    """Return the commits that are outside their logs, of splits that start where a reset says.

    Retention has overtaken them, or they are of a former topic. The user chose the reset for
    partitions without a commit, and would not hear that records are passed over.

    Args:
        initializer: the user's choice.
        starts: where reading of each split starts.
        lookup: asks the cluster.
    """
    first_wishes = {s: chain[0] for s, chain in _chains(initializer, starts).items() if chain[1:]}
    asked = {s: wish for s, wish in first_wishes.items() if isinstance(wish, AtCommit)}
    commits = {s: c for s, c in _ask(asked, lookup).items() if c != starts[s]}
    if not commits:
        return commits
    # One inside its log is of a group that lives, and has committed since the start was looked up.
    first, last = lookup.ends(commits, Anchor.EARLIEST), lookup.high_watermarks(list(commits))
    return {
        s: c
        for s, c in commits.items()
        if s in first and s in last and not first[s] <= c <= last[s]
    }


def resolve_stop(
    initializer: OffsetsInitializer, split_ids: Iterable[SplitId], lookup: OffsetLookup
) -> Offsets:
    """First offset of each split that is not read any more. It may lie in the future.

    Raises:
        RefusedDiscoveryError: a split has no answer.
    """
    chains = _chains(initializer, split_ids)
    last = _ends_before_times(chains, lookup)
    return _resolve(chains, lookup, first={}, last=last, option="stoppingOffsets")


def _ends_before_times(
    chains: Chains, lookup: OffsetLookup, *, besides: Container[SplitId] = ()
) -> Offsets:
    """Return the ends of partitions that begin there if they have no record of a time or later.

    They are asked for before the times: a record that comes between the two questions would
    otherwise be before the start, although it is of that time.

    Args:
        chains: wishes of the partitions.
        lookup: asks the cluster.
        besides: partitions whose ends are known.
    """
    asked = [s for s, chain in chains.items() if s not in besides and _ends_at(chain, 0)]
    return lookup.ends(asked, Anchor.LATEST) if asked else {}


def _ends_at(wishes: Sequence[Wish], stage: int) -> bool:
    """Whether the end of a partition counts where no record answers the wish at a stage."""
    following = wishes[stage + 1 : stage + 2]
    return isinstance(wishes[stage], AtTime | AfterTime) and following == (Anchor.LATEST,)


def _chains(initializer: OffsetsInitializer, split_ids: Iterable[SplitId]) -> Chains:
    ids = map(KafkaSplitId.of, split_ids)
    return {s: initializer.wishes(s.topic, s.partition) for s in ids}


def _resolve(
    chains: Chains, lookup: OffsetLookup, *, first: Offsets, last: Offsets, option: str
) -> Offsets:
    found: dict[SplitId, int] = {}
    stage, waiting = 0, dict(chains)
    while waiting:
        over = {s: chain for s, chain in waiting.items() if stage >= len(chain)}
        # Nothing is guessed for a split without an answer: a user has to see it.
        if over:
            raise _unanswered(over, option)
        # All splits of a stage are asked for together, so that a discovery costs a few requests.
        wishes = {s: chain[stage] for s, chain in waiting.items()}
        answers = _ask(wishes, lookup)
        _check_exact(wishes, first, last, option)
        reached = _with_open(wishes, answers, last, lookup)
        answers |= _after_history(wishes, answers, first, reached)
        answers |= {
            s: last[s]
            for s, chain in waiting.items()
            if s in last and s not in answers and _ends_at(chain, stage)
        }
        found |= {
            s: o
            for s, o in answers.items()
            if _is_within(wishes[s], o, first.get(s), reached.get(s))
        }
        # An end without an answer: the partition vanished meanwhile.
        waiting = {
            s: c for s, c in waiting.items() if s not in found and not isinstance(wishes[s], Anchor)
        }
        stage += 1
    return found


def _ask(wishes: Mapping[SplitId, Wish], lookup: OffsetLookup) -> dict[SplitId, int]:
    answers: dict[SplitId, int] = {
        s: w.offset for s, w in wishes.items() if isinstance(w, AtOffset | AfterOffset)
    }
    for anchor in Anchor:
        if asked := [s for s, w in wishes.items() if w is anchor]:
            answers |= lookup.ends(asked, anchor)
    if times := {s: w.millis for s, w in wishes.items() if isinstance(w, AtTime | AfterTime)}:
        answers |= lookup.at_times(times)
    for group in dict.fromkeys(w.group for w in wishes.values() if isinstance(w, AtCommit)):
        answers |= lookup.committed(group, [s for s, w in wishes.items() if w == AtCommit(group)])
    return answers


def _is_within(wish: Wish, offset: int, first: int | None, last: int | None) -> bool:
    """A commit that retention has overtaken, or that is of a topic's former life, is none.

    As for any consumer.
    """
    if not isinstance(wish, AtCommit) or first is None or last is None:
        return True
    return first <= offset <= last


def _check_exact(
    wishes: Mapping[SplitId, Wish], first: Offsets, last: Offsets, option: str
) -> None:
    for split_id, wish in wishes.items():
        if not isinstance(wish, AtOffset) or split_id not in first:
            continue
        # Nothing is guessed for an offset that does not exist: the user corrects it.
        if not first[split_id] <= wish.offset <= last[split_id]:
            raise RefusedDiscoveryError(
                f"{option}: {split_name(split_id)} has offsets {first[split_id]} to"
                f" {last[split_id]}, not {wish.offset}: correct it, or use −2 for the earliest and"
                " −1 for the latest",
                scope=KafkaSplitId.of(split_id).cluster,
                reason=KafkaReason.OFFSET_OUT_OF_RANGE,
            )


def _with_open(
    wishes: Mapping[SplitId, Wish], answers: Offsets, last: Offsets, lookup: OffsetLookup
) -> Offsets:
    """Return the ends, with open transactions where a history or a group has read into these.

    It was written, or committed, by a program that does not wait for their end. Asked for after the
    commits: a group that still lives may have committed more than there was before.
    """
    ahead = [
        s
        for s, wish in wishes.items()
        if isinstance(wish, AfterOffset | AtCommit) and s in last and answers.get(s, 0) > last[s]
    ]
    return {**last, **lookup.high_watermarks(ahead)} if ahead else last


def _after_history(
    wishes: Mapping[SplitId, Wish], answers: Offsets, first: Offsets, last: Offsets
) -> dict[SplitId, int]:
    """Return starts that differ from the answers, because records behind a history may be lost.

    Raises:
        RefusedDiscoveryError: they may not, or the history is not one of this topic.
    """
    moved: dict[SplitId, int] = {}
    for split_id, wish in wishes.items():
        begin, end = first.get(split_id, 0), last.get(split_id, 0)
        match wish:
            case AfterOffset(offset, may_lose) if offset < begin and may_lose:
                moved[split_id] = begin
            case AfterOffset(offset) if offset < begin:
                raise _gone(split_id, f"offsets {offset} to {begin - 1} are gone")
            # Reading from there would skip all records until the topic has grown to that offset.
            case AfterOffset(offset) if offset > end:
                raise _ahead(split_id, offset, end)
            # The first record answers, and earlier ones are gone: some may be newer than the
            # history.
            case AfterTime(millis, False) if begin and answers.get(split_id, end) == begin:
                raise _gone(
                    split_id,
                    f"records before offset {begin} are gone, and some may be of {millis} ms or"
                    " later",
                )
            case _:
                pass
    return moved


def _of_history(
    history: AfterHistory,
    split_ids: Collection[SplitId],
    topic_ids: Mapping[str, str],
    title: str,
) -> Chains:
    """Return the starts of partitions that depend on the ids of their topics.

    Raises:
        RefusedDiscoveryError: the history is of other topics, and records may not be lost.
    """
    if history.is_later:
        return _found_later(history, split_ids, topic_ids)
    if split_ids and history.is_foreign:
        raise _foreign(sorted(history.topics), min(split_ids))
    return _recreated(history, split_ids, topic_ids, title)


def _found_later(
    history: AfterHistory, split_ids: Iterable[SplitId], topic_ids: Mapping[str, str]
) -> Chains:
    """Return the starts of partitions that are found after the first discovery.

    What retention has taken before them is told, as of all that are found late.
    """
    found: dict[SplitId, tuple[Wish, ...]] = {}
    for s in map(KafkaSplitId.of, split_ids):
        is_same = history.is_same(s.cluster, s.topic, topic_ids.get(s.topic))
        first = AfterOffset(history.first_unread(s.topic, s.partition), may_lose=True)
        found[s] = (first,) if is_same else (Anchor.EARLIEST,)
    return found


def _recreated(
    history: AfterHistory,
    split_ids: Iterable[SplitId],
    topic_ids: Mapping[str, str],
    title: str,
) -> Chains:
    """Return the start of topics that were created again since the history was begun.

    None of their records is in the history.

    Raises:
        RefusedDiscoveryError: records may not be lost.
    """
    ids = map(KafkaSplitId.of, split_ids)
    other = [s for s in ids if history.is_other(s.cluster, s.topic, topic_ids.get(s.topic))]
    if other and not history.may_lose:
        why = _why_other(history, other, topic_ids, title)
        raise RefusedDiscoveryError(
            f"{why}, so the history does not say where to start. Records of the former topic that"
            " the history does not have are lost."
            f" {how_to_continue('to read the new topic from its start')}",
            scope=other[0].cluster,
            reason=KafkaReason.TOPIC_RECREATED,
        )
    return dict.fromkeys(other, (Anchor.EARLIEST,))


def _why_other(
    history: AfterHistory,
    splits: Sequence[KafkaSplitId],
    topic_ids: Mapping[str, str],
    title: str,
) -> str:
    first = min(splits)
    where = titled(first.cluster, title)
    if given := history.given(first.topic):
        return (
            f"topic {first.topic} of {where} has the id {topic_ids[first.topic]},"
            f" and startAfter says that the history is of {given}"
        )
    if not history.meanings[first.cluster][first.topic]:
        return f"topic {first.topic} of {where} did not exist when the history was begun"
    topics = sorted({s.topic for s in splits})
    return (
        f"topic {first_of(topics, _SHOWN)} of {where} was deleted and"
        " created again since the history was begun, or another cluster is read now"
    )


def _gone(split_id: SplitId, what: str) -> RefusedDiscoveryError:
    return RefusedDiscoveryError(
        f"{split_name(split_id)} does not begin where the history ends: {what}. Complete the"
        f" history, or {CONSENT} to read without them",
        scope=KafkaSplitId.of(split_id).cluster,
        reason=KafkaReason.OFFSET_OUT_OF_RANGE,
    )


def _ahead(split_id: SplitId, offset: int, end: int) -> RefusedDiscoveryError:
    return RefusedDiscoveryError(
        f"the history continues to offset {offset} of {split_name(split_id)}, which ends at {end}:"
        " it is of another topic, or the topic was created again. Name the topic that the history"
        " is of, or give startingOffsets instead of startAfter",
        scope=KafkaSplitId.of(split_id).cluster,
        reason=KafkaReason.OFFSET_OUT_OF_RANGE,
    )


def _foreign(topics: Sequence[str], split_id: SplitId) -> RefusedDiscoveryError:
    names = first_of(topics, _SHOWN)
    return RefusedDiscoveryError(
        f"the history has offsets of {names}, and none of {split_name(split_id)} or another topic"
        " that is read, so nothing says where it ends. Read the topics that the history is of, or"
        " give startingOffsets instead of startAfter",
        scope=KafkaSplitId.of(split_id).cluster,
        reason=KafkaReason.OFFSET_OUT_OF_RANGE,
    )


def _unanswered(chains: Chains, option: str) -> RefusedDiscoveryError:
    names = sorted(chains)
    what, reason = _missing(chains[names[0]][-1])
    shown = first_of(names, _SHOWN, name=split_name)
    is_time = reason == KafkaReason.NO_OFFSET_FOR_TIMESTAMP
    as_option = " (as an option startingOffsetsByTimestampStrategy to latest)" if is_time else ""
    return RefusedDiscoveryError(
        f"{option}: no {what} for {shown}, and no reset: set {option}.reset to Earliest or Latest"
        f"{as_option}",
        scope=KafkaSplitId.of(names[0]).cluster,
        reason=reason,
    )


def _missing(wish: Wish) -> tuple[str, str]:
    """Return what a wish asked for in vain, and the reason of the problem."""
    match wish:
        case AtCommit(group):
            return f"commit of group {group} that still exists", KafkaReason.NO_COMMITTED_OFFSET
        case AtTime(millis) | AfterTime(millis):
            return f"record at or after {millis} ms", KafkaReason.NO_OFFSET_FOR_TIMESTAMP
        case AtOffset() | AfterOffset() | Anchor():
            return "offset", KafkaReason.NO_OFFSET
        case _:
            assert_never(wish)
