"""An independent account of records.

What must be delivered, how often, and what excuses a gap or a repetition.

It knows nothing of epochs, owners or documents. It hears what users and brokers do, and what
readers deliver.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from balanced_source.api import SplitId

Batch = tuple[str, int, int]
"""Host, number of its Spark checkpoint, number of the micro-batch: an idempotent sink replaces what
has the same."""


@dataclass(slots=True)
class Partition:
    """One partition in one life of its topic.

    Attributes:
        end: next offset.
        is_strict: whether every record must be delivered, wherever the source starts.
        least_start: where a first read may begin at the earliest when the source starts at Latest.
        first_start: the same of the cluster's first life, which older copies of the state remember.
        excused: records below this offset need not be delivered.
        repeats: how often a record may be delivered again.
        stop: first record that must not be read; None without an end.
        batches: record → the micro-batches that delivered it.
    """

    end: int = 0
    is_strict: bool = True
    least_start: int = 0
    first_start: int | None = None
    excused: int = 0
    repeats: int = 0
    stop: int | None = None
    batches: dict[int, set[Batch]] = field(default_factory=dict)


@dataclass
class Ledger:
    """All partitions that ever were.

    Attributes:
        starts_latest: whether the source starts at Latest; else at Earliest.
        forgets: whether positions of what is taken out of the source are forgotten.
        is_restored: whether an older copy of the state was ever restored.
    """

    starts_latest: bool
    forgets: bool
    is_restored: bool = False
    parts: dict[tuple[str, SplitId], Partition] = field(default_factory=dict)
    adopted: set[str] = field(default_factory=set)
    """Clusters of which a reader has had a partition since they were added."""
    added: set[str] = field(default_factory=set)
    """Clusters that were ever in the source."""

    # --- what happens outside ---------------------------------------------------------------------

    def created(self, topic_id: str, split_id: SplitId) -> None:
        """A partition is created.

        Its records are all wanted, unless its cluster has not been read yet.
        """
        is_known = str(split_id[0]) in self.adopted
        self.parts.setdefault(
            (topic_id, split_id),
            Partition(
                is_strict=is_known or not self.starts_latest,
                # Added before the partition was there: its first life may begin with any record.
                first_start=0 if str(split_id[0]) in self.added else None,
            ),
        )

    def produced(self, topic_id: str, split_id: SplitId, count: int) -> None:
        """Records are appended."""
        self.parts[topic_id, split_id].end += count

    def cluster_removed(self, cluster: str) -> None:
        """The user takes a cluster out: without retention it is new when it returns."""
        if self.forgets:
            self.adopted.discard(cluster)
            self._forget(
                (part for (_, s), part in self.parts.items() if s[0] == cluster),
                is_new=self.starts_latest,
            )

    def topic_removed(self, topic: str) -> None:
        """The user takes a topic out.

        Without retention it is read from its beginning when it returns.
        """
        if self.forgets:
            self._forget(
                (part for (_, s), part in self.parts.items() if s[1] == topic), is_new=False
            )
            self._may_be_new(topic)

    def topic_deleted(self, topic: str) -> None:
        """A topic is deleted."""
        if self.forgets:
            self._may_be_new(topic)

    def _may_be_new(self, topic: str) -> None:
        """No one may know that the clusters were ever read, if all that was read is forgotten."""
        self.adopted.clear()
        for (_, split_id), part in self.parts.items():
            if self.starts_latest and (split_id[1] == topic or not part.batches):
                part.is_strict = False

    def cluster_added(self, cluster: str) -> None:
        """The user puts a cluster in."""
        is_new = self.forgets or cluster not in self.added
        self.added.add(cluster)
        if is_new and cluster not in self.adopted:
            for (_, split_id), part in self.parts.items():
                if split_id[0] == cluster:
                    part.is_strict, part.least_start = not self.starts_latest, part.end
                    part.first_start = part.end if part.first_start is None else part.first_start

    @staticmethod
    def _forget(parts: Iterable[Partition], *, is_new: bool) -> None:
        for part in parts:
            if not is_new:
                part.repeats += 1

    # --- what readers do --------------------------------------------------------------------------

    def begun(self, topic_id: str, split_id: SplitId, offset: int) -> None:
        """A reader begins to read a partition, there."""
        self.adopted.add(str(split_id[0]))
        part = self.parts[topic_id, split_id]
        if part.is_strict:
            return
        least = part.first_start or 0 if self.is_restored else part.least_start
        done = max(
            (part.excused, *(record + 1 for record, batches in part.batches.items() if batches))
        )
        assert offset == done or offset >= least or part.repeats, (
            f"{split_id} of {topic_id} begins at {offset}: not where it was ({done}), and before"
            f" the latest offset ({least}) of the time when its cluster was added"
        )
        part.excused, part.is_strict = max(part.excused, offset), True

    def delivered(self, topic_id: str, split_id: SplitId, offset: int, batch: Batch) -> None:
        """A record reaches the sink."""
        part = self.parts[topic_id, split_id]
        batches = part.batches.setdefault(offset, set())
        batches.add(batch)
        assert len(batches) <= 1 + part.repeats, (
            f"{split_id} of {topic_id}: record {offset} in {sorted(batches)}"
        )
        assert part.stop is None or offset < part.stop, (
            f"{split_id}: record {offset} is beyond the stop {part.stop}"
        )

    def undone(self, host: str, checkpoint: int, *, first: int) -> None:
        """The sink goes back with a Spark checkpoint: micro-batches from this one on never were."""
        for part in self.parts.values():
            for batches in part.batches.values():
                batches -= {b for b in batches if b[:2] == (host, checkpoint) and b[2] >= first}

    def missing(self, topic_ids: Mapping[tuple[str, str], str]) -> dict[SplitId, list[int]]:
        """Records of the topics that exist now which must have been delivered, and were not."""
        found = {}
        for (topic_id, split_id), part in self.parts.items():
            if topic_ids.get((str(split_id[0]), str(split_id[1]))) != topic_id:
                continue
            last = part.end if part.stop is None else min(part.stop, part.end)
            if gaps := [o for o in range(part.excused, last) if not part.batches.get(o)]:
                found[split_id] = gaps
        return found

    def count(self) -> Counter[str]:
        """Numbers for people."""
        return Counter(
            records=sum(len(p.batches) for p in self.parts.values()),
            repeated=sum(len(b) > 1 for p in self.parts.values() for b in p.batches.values()),
        )
