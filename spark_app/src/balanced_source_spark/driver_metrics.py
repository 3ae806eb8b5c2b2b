"""Prometheus metrics of the planning process.

What a query of this source reads, and how far behind it is.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, start_http_server

from balanced_source.host.observation import Observation
from balanced_source.host.reader_figures import ReaderFigures
from balanced_source.names import split_name
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark.contract.hooks import Figure

_PREFIX: Final = "balanced_source_host_"

_WORK: Final = {
    "records_read": "Records that a reader has delivered since the query started.",
    "bytes_read": "Bytes of these records in memory.",
    "source_busy_seconds": (
        "Seconds that a reader has spent in its source since the query started: waiting, fetching"
        " and decoding."
    ),
    "downstream_busy_seconds": (
        "Seconds that a reader has waited for Spark to take and process its records since the"
        " query started."
    ),
    "first_records_seconds": "Seconds until the first records of a reader's newest task.",
}
"""Names → texts of a reader's figures, in the order of `note_readers`."""

log = get_logger(__name__)


class DriverMetrics:
    """Gauges of one query, in a registry of their own.

    Args:
        source: label of all of them; name of the source, or `embedded`.
        namespace: label of all of them; of the source, and empty without one.
        port: where to serve them; None: nowhere.
    """

    def __init__(self, source: str, *, namespace: str = "", port: int | None) -> None:
        self.registry = CollectorRegistry()
        self._of = (namespace, source)
        self._lag = self._gauge(
            "lag_records",
            "Records not yet read, with those of the running micro-batch; no series while unknown.",
            "reader",
        )
        self._unknown = self._gauge(
            "lag_unknown_splits",
            "Splits whose lag in records is unknown: the server does not answer, or does not"
            " count.",
        )
        self._planned = self._gauge(
            "planned_records", "Offsets of the planned micro-batch.", "reader"
        )
        self._splits = self._gauge("splits", "Splits that a reader owns.", "reader")
        self._epoch = self._gauge("epoch", "Epoch of the assignment in effect.")
        self._skew = self._gauge("skew", "Records of the busiest reader over the mean; 1 is even.")
        self._aligned = self._gauge(
            "aligned_to_seconds", "Event time up to which splits are admitted."
        )
        text = (
            "Seconds by which a split is behind its newest record, for sources that tell; no series"
            " while unknown."
        )
        self._behind = self._gauge("split_behind_seconds", text, "split")
        self._work = {
            name: self._gauge(f"reader_{name}", text, "reader") for name, text in _WORK.items()
        }
        self._figures: dict[str, Gauge] = {}
        if port is not None:
            self._serve(port)

    def note(self, seen: Observation, *, aligned_to: int | None) -> None:
        """A micro-batch is planned; `aligned_to` in milliseconds."""
        for gauge in (self._lag, self._planned, self._splits, self._behind):
            gauge.clear()  # readers and splits that are gone
        for reader, load in seen.readers.items():
            labels = (*self._of, str(reader))
            if load.unread is not None:
                self._lag.labels(*labels).set(load.unread)
            self._planned.labels(*labels).set(load.records)
            self._splits.labels(*labels).set(load.splits)
        for split_id, millis in seen.behind.items():
            if millis is not None:
                self._behind.labels(*self._of, split_name(split_id)).set(millis / 1000)
        self._unknown.labels(*self._of).set(seen.unknown)
        self._epoch.labels(*self._of).set(seen.epoch)
        self._skew.labels(*self._of).set(seen.skew)
        if aligned_to is not None:
            self._aligned.labels(*self._of).set(aligned_to / 1000)

    def note_readers(self, figures: Mapping[int, ReaderFigures]) -> None:
        """Set what the tasks of each reader have measured."""
        for gauge in self._work.values():
            gauge.clear()
        for reader, one in figures.items():
            values = (one.records, one.size, one.source, one.downstream, one.first)
            for gauge, value in zip(self._work.values(), values, strict=True):
                if value is not None:
                    gauge.labels(*self._of, str(reader)).set(value)

    def note_figures(self, figures: Iterable[Figure]) -> None:
        """Set the connector's own gauges."""
        for gauge in self._figures.values():
            gauge.clear()  # such as those of brokers and clusters that are gone
        for figure in figures:
            if figure.name not in self._figures:
                self._figures[figure.name] = self._gauge(figure.name, figure.text, *figure.labels)
            self._figures[figure.name].labels(*self._of, *figure.labels.values()).set(figure.value)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(_PREFIX + name, text, ["namespace", "source", *labels], registry=self.registry)

    def _serve(self, port: int) -> None:
        try:
            start_http_server(port, registry=self.registry)
        except OSError as error:  # another query of this driver: metrics must not end this one
            log.warning("metrics are not served", port=port, error=str(error))
