"""The rows of a source's dashboard for which its drivers must be scraped."""

from typing import Final

from support.dashboards import panels
from support.dashboards.panels import About, AnyPanel
from support.dashboards.promql import DRIVER, RATE

READER: Final = "reader {{reader}}"
CLUSTER: Final = "{{cluster}}"


def row_readers() -> list[AnyPanel]:
    """Return the panels about readers."""
    return [
        _lag_by_reader(),
        _records_of_the_micro_batch_by_reader(),
        _splits_by_reader(),
        _skew(),
        _splits_with_an_unknown_lag(),
        _time_behind_by_split(),
        _records_read_by_reader(),
        _bytes_read_by_reader(),
        _time_to_the_first_records_by_reader(),
        _time_in_the_source_by_reader(),
        _time_downstream_by_reader(),
        _epoch_of_the_drivers(),
        _event_time_behind_now(),
    ]


def _lag_by_reader() -> AnyPanel:
    return panels.ranked(
        About(
            title="Lag by reader",
            text=(
                "If all readers are behind, add readers. If only some are, splits are uneven: "
                "use the strategy LoadAware, or maxRecordsPerReader. No data means that the "
                "drivers are not scraped; a gap means that the lag of a split was unknown."
            ),
            alerts=["BalancedSourceLagGrowing"],
            width=8,
        ),
        panels.RECORDS,
        f"max by (reader) ({DRIVER('lag_records')})",
        legend=READER,
        axis="records",
    )


def _records_of_the_micro_batch_by_reader() -> AnyPanel:
    return panels.ranked(
        About(
            title="Records of the micro-batch by reader",
            text=(
                "Offsets that each reader gets in the micro-batch that was planned last. Far "
                "from even for long: see Skew."
            ),
            width=8,
        ),
        panels.RECORDS,
        f"max by (reader) ({DRIVER('planned_records')})",
        legend=READER,
        axis="records",
    )


def _splits_by_reader() -> AnyPanel:
    return panels.ranked(
        About(
            title="Splits by reader",
            text="Splits that each reader owns in the epoch in effect.",
            width=8,
        ),
        panels.COUNT,
        f"max by (reader) ({DRIVER('splits')})",
        legend=READER,
        axis="splits",
    )


def _skew() -> AnyPanel:
    return panels.named(
        About(
            title="Skew",
            text=(
                "Records of the busiest reader over the mean, in the planned micro-batch: 1 "
                "is even. Well above 1 for long: use the strategy LoadAware, or "
                "maxRecordsPerReader."
            ),
            width=8,
        ),
        panels.COUNT,
        Skew=f"max({DRIVER('skew')})",
    )


def _splits_with_an_unknown_lag() -> AnyPanel:
    return panels.named(
        About(
            title="Splits with an unknown lag",
            text=(
                "Their broker does not answer, or the source does not count records. They are "
                "left out of micro-batches until they answer; all others are read."
            ),
            width=8,
        ),
        panels.COUNT,
        axis="splits",
        Unknown=f"sum({DRIVER('lag_unknown_splits')})",
    )


def _time_behind_by_split() -> AnyPanel:
    return panels.ranked(
        About(
            title="Time behind by split",
            text=("The ten slowest splits of a source that tells the time by which it is behind."),
            width=8,
        ),
        panels.SECONDS,
        f"topk(10, max by (split) ({DRIVER('split_behind_seconds')}))",
        legend="{{split}}",
    )


def _records_read_by_reader() -> AnyPanel:
    return panels.ranked(
        About(
            title="Records read by reader",
            text=(
                "Records that each reader delivers per second. Readers count when a task ends: "
                "micro-batches of more than two minutes show as peaks. No data here although "
                "there is a lag: a network policy keeps the tasks' figures from the driver."
            ),
            width=8,
        ),
        panels.RECORDS_PER_SECOND,
        _per_second("reader_records_read"),
        legend=READER,
    )


def _bytes_read_by_reader() -> AnyPanel:
    return panels.ranked(
        About(
            title="Bytes read by reader",
            text=(
                "Bytes in memory, as Arrow, of the records that each reader delivers per "
                "second. A reader with few records and many bytes has the large records."
            ),
            width=8,
        ),
        panels.BYTES_PER_SECOND,
        _per_second("reader_bytes_read"),
        legend=READER,
    )


def _time_to_the_first_records_by_reader() -> AnyPanel:
    return panels.ranked(
        About(
            title="Time to the first records by reader",
            text=(
                "Time until the first records of each reader's newest task that had any: "
                "connecting, and the first fetch. High for all readers: the servers are slow "
                "or far away. High for one: look at the servers that have its splits."
            ),
            width=8,
        ),
        panels.SECONDS,
        f"max by (reader) ({DRIVER('reader_first_records_seconds')})",
        legend=READER,
    )


def _time_in_the_source_by_reader() -> AnyPanel:
    return panels.ranked(
        About(
            title="Time in the source by reader",
            text=(
                "Share of the time in which a reader waits for its source, fetches and decodes. "
                "Near 100 % for all readers while lag grows: reading is the limit, add readers. "
                "Near 100 % for some: splits are uneven, or their servers are slow. Readers "
                "count when a task ends: one of more than two minutes shows as a peak above "
                "100 %."
            ),
        ),
        panels.PERCENT,
        f"100 * {_per_second('reader_source_busy_seconds')}",
        legend=READER,
    )


def _time_downstream_by_reader() -> AnyPanel:
    return panels.ranked(
        About(
            title="Time downstream by reader",
            text=(
                "Share of the time in which a reader waits for Spark to take and process its "
                "records. Above the time in the source while lag grows: the query is the limit, "
                "and more readers help only if it runs in the same tasks."
            ),
        ),
        panels.PERCENT,
        f"100 * {_per_second('reader_downstream_busy_seconds')}",
        legend=READER,
    )


def _per_second(total: str) -> str:
    """Return the growth of a total of each reader; it starts at zero with each driver."""
    return f"max by (reader) (rate({DRIVER(total)}{RATE}))"


def _epoch_of_the_drivers() -> AnyPanel:
    return panels.named(
        About(
            title="Epoch of the drivers",
            text=(
                "Epoch that each driver reads in: the oldest and the newest of all hosts. "
                "They differ only while a host adopts a new one."
            ),
            alerts=["BalancedSourceEpochNotAdopted"],
        ),
        panels.COUNT,
        axis="epoch",
        Oldest=f"min({DRIVER('epoch')})",
        Newest=f"max({DRIVER('epoch')})",
    )


def _event_time_behind_now() -> AnyPanel:
    return panels.named(
        About(
            title="Event time behind now",
            text=(
                "With event-time alignment: how far the time up to which splits are admitted "
                "is behind now. If it grows, one source of the group holds the others back."
            ),
        ),
        panels.SECONDS,
        Behind=f"time() - min({DRIVER('aligned_to_seconds')})",
    )


def row_brokers() -> list[AnyPanel]:
    """Return the panels about the brokers of a Kafka source."""
    return [_connected_brokers(), _round_trip_to_the_slowest_broker(), _delay_by_quotas()]


def _connected_brokers() -> AnyPanel:
    return panels.ranked(
        About(
            title="Connected brokers",
            text=(
                "Brokers of each cluster to which the planning process has a connection. No "
                "data for sources other than Kafka. At zero, check the network and the "
                "credentials."
            ),
            width=8,
        ),
        panels.COUNT,
        f"max by (cluster) ({DRIVER('kafka_brokers_connected')})",
        legend=CLUSTER,
        axis="brokers",
    )


def _round_trip_to_the_slowest_broker() -> AnyPanel:
    return panels.ranked(
        About(
            title="Round trip to the slowest broker",
            text=(
                "Mean round trip of the requests of the planning process. Above 0.1 s the "
                "planning of micro-batches becomes slow: read in the region of the brokers."
            ),
            width=8,
        ),
        panels.SECONDS,
        f"max by (cluster) ({DRIVER('kafka_rtt_seconds')})",
        legend=CLUSTER,
    )


def _delay_by_quotas() -> AnyPanel:
    return panels.ranked(
        About(
            title="Delay by quotas",
            text=(
                "Mean delay that a quota of the worst broker adds to requests. Above zero, "
                "raise the quota of the user, or read with fewer readers."
            ),
            width=8,
        ),
        panels.SECONDS,
        f"max by (cluster) ({DRIVER('kafka_throttle_seconds')})",
        legend=CLUSTER,
    )
