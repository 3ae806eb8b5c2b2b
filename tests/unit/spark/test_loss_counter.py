"""Offsets that retention took first are counted, even if the broker could not be asked."""

from collections.abc import Collection, Mapping

from structlog.testing import capture_logs

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaCluster, KafkaReaderSettings, OnDataLoss
from balanced_source.connectors.kafka.data_loss import KEPT
from balanced_source.errors import DiscoveryError
from balanced_source.host import ReaderPlan, SplitRange
from balanced_source_spark.kafka.data_loss import LossCounter

ONE, TWO = ("c", "t", 0), ("c", "t", 1)
SETTINGS = KafkaReaderSettings(
    clusters={"c": KafkaCluster(name="c", bootstrap_servers="b:9092")},
    on_data_loss=OnDataLoss.CONTINUE,
)


class Cluster:
    """Answers for the partitions that are not silent."""

    def __init__(self) -> None:
        self.begins: dict[SplitId, int] = {ONE: 0, TWO: 0}
        self.silent: set[SplitId] = set()
        self.losses = LossCounter(self.ask)

    def ask(self, _: KafkaCluster, split_ids: Collection[SplitId]) -> Mapping[SplitId, int]:
        answers = {s: self.begins[s] for s in split_ids if s not in self.silent}
        if self.silent.intersection(split_ids):
            raise DiscoveryError("no answer", scope="c", answers=answers)
        return answers

    def plan(self, *ranges: tuple[SplitId, int, int]) -> tuple[int, int]:
        """Plan a micro-batch; returns what is counted, and what is not known."""
        pieces = tuple(
            SplitRange(split_id=s, start=start, end=end, identity=None) for s, start, end in ranges
        )
        self.losses.note([ReaderPlan(subtask_id=0, ranges=pieces)], SETTINGS)
        return self.losses.total, self.losses.uncounted


def test_lost_records_are_counted_once() -> None:
    cluster = Cluster()
    cluster.begins[ONE] = 4

    assert cluster.plan((ONE, 0, 10), (TWO, 0, 5)) == (4, 0)
    assert cluster.plan((ONE, 0, 10), (TWO, 0, 5)) == (4, 0)


def test_a_range_that_is_cut_into_pieces_is_counted_as_a_whole() -> None:
    cluster = Cluster()
    cluster.begins[ONE] = 7

    assert cluster.plan((ONE, 0, 5), (ONE, 5, 10)) == (7, 0)


def test_losses_are_unknown_while_the_cluster_cannot_be_queried() -> None:
    cluster = Cluster()
    cluster.silent, cluster.begins[ONE] = {ONE}, 4
    assert cluster.plan((ONE, 0, 10)) == (0, 10)
    assert cluster.plan((ONE, 10, 15)) == (0, 15)
    cluster.silent.clear()

    assert cluster.plan((TWO, 0, 5)) == (4, 0), "the next micro-batch on the cluster asks again"


def test_partitions_that_answer_are_counted_beside_one_that_does_not() -> None:
    cluster = Cluster()
    cluster.silent, cluster.begins[TWO] = {ONE}, 2

    assert cluster.plan((ONE, 0, 10), (TWO, 0, 5)) == (2, 10)


def test_what_tasks_have_skipped_is_counted_once() -> None:
    """Retention goes on while they read, and a task that is tried again says it again."""
    cluster = Cluster()
    cluster.begins[ONE] = 2
    assert cluster.plan((ONE, 0, 10), (TWO, 0, 5)) == (2, 0)
    told = [SplitRange(split_id=ONE, start=0, end=6), SplitRange(split_id=TWO, start=4, end=5)]

    cluster.losses.note_skipped(told)
    assert cluster.losses.total == 6 + 1
    cluster.losses.note_skipped([*told, SplitRange(split_id=ONE, start=8, end=9)])
    assert cluster.losses.total == 6 + 1 + 1
    cluster.begins[ONE] = 12
    assert cluster.plan((ONE, 10, 20)) == (10, 0)


def test_what_tasks_have_skipped_is_logged_for_each_cluster() -> None:
    elsewhere: SplitId = ("d", "u", 0)
    told = [
        SplitRange(split_id=ONE, start=0, end=6),
        SplitRange(split_id=elsewhere, start=2, end=3),
        SplitRange(split_id=TWO, start=4, end=5),
    ]

    with capture_logs() as lines:
        Cluster().losses.note_skipped(told)

    assert {(line["cluster"], line["offsets"]) for line in lines} == {("c", 7), ("d", 1)}


def test_clusters_are_asked_in_their_order() -> None:
    """What is logged does not depend on the order of sets."""
    names = [f"cluster-{number}" for number in range(9)]
    asked: list[tuple[str, list[SplitId]]] = []

    def begins(cluster: KafkaCluster, split_ids: Collection[SplitId]) -> Mapping[SplitId, int]:
        asked.append((cluster.name, list(split_ids)))
        return dict.fromkeys(split_ids, 1)

    clusters = {name: KafkaCluster(name=name, bootstrap_servers="b:1") for name in names}
    settings = KafkaReaderSettings(clusters=clusters, on_data_loss=OnDataLoss.CONTINUE)
    pieces = tuple(SplitRange(split_id=(name, "t", 0), start=0, end=5) for name in reversed(names))
    counter = LossCounter(begins)

    counter.note([ReaderPlan(subtask_id=0, ranges=pieces)], settings)

    assert asked == [(name, [(name, "t", 0)]) for name in names], "each of its own partitions"
    assert counter.total == len(names)


def test_only_what_was_planned_counts_as_skipped() -> None:
    """A micro-batch does not begin at the start of its log."""
    cluster = Cluster()
    cluster.begins[ONE] = 6

    assert cluster.plan((ONE, 4, 10), (TWO, 3, 5)) == (2, 0)


def test_ranges_of_splits_that_were_never_read_begin_at_the_start() -> None:
    cluster = Cluster()
    cluster.begins[ONE] = 2
    piece = SplitRange(split_id=ONE, start=None, end=3)

    cluster.losses.note([ReaderPlan(subtask_id=0, ranges=(piece,))], SETTINGS)

    assert cluster.losses.total == 2


def test_partitions_that_are_not_held_any_more_are_forgotten() -> None:
    """Not at once: their tasks may tell late what they have skipped."""
    cluster = Cluster()
    for day in range(3 * KEPT):
        split_id: SplitId = ("c", f"day-{day}", 0)
        cluster.losses.note_skipped([SplitRange(split_id=split_id, start=0, end=1)])
        cluster.losses.keep([split_id])
        cluster.losses.note_skipped([SplitRange(split_id=split_id, start=0, end=1)])

    assert len(cluster.losses._counter._upto) <= KEPT + 1
    assert cluster.losses.total == 3 * KEPT


def test_what_a_cluster_that_is_taken_out_did_not_tell_stays_unknown() -> None:
    cluster = Cluster()
    for day in range(50):
        split_id: SplitId = (f"day-{day}", "t", 0)
        cluster.losses._uncounted[split_id] = 0, 10
        cluster.losses.keep([split_id])

    assert cluster.losses.uncounted == 500
    assert cluster.losses._uncounted == {("day-49", "t", 0): (0, 10)}
