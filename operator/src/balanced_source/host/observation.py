"""What a reader host tells people of its next micro-batch.

Lag, records and skew, per reader and the worst splits.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from balanced_source.api import Json, SplitId
from balanced_source.documents.lags import to_metrics
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.planning import ReaderPlan, plan
from balanced_source.host.reader_figures import ReaderFigures

WORST: Final = 20
"""Splits that are told of one by one, those with the most lag: a progress message is no place for
ten thousand."""


_NONE: Final[Mapping[int, ReaderFigures]] = MappingProxyType({})

NOTHING_DELETED: Final[Mapping[SplitId, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderLoad:
    """One reader.

    Attributes:
        splits: that it owns.
        lag: records not yet read after this micro-batch, of the splits that it owns; None while
            that of any is unknown.
        records: offsets that it reads in this micro-batch, its own splits' or parts of others'.
        running: those of them that are not delivered yet.
    """

    splits: int
    lag: int | None
    records: int
    running: int

    @property
    def unread(self) -> int | None:
        """Records that are not delivered yet; None while unknown."""
        return None if self.lag is None else self.lag + self.running

    def to_json(self) -> dict[str, Json]:
        """For the query's progress."""
        return {"splits": self.splits, "lag": self.lag, "records": self.records}


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One micro-batch, before it is read.

    Attributes:
        epoch: of the assignment.
        parallelism: readers of the source.
        readers: subtask → its load.
        lags: split → records not yet read after this micro-batch; None while its end is unknown.
        behind: split → milliseconds by which it was behind its newest record when the former
            micro-batch ended; None while that is unknown. Empty for sources that count records
            instead.
        plans: what each reader reads in this micro-batch.
        is_read: whether that is delivered already.
        is_whole: whether all that is unread is of these splits.
    """

    epoch: int = 0
    parallelism: int = 0
    readers: Mapping[int, ReaderLoad]
    lags: Mapping[SplitId, int | None]
    behind: Mapping[SplitId, int | None] = field(default_factory=dict)
    plans: Sequence[ReaderPlan] = ()
    is_read: bool = False
    is_whole: bool = True

    @property
    def lag(self) -> int | None:
        """Of all splits; None while that of any is unknown."""
        return total(self.lags.values()) if self.is_whole else None

    @property
    def unread(self) -> int | None:
        """Records of all splits that are not delivered yet; None while unknown.

        It is what people and autoscalers see as lag while the micro-batch runs: without limits a
        micro-batch takes everything that there is, however long it lasts, and leaves a lag of 0.
        """
        lag = self.lag
        return None if lag is None else lag + sum(r.running for r in self.readers.values())

    @property
    def millis_behind(self) -> int | None:
        """Milliseconds by which the slowest split is behind; None while that of any is unknown."""
        # One unknown split may be the slowest, so the whole is unknown too.
        known = [millis for millis in self.behind.values() if millis is not None]
        return max(known) if known and len(known) == len(self.behind) else None

    @property
    def unknown(self) -> int:
        """Splits whose lag is unknown, because their cluster or their leader does not answer."""
        return sum(lag is None for lag in self.lags.values())

    @property
    def records(self) -> int:
        """Offsets of the micro-batch."""
        return sum(load.records for load in self.readers.values())

    @property
    def skew(self) -> float:
        """Records of the busiest reader over the mean.

        1 is even, and what a micro-batch without records has.
        """
        records = self.records
        if not records:
            return 1.0
        return max(load.records for load in self.readers.values()) * len(self.readers) / records

    def delivered(self) -> "Observation":
        """Return the observation once the micro-batch is delivered."""
        readers = {reader: replace(load, running=0) for reader, load in self.readers.items()}
        return replace(self, readers=readers, is_read=True)

    def lags_for_report(self) -> dict[str, Json]:
        """Return what is unread for the `metrics` of a report, of bounded size.

        See `documents.lags`.
        """
        unread = dict(self.lags)
        running = () if self.is_read else self.plans
        for read in (r for planned in running for r in planned.ranges):
            if (left := unread.get(read.split_id)) is not None:
                unread[read.split_id] = left + (read.end or 0) - (read.start or 0)
        return to_metrics(unread, {reader: load.unread for reader, load in self.readers.items()})

    def to_json(self, figures: Mapping[int, ReaderFigures] = _NONE) -> dict[str, Json]:
        """For the query's progress, as `sources[].latestOffset`.

        Args:
            figures: what the tasks of readers have measured, where it is known.
        """
        lags = {s: lag for s, lag in self.lags.items() if lag}
        worst = sorted(lags, key=lambda s: (-lags[s], s))[:WORST]
        return {
            "epoch": self.epoch,
            "parallelism": self.parallelism,
            "lag": self.lag,
            "records": self.records,
            "skew": round(self.skew, 3),
            "readers": {
                str(reader): load.to_json() | _shown(figures.get(reader))
                for reader, load in self.readers.items()
            },
            "worstSplits": [{"split": list(s), "lag": lags[s]} for s in worst],
            **({"splitsWithUnknownLag": self.unknown} if self.unknown else {}),
            **self._behind_to_json(),
        }

    def _behind_to_json(self) -> dict[str, Json]:
        if not self.behind:
            return {}
        known = [(s, millis) for s, millis in self.behind.items() if millis is not None]
        known.sort(key=lambda entry: (-entry[1], entry[0]))
        splits: list[Json] = [
            {"split": list(s), "millisBehind": millis} for s, millis in known[:WORST]
        ]
        return {"millisBehind": self.millis_behind, "splitsBehind": splits}


def observe(
    begin: StreamOffset,
    end: StreamOffset,
    ends: Mapping[SplitId, int],
    behind: Mapping[SplitId, int | None] | None = None,
    *,
    plans: Sequence[ReaderPlan] | None = None,
    firsts: Mapping[SplitId, int] = NOTHING_DELETED,
    is_read: bool = False,
    is_whole: bool = True,
) -> Observation:
    """What the micro-batch from `begin` to `end` means for each reader.

    Args:
        begin: where it starts.
        end: where it ends.
        ends: how far splits can be read; one that is missing has an unknown lag, which is not 0.
        behind: see `Observation`.
        plans: of the micro-batch, where it was planned already.
        firsts: see `Look.firsts`.
        is_read: whether it is delivered already, as for sources with a journal, whose micro-batches
            are known only then.
        is_whole: see `Observation`.
    """
    # An end that is older than the position, such as one of a slow answer, is no negative lag.
    positions = {**end.positions, **_later(end, firsts)} if firsts else end.positions
    lags = {
        s: None if (to := ends.get(s)) is None else n if (n := to - (p or 0)) > 0 else 0
        for s, p in positions.items()
    }
    plans = plan(begin, end) if plans is None else plans
    records = {p.subtask_id: _records(p, firsts) for p in plans}
    owned: dict[int, list[int | None]] = {reader: [] for reader in end.readers}
    for split_id, reader in end.owners.items():
        owned.setdefault(reader, []).append(lags.get(split_id))
    return Observation(
        epoch=end.epoch,
        parallelism=end.parallelism,
        readers={
            reader: ReaderLoad(
                splits=len(held),
                lag=total(held),
                records=(count := records.get(reader, 0)),
                running=0 if is_read else count,
            )
            for reader, held in owned.items()
        },
        lags=lags,
        behind=behind or {},
        plans=plans,
        is_read=is_read,
        is_whole=is_whole,
    )


def _later(end: StreamOffset, firsts: Mapping[SplitId, int]) -> dict[SplitId, int]:
    """Return where the next records are of the splits whose next positions were deleted."""
    known = end.positions
    return {s: max(known[s] or 0, first) for s, first in firsts.items() if s in known}


def _records(reader: ReaderPlan, firsts: Mapping[SplitId, int]) -> int:
    """Return how many positions of a reader's ranges can still be read."""
    if not firsts:
        return sum((r.end or 0) - (r.start or 0) for r in reader.ranges)
    starts = ((r, max(r.start or 0, firsts.get(r.split_id, 0))) for r in reader.ranges)
    return sum(max(0, (r.end or 0) - start) for r, start in starts)


def _shown(figures: ReaderFigures | None) -> dict[str, Json]:
    # What was not measured is missing: it is no 0.
    return {} if figures is None else figures.to_json()


def total(lags: Iterable[int | None]) -> int | None:
    """Return the sum; None, which is unknown, if any of them is."""
    try:
        return sum(lags)  # type: ignore[arg-type]
    except TypeError:  # the fastest way to find None among 10,000 numbers
        return None
