"""Reads only from the topics that a micro-batch was planned for, never from their namesakes.

What a micro-batch reads is in Spark's offset log. Before it is read, or read again after a restart,
a topic may be deleted and created again: its offsets mean other records then. Tasks compare the
topics' ids when the last record has been fetched, before they deliver the last batch: ids never
return, so a range is of the planned topic if the id is the same then. Tasks of several batches also
compare before they deliver the first one.

The first question is sent as soon as the first batch is fetched, and its answer is taken when the
second one is there. One batch is held back at a time: with more of them, their memory is not in the
processor's caches any more when Spark takes them.

    fetched    1 ?        2    3    4    5   end ?
    delivered       first !  1    2    3    4   last ! 5
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from typing import Final

import pyarrow as pa

from balanced_source.connectors.kafka import Gap, KafkaSplitId, OnDataLoss, topic_recreated
from balanced_source.errors import TransientDiscoveryError
from balanced_source.host import SplitRange
from balanced_source_spark.kafka.settings import STALL, OffsetsLostError, ReadStalledError
from balanced_source_spark.kafka.topic_watch import WATCH, Interrupt, TopicWatch
from balanced_source_spark.task_log import tell

RETRY: Final = 0.5
"""Seconds between two questions to a cluster that does not answer."""

MISSING: Final = 5.0
"""Seconds for which a topic has to be missing until it counts as deleted: brokers learn of topics
one after another."""

Read = Callable[[Sequence[SplitRange]], Iterator[pa.RecordBatch]]
"""Reads ranges."""

Ids = Callable[[], Mapping[str, str]]
"""Waits for the ids of those topics that exist. Raises DiscoveryError."""

AskIds = Callable[[Collection[str]], Ids]
"""Asks for ids, without waiting for them. Raises DiscoveryError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SameTopics:
    """Compares ids of one cluster's topics around a read.

    Attributes:
        cluster: its name.
        title: what messages call it, if not by its name.
        ask: asks for them.
        policy: whether ranges of recreated topics are skipped.
        patience: seconds to wait for a cluster that does not answer.
        missing: see `MISSING`.
        watch: looks at the topics of reads to which nothing comes.
        skip: is told of ranges of recreated topics that are skipped.
    """

    cluster: str
    ask: AskIds
    policy: OnDataLoss
    title: str = ""
    patience: float = STALL
    missing: float = MISSING
    watch: TopicWatch = WATCH
    skip: Callable[[Sequence[SplitRange]], None] = lambda _: None

    def read(
        self,
        ranges: Sequence[SplitRange],
        read: Read,
        interrupt: Interrupt,
    ) -> Iterator[pa.RecordBatch]:
        """All records of the ranges whose topics are the planned ones.

        Args:
            ranges: of the micro-batch.
            read: reads some of them.
            interrupt: ends `read` when a topic is deleted meanwhile.

        Raises:
            OffsetsLostError: a topic was deleted or recreated, and must not be skipped or has been
                read already.
            TransientDiscoveryError: the cluster does not answer.
            RefusedDiscoveryError: the cluster refuses.
        """
        kept = self._planned(ranges) if self.policy is OnDataLoss.CONTINUE else ranges
        batches = self._watched(kept, read, interrupt)
        held = list(islice(batches, 1))
        # A task whose rows are not all wanted, as by `limit`, may never reach the last question.
        question: Ids | None = self._asked(kept)
        for batch in batches:
            if question is not None:
                self._compare(kept, question)
                question = None
            yield from held
            held = [batch]
        # A read of one batch, as of a small micro-batch, needs no second question.
        self._compare(kept, self._asked(kept) if question is None else question)
        yield from held

    def _watched(
        self, ranges: Sequence[SplitRange], read: Read, interrupt: Interrupt
    ) -> Iterator[pa.RecordBatch]:
        """Read, and end the read if one of its topics is deleted."""
        try:
            with self.watch.watching(self._deletion(ranges), interrupt) as watched:
                for batch in read(ranges):
                    watched.moved()
                    yield batch
        except (OffsetsLostError, ReadStalledError):
            self._compare(ranges, self._asked(ranges))  # says more
            raise

    def _planned(self, ranges: Sequence[SplitRange]) -> Sequence[SplitRange]:
        found = self._asked(ranges)()
        if others := _others(ranges, found):
            tell("warning", self._message(others, found), ranges=len(others))
            self.skip(others)
        return [piece for piece in ranges if piece not in others]

    def _compare(self, ranges: Sequence[SplitRange], ids: Ids) -> None:
        found = ids()
        if others := _others(ranges, found):
            raise OffsetsLostError(self._message(others, found))

    def _deletion(self, ranges: Sequence[SplitRange]) -> Callable[[], bool]:
        """Return a test whether a topic of these ranges is gone.

        One that is only missing must be so for a while.
        """
        missing_since = float("inf")

        def is_gone() -> bool:
            nonlocal missing_since
            found = self.ask(topics)() if (topics := _topics(ranges)) else {}
            others = _others(ranges, found)
            missing_since = min(missing_since, time.monotonic()) if others else float("inf")
            # Another id is certain at once; a missing topic may only be unknown to that broker.
            is_recreated = any(KafkaSplitId.of(r.split_id).topic in found for r in others)
            return is_recreated or time.monotonic() - missing_since >= self.missing

        return is_gone

    def _asked(self, ranges: Sequence[SplitRange]) -> Ids:
        """Send the question for the ids of the topics of these ranges."""
        if not (topics := _topics(ranges)):
            return dict
        return partial(self._answer, topics, self.ask(topics), time.monotonic())

    def _answer(self, topics: set[str], ids: Ids, began: float) -> Mapping[str, str]:
        """Wait for ids; ask again while the cluster is silent, or does not know all topics."""
        while True:
            try:
                found = ids()
            except TransientDiscoveryError:
                if time.monotonic() - began >= self.patience:
                    raise
            else:
                if found.keys() >= topics or time.monotonic() - began >= self.missing:
                    return found
            time.sleep(RETRY)
            ids = self.ask(topics)

    def _message(self, ranges: Sequence[SplitRange], found: Mapping[str, str]) -> str:
        by_topic = groupby(
            sorted(ranges, key=lambda r: r.split_id),
            key=lambda r: KafkaSplitId.of(r.split_id).topic,
        )
        gaps = {
            topic: [
                Gap(
                    partition=KafkaSplitId.of(r.split_id).partition,
                    start=int(r.start or 0),
                    end=int(r.end or 0),
                )
                for r in pieces
            ]
            for topic, pieces in by_topic
        }
        return "; ".join(
            topic_recreated(
                self.cluster,
                topic,
                listed,
                self.policy,
                exists=topic in found,
                title=self.title,
            ).message
            for topic, listed in gaps.items()
        )


def _topics(ranges: Sequence[SplitRange]) -> set[str]:
    return {KafkaSplitId.of(piece.split_id).topic for piece in ranges if piece.identity is not None}


def _others(ranges: Sequence[SplitRange], found: Mapping[str, str]) -> list[SplitRange]:
    """The ranges whose topics do not exist any more."""
    return [
        r
        for r in ranges
        if r.identity is not None and found.get(KafkaSplitId.of(r.split_id).topic) != r.identity
    ]
