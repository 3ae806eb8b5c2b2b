"""Files, then Kafka: what is measured of files, where Kafka starts, and what cannot be combined."""

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from balanced_source.api import Measure, SwitchPosition
from balanced_source.connectors.files import FilesSource, Format, position_of
from balanced_source.connectors.hybrid import HybridSource, HybridState, checked_hybrid, names_of
from balanced_source.connectors.kafka import (
    AfterHistory,
    KafkaCluster,
    KafkaPartitionSplit,
    KafkaSource,
    OnDataLoss,
    TopicList,
    cut_at_start,
    resolve_start,
)
from balanced_source.connectors.pull import PullState
from balanced_source.errors import InvalidSpecError, RefusedDiscoveryError, StateError
from balanced_source_adapters.files.connector import FilesCodec, Lister
from balanced_source_spark.contract.secrets import NO_SECRETS
from support.kafka_lookup import FakeLookup, Log

OFFSETS = Measure(offsets=("topic", "partition", "offset"))
TIME = Measure(time="at")
SPLIT = ("main", "orders", 0)
BEGIN = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
MILLIS = 1_704_067_200_000


def files(path: str = "/in", kind: Format = Format.PARQUET, **more: Any) -> FilesSource:
    return FilesSource(paths=(path,), kind_of_file=kind, **more)


def kafka(*names: str, **more: Any) -> KafkaSource:
    clusters = tuple(
        KafkaCluster(name=name, bootstrap_servers="b:9092") for name in names or ("main",)
    )
    return KafkaSource(clusters=clusters, subscriber=TopicList(("orders",)), **more)


def write(
    folder: Path, name: str, partitions: list[int], offsets: list[int], unit: str = "us"
) -> None:
    times = [BEGIN + dt.timedelta(milliseconds=offset, microseconds=700) for offset in offsets]
    kind = pa.timestamp(unit, tz="UTC")  # type: ignore[call-overload] # a text, not a literal
    at = pa.array(times, pa.timestamp("us", tz="UTC")).cast(kind, safe=False)
    rows = {
        "topic": ["orders"] * len(offsets),
        "partition": partitions,
        "offset": offsets,
        "at": at,
    }
    pq.write_table(pa.table(rows), folder / name, row_group_size=2)


def measured(folder: Path, measure: Measure) -> SwitchPosition:
    source = files(str(folder)).measuring(measure, field="parts[1]")
    page = Lister(NO_SECRETS)(source.list_page(1, None))
    assert not page.refusal, page.refusal
    return position_of(page.cursor)


def test_offsets_are_measured_by_partition(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", [0, 1, 0, 1, 0], [3, 9, 5, 2, 4])
    write(tmp_path, "b.parquet", [2, 1], [0, 10])

    assert measured(tmp_path, OFFSETS).offsets == {
        ("orders", 0): 6,
        ("orders", 1): 11,
        ("orders", 2): 1,
    }


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_the_newest_time_is_cut_to_milliseconds(tmp_path: Path, unit: str) -> None:
    write(tmp_path, "a.parquet", [0, 0, 0], [3, 9, 5], unit)
    write(tmp_path, "b.parquet", [0], [7], unit)

    assert measured(tmp_path, TIME).time == MILLIS + 9


def test_a_column_without_statistics_is_read(tmp_path: Path) -> None:
    table = pa.table({"at": [MILLIS, MILLIS + 4, MILLIS + 2]})
    pq.write_table(table, tmp_path / "a.parquet", write_statistics=False, row_group_size=2)

    assert measured(tmp_path, TIME).time == MILLIS + 4


def test_no_files_measure_nothing(tmp_path: Path) -> None:
    assert measured(tmp_path, TIME) == SwitchPosition()


@pytest.mark.parametrize(
    ("column", "why"), [("none", "it has no column"), ("topic", "not a timestamp")]
)
def test_a_column_that_cannot_be_measured_is_named(tmp_path: Path, column: str, why: str) -> None:
    write(tmp_path, "a.parquet", [0], [3])
    source = files(str(tmp_path)).measuring(Measure(time=column), field="parts[1]")

    page = Lister(NO_SECRETS)(source.list_page(1, None))

    assert "a.parquet" in page.refusal
    assert why in page.refusal
    assert page.splits == ()


def test_a_file_that_is_not_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("no parquet at all")
    source = files(str(tmp_path)).measuring(TIME, field="parts[1]")

    assert "a.parquet" in Lister(NO_SECRETS)(source.list_page(1, None)).refusal


@pytest.mark.parametrize("measure", [None, TIME, OFFSETS])
def test_a_driver_gets_the_measure_with_the_call(measure: Measure | None) -> None:
    call = files(measure=measure).list_page(1, None)
    codec = FilesCodec()

    assert codec.call_from_json(codec.call_to_json(call)) == call


def start(position: SwitchPosition, log: Log, **more: Any) -> int:
    source = kafka(**more).starting_after(position)
    return resolve_start(source.starting_offsets, [SPLIT], FakeLookup({SPLIT: log}))[SPLIT]


LOG = Log(first=100, times=[1000, 1010, 1010, 1020])


@pytest.mark.parametrize(
    ("position", "offset"),
    [
        (SwitchPosition(offsets={("orders", 0): 102}), 102),
        (SwitchPosition(offsets={("orders", 0): 104}), 104),
        (SwitchPosition(offsets={("orders", 0): 100}), 100),
        (SwitchPosition(time=1000), 101),
        (SwitchPosition(time=1010), 103),
        (SwitchPosition(time=1020), 104),
        (SwitchPosition(), 100),
    ],
)
@pytest.mark.scenario("Q4")
def test_kafka_starts_behind_the_history(position: SwitchPosition, offset: int) -> None:
    """Behind the last offset of each partition, or one millisecond after the newest time."""
    assert start(position, LOG) == offset


@pytest.mark.parametrize(
    ("position", "log", "why"),
    [
        (SwitchPosition(offsets={("orders", 0): 90}), LOG, "offsets 90 to 99 are gone"),
        (SwitchPosition(offsets={("orders", 1): 7}), LOG, "offsets 0 to 99 are gone"),
        (SwitchPosition(offsets={("orders", 0): 105}), LOG, "it is of another topic"),
        (SwitchPosition(offsets={("sales", 0): 7}), LOG, "offsets of sales, and none of"),
        (SwitchPosition(time=900), LOG, "records before offset 100 are gone"),
        (SwitchPosition(time=900), Log(first=100), "records before offset 100 are gone"),
    ],
)
@pytest.mark.scenario("Q5")
def test_a_gap_between_history_and_kafka_is_refused(
    position: SwitchPosition, log: Log, why: str
) -> None:
    """The sentence names the offsets that are gone, and settings that have an effect."""
    with pytest.raises(RefusedDiscoveryError, match=why) as raised:
        start(position, log)
    is_gone = "gone" in why
    assert ("(without an operator: failOnDataLoss to false)" in str(raised.value)) is is_gone
    # With `startAfter`, `startingOffsets` does not count.
    assert ("or give startingOffsets instead of startAfter" in str(raised.value)) is not is_gone


def test_a_history_may_have_records_of_a_transaction_that_is_still_open() -> None:
    """Whoever wrote it read uncommitted records, as most programs do."""
    held = replace(LOG, held=2)

    for offset in (105, 106):
        assert start(SwitchPosition(offsets={("orders", 0): offset}), held) == offset
    with pytest.raises(RefusedDiscoveryError, match=r"to offset 107 of .*, which ends at 106"):
        start(SwitchPosition(offsets={("orders", 0): 107}), held)


def test_a_gap_may_be_accepted() -> None:
    for position in (SwitchPosition(offsets={("orders", 0): 90}), SwitchPosition(time=900)):
        assert start(position, LOG, on_data_loss=OnDataLoss.CONTINUE) == 100


@pytest.mark.parametrize(
    ("log", "policy", "gone"),
    [
        (LOG, OnDataLoss.CONTINUE, "partition 0 from offset 0 to 99"),
        (Log(first=100), OnDataLoss.CONTINUE, "partition 0 from offset 0 to 99"),
        (replace(LOG, times=[1, *LOG.times]), OnDataLoss.CONTINUE, ""),
        (replace(LOG, first=0), OnDataLoss.CONTINUE, ""),
        (replace(LOG, times=[1, *LOG.times]), OnDataLoss.FAIL, ""),
    ],
    ids=["first record", "no records", "older record", "nothing is gone", "may not be lost"],
)
def test_what_may_be_gone_behind_a_time_is_told(log: Log, policy: OnDataLoss, gone: str) -> None:
    """With consent it is read on, but not without a word."""
    source = kafka(on_data_loss=policy).starting_after(SwitchPosition(time=900))
    lookup = FakeLookup({SPLIT: log})
    starts = resolve_start(source.starting_offsets, [SPLIT], lookup)
    cut = cut_at_start(source.starting_offsets, starts, lookup)
    split = KafkaPartitionSplit(
        cluster="main", topic="orders", partition=0, offset=starts[SPLIT], is_cut=SPLIT in cut
    )

    told = source.begun_elsewhere([split])

    assert bool(told) is bool(gone)
    assert gone in "".join(told)
    assert all("some may be of 901 ms or later" in text for text in told)


def test_a_partition_without_history_is_read_from_its_first_record() -> None:
    position = SwitchPosition(offsets={("orders", 1): 7})

    assert start(position, Log(first=0, times=[1])) == 0
    assert start(position, LOG, on_data_loss=OnDataLoss.CONTINUE) == 100


@pytest.mark.parametrize("column", ["topic", "partition", "offset"])
def test_offsets_must_be_numbers_of_named_topics(tmp_path: Path, column: str) -> None:
    """The greatest of the texts "9" and "10" is "9"."""
    rows = {"topic": ["orders"], "partition": [0], "offset": [9]}
    values = [b"orders"] if column == "topic" else [str(rows[column][0])]
    pq.write_table(pa.table({**rows, column: values}), tmp_path / "a.parquet")
    source = files(str(tmp_path)).measuring(OFFSETS, field="parts[1]")

    refusal = Lister(NO_SECRETS)(source.list_page(1, None)).refusal

    assert f"column '{column}' is of type" in refusal


def test_a_part_starts_where_it_says_unless_it_starts_after_the_previous_one() -> None:
    source = checked_hybrid([(files(), None), (kafka(), None)], field="parts")
    assert source.started(1, SwitchPosition()) == kafka()

    source = checked_hybrid([(files(), None), (kafka(), TIME)], field="parts")
    assert source.started(1, SwitchPosition(time=4)) == kafka(
        starting_offsets=AfterHistory(millis=5)
    )


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([(files(), None)], "at least two parts"),
        ([(kafka(), None), (files(), None)], "part kafka never ends"),
        ([(files(discovery_interval=5.0), None), (kafka(), None)], "part files never ends"),
        ([(files(), TIME), (kafka(), None)], "first part has no part before it"),
        ([(files(kind=Format.JSON), None), (kafka(), TIME)], "write Parquet files"),
        ([(files(), None), (kafka("a", "b"), OFFSETS)], "which of 2 clusters"),
        ([(files(), None), (files(), TIME)], "part files-1 cannot start at a position"),
    ],
)
@pytest.mark.scenario("Q6")
def test_options_that_exclude_each_other_are_named(parts: list[Any], why: str) -> None:
    """A sentence names the part."""
    with pytest.raises(InvalidSpecError, match=why):
        checked_hybrid(parts, field="parts")


def test_a_state_of_other_parts_is_refused() -> None:
    two: HybridSource = checked_hybrid([(files(), None), (kafka(), None)], field="parts")
    other = checked_hybrid([(files(), None), (files(), None)], field="parts")
    state = two.parts[1].source
    written = two.encode_state(HybridState(part="kafka", state=state.decode_state(1, _DISCOVERY)))

    with pytest.raises(StateError, match="files-0, files-1"):
        other.decode_state(1, written)


def test_what_the_checkpoint_keeps_between_two_parts_is_stored() -> None:
    """A state without any is written as older versions wrote it."""
    two: HybridSource = checked_hybrid([(files(), None), (kafka(), None)], field="parts")
    state = HybridState(part="kafka", state=two.parts[1].source.decode_state(1, _DISCOVERY))
    kept = frozenset({("files", "a.txt", 0), ("files", "b.txt", 64)})

    written = two.encode_state(replace(state, kept=kept))

    assert two.decode_state(1, written).kept == kept
    assert written.keys() - two.encode_state(state).keys() == {"kept"}
    assert two.decode_state(1, two.encode_state(state)).kept == frozenset()


def test_a_part_that_is_put_before_the_one_that_is_read_is_refused() -> None:
    """It would never be read."""
    two = checked_hybrid([(files(), None), (kafka(), None)], field="parts")
    three = checked_hybrid([(files(), None), (files("/two"), None), (kafka(), None)], field="parts")
    state = two.parts[1].source.decode_state(1, _DISCOVERY)
    written = two.encode_state(HybridState(part="kafka", state=state))

    assert two.decode_state(1, written).part == "kafka"
    with pytest.raises(StateError, match=r"of the parts files, kafka, .* files-0, files-1, kafka"):
        three.decode_state(1, written)

    of_older_version = {name: value for name, value in written.items() if name != "parts"}
    assert three.decode_state(1, of_older_version).part == "kafka"


@pytest.mark.scenario("Q7")
def test_a_start_that_changes_while_it_is_measured_is_refused() -> None:
    """Files that were listed before say nothing of the new columns."""

    def hybrid(measure: Measure | None) -> HybridSource:
        return checked_hybrid([(files(), None), (kafka(), measure)], field="parts")

    written = hybrid(TIME).encode_state(HybridState(part="files", state=PullState()))

    assert hybrid(TIME).decode_state(1, written).part == "files"
    for other in (OFFSETS, None):
        with pytest.raises(StateError, match="startAfter has changed while part files is read"):
            hybrid(other).decode_state(1, written)


def test_a_start_may_change_when_it_has_been_used() -> None:
    source = checked_hybrid([(files(), None), (kafka(), TIME)], field="parts")
    state = HybridState(part="kafka", state=source.parts[1].source.decode_state(1, _DISCOVERY))
    written = source.encode_state(state)

    other = checked_hybrid([(files(), None), (kafka(), OFFSETS)], field="parts")

    assert other.decode_state(1, written).part == "kafka"


_DISCOVERY: dict[str, Any] = {
    "unassigned": {"positions": [], "attributes": []},
    "preferred": [],
    "finished": [],
    "retained": {"positions": [], "attributes": []},
    "retainedUntil": [],
    "discovered": [],
    "rebalanceDue": False,
}


def test_names_of_parts() -> None:
    assert names_of(["files", "kafka"]) == ("files", "kafka")
    assert names_of(["files", "kafka", "files"]) == ("files-0", "kafka", "files-2")


def test_unread_records_count_in_the_part_that_knows_them() -> None:
    """The autoscaler leaves the readers of files alone, and follows the load of the topic."""
    source = checked_hybrid([(files(), None), (kafka(), None)], field="parts")
    first, last = source.names

    assert not source.counts_unread((first, "/in/a", 0))
    assert source.counts_unread((last, *SPLIT))


@pytest.mark.parametrize(
    "position", [SwitchPosition(time=900), SwitchPosition(offsets={("orders", 0): 90})]
)
def test_no_cluster_is_asked_what_is_gone_where_nothing_may_be_or_offsets_tell(
    position: SwitchPosition,
) -> None:
    policy = OnDataLoss.FAIL if position.offsets == {} else OnDataLoss.CONTINUE
    source = kafka(on_data_loss=policy).starting_after(position)

    assert not cut_at_start(source.starting_offsets, {SPLIT: 100}, FakeLookup({}))
