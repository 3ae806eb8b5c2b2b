"""Reads only from the topics that a micro-batch was planned for, never from others with the same names.

What a micro-batch reads is in Spark's offset log. Before it is read, or read again after a restart, a topic may be
deleted and created again: its offsets mean other records then. Tasks compare the topics' ids before they read, and
after it: ids never return, so a range is of the planned topic if the id is the same after the last record of it.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import pyarrow as pa

from balanced_source.connectors.kafka import Gap, KafkaSplitId, OnDataLoss, topic_recreated
from balanced_source.errors import TransientDiscoveryError
from balanced_source.host import SplitRange
from balanced_source_spark.kafka.settings import STALL, OffsetsLostError, ReadStalledError
from balanced_source_spark.kafka.task_log import tell

RETRY: Final = 0.5
"""Seconds between two questions to a cluster that does not answer."""

MISSING: Final = 5.0
"""Seconds for which a topic has to be missing until it counts as deleted: brokers learn of topics one after another."""

TopicIds = Callable[[Collection[str]], Mapping[str, str]]
"""Ids of the topics that exist. Raises DiscoveryError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SameTopics:
    """Compares ids of one cluster's topics around a read.

    Attributes:
        cluster: its name.
        ids: asks for them.
        policy: whether ranges of recreated topics are skipped.
        patience: seconds to wait for a cluster that does not answer.
        missing: see `MISSING`.
    """

    cluster: str
    ids: TopicIds
    policy: OnDataLoss
    patience: float = STALL
    missing: float = MISSING

    def read(
        self, ranges: Sequence[SplitRange], read: Callable[[Sequence[SplitRange]], Iterator[pa.RecordBatch]]
    ) -> Iterator[pa.RecordBatch]:
        """All records of the ranges whose topics are the planned ones.

        Raises:
            OffsetsLostError: a topic was deleted or recreated, and must not be skipped or has been read already.
            TransientDiscoveryError: the cluster does not answer.
            RefusedDiscoveryError: the cluster refuses.
        """
        kept = self._planned(ranges)
        try:
            yield from read(kept)
        except (OffsetsLostError, ReadStalledError):
            self._check(kept)  # says more
            raise
        self._check(kept)

    def _planned(self, ranges: Sequence[SplitRange]) -> Sequence[SplitRange]:
        found = self._known(ranges)
        others = _others(ranges, found)
        if others and self.policy is OnDataLoss.FAIL:
            raise OffsetsLostError(self._said(others, found))
        if others:
            tell("warning", self._said(others, found), ranges=len(others))
        return [piece for piece in ranges if piece not in others]

    def _check(self, ranges: Sequence[SplitRange]) -> None:
        found = self._known(ranges)
        if others := _others(ranges, found):
            raise OffsetsLostError(self._said(others, found))

    def _known(self, ranges: Sequence[SplitRange]) -> Mapping[str, str]:
        """Ids of the topics of these ranges, as far as they exist."""
        topics = {KafkaSplitId.of(piece.split_id).topic for piece in ranges if piece.identity is not None}
        began = time.monotonic()
        while topics:
            try:
                found = self.ids(topics)
            except TransientDiscoveryError:
                if time.monotonic() - began >= self.patience:
                    raise
            else:
                if found.keys() >= topics or time.monotonic() - began >= self.missing:
                    return found
            time.sleep(RETRY)
        return {}

    def _said(self, ranges: Sequence[SplitRange], found: Mapping[str, str]) -> str:
        by_topic = groupby(sorted(ranges, key=lambda r: r.split_id), key=lambda r: KafkaSplitId.of(r.split_id).topic)
        gaps = {
            topic: [
                Gap(partition=KafkaSplitId.of(r.split_id).partition, start=int(r.start or 0), end=int(r.end or 0))
                for r in pieces
            ]
            for topic, pieces in by_topic
        }
        return "; ".join(
            topic_recreated(self.cluster, topic, listed, self.policy, exists=topic in found).message
            for topic, listed in gaps.items()
        )


def _others(ranges: Sequence[SplitRange], found: Mapping[str, str]) -> list[SplitRange]:
    """The ranges whose topics do not exist any more."""
    return [r for r in ranges if r.identity is not None and found.get(KafkaSplitId.of(r.split_id).topic) != r.identity]
