"""What a task does with the event times of its records, where splits are aligned."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from balanced_source.api import SplitId
from balanced_source.errors import ContractViolationError
from balanced_source.reader.keeping import kept

Sink = Callable[[Any, int | None], None]


class Unaligned:
    """Splits are not aligned: records pass as they come.

    Args:
        sink: gets the records.
    """

    def __init__(self, sink: Sink) -> None:
        self.on_record = sink
        self.kept_back: AbstractSet[SplitId] = frozenset()

    def on_split(self, split_id: SplitId) -> None:
        """The next record is of this split."""

    def take(self) -> Iterable[SplitId]:
        """Return no split: none is kept back."""
        return ()

    def known(self) -> Mapping[SplitId, int]:
        """Return no times."""
        return {}


class EventTimes:
    """Keeps back records beyond the time up to which splits are aligned, and what follows them.

    Spark's watermark is that of the newest record of all, so not even one of them may be emitted.
    A reader tells its positions between two polls. So what one poll brings of a split is taken or
    kept back as a whole, and the split is read again from before that poll.

    Args:
        bound: see `Pause.beyond`.
        sink: gets the records that are taken, with their times.
    """

    def __init__(self, bound: int, sink: Sink) -> None:
        self._bound = bound
        self._sink = sink
        self._newest: dict[SplitId, int] = {}
        self._without: set[SplitId] = set()
        self._split: SplitId = ()
        self._staged: dict[SplitId, list[tuple[Any, int | None]]] = {}
        self.kept_back: set[SplitId] = set()
        """Splits of which nothing more is taken."""

    def on_split(self, split_id: SplitId) -> None:
        """The next record is of this split."""
        self._split = split_id

    def on_record(self, record: Any, timestamp: int | None) -> None:
        """A record was emitted."""
        split_id = self._split
        if timestamp is None:
            self._without.add(split_id)
        else:
            self._newest[split_id] = max(timestamp, self._newest.get(split_id, timestamp))
            if timestamp > self._bound:
                self.kept_back.add(split_id)
        # The reader may change it with the next one.
        self._staged.setdefault(split_id, []).append((kept(record), timestamp))

    def take(self) -> Iterable[SplitId]:
        """Pass on what may be emitted of the newest poll; return the splits that are kept back."""
        staged, self._staged = self._staged, {}
        for split_id, records in staged.items():
            for record, timestamp in records if split_id not in self.kept_back else ():
                self._sink(record, timestamp)
        return self.kept_back.intersection(staged)

    def known(self) -> Mapping[SplitId, int]:
        """Return how far in time splits are: up to where no record of theirs comes any more.

        For a split that is kept back, the time of what was kept back.

        Raises:
            ContractViolationError: records of a split have no time. It would hold all others.
        """
        if lacking := sorted(self._without - self._newest.keys()):
            where = f"of split {lacking[0]}" if lacking[0] else "by the output of the reader"
            raise ContractViolationError(
                f"the reader has emitted records {where} without a time, so splits cannot be"
                " aligned: give `collect` the time of each record, by the output of its split"
            )
        return dict(sorted(self._newest.items()))
