"""What several hosts of one source have written into their file sinks.

When each split was read, by which host.

Reads nothing but the files of the sinks and, for the proof, the broker's log. The sinks must keep
the log entry of each micro-batch: set `spark.sql.streaming.fileSink.log.compactInterval` to more
than there will be.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow.parquet as pq

from chaos.checker import broker_log, spark_files

Split = tuple[str, str, int]
"""Cluster, topic, partition."""

_COLUMNS: Final = ["cluster", "topic", "partition"]


class Commit(NamedTuple):
    """A micro-batch that a host has committed to its sink.

    Attributes:
        at: when the sink's log got its entry; seconds since the epoch.
        host: name of the host.
        batch: number of the micro-batch.
        rows: number of its records.
        splits: of which it has records.
    """

    at: float
    host: str
    batch: int
    rows: int
    splits: frozenset[Split]


class Gap(NamedTuple):
    """A time in which no host has committed records of a split.

    Attributes:
        seconds: that it lasted.
        began: when the last micro-batch before it was committed; seconds since the epoch.
        split: that was not read.
        hosts: that had it before and after.
    """

    seconds: float
    began: float
    split: Split
    hosts: tuple[str, str]


class Move(NamedTuple):
    """The first micro-batch of a split on another host than before."""

    split: Split
    before: Commit
    after: Commit


class Proof(NamedTuple):
    """The broker's log against all sinks."""

    produced: int
    delivered: int
    lost: int
    duplicated: int

    @property
    def is_exact(self) -> bool:
        """Whether each record was delivered once."""
        return not (self.lost or self.duplicated) and self.produced == self.delivered


class HostSinks:
    """The sinks of all hosts of a source; what was read once is remembered.

    Args:
        first: folder of the first host. That of host 2 ends in `-host-2`.
    """

    def __init__(self, first: Path) -> None:
        self._first = first
        self._known: dict[Path, Commit] = {}

    @property
    def folders(self) -> dict[str, Path]:
        """Name of each host that has ever written, and its folder."""
        prefix = f"{self._first.name}-host-"
        further = self._first.parent.glob(f"{prefix}*")
        return {"0": self._first} | {folder.name.removeprefix(prefix): folder for folder in further}

    def commits(self) -> list[Commit]:
        """Return the micro-batches that hold records, in the order in which they were committed."""
        for host, sink in self.folders.items():
            for entry in _log(sink):
                if entry not in self._known:
                    self._known[entry] = _commit(host, sink, entry)
        return sorted(commit for commit in self._known.values() if commit.splits)

    @property
    def rows(self) -> int:
        """Number of records."""
        return sum(commit.rows for commit in self.commits())

    def prove(self, dump: Path) -> Proof:
        """Compare a dump of the broker's log with the sinks.

        Each record by partition, offset and content.

        Args:
            dump: see `chaos.checker.broker_log.dump`.
        """
        produced = Counter(
            (r.cluster, r.topic, r.partition, r.offset, r.digest) for r in broker_log.load(dump)
        )
        attempts = (
            attempt for sink in self.folders.values() for attempt in spark_files.attempts(sink)
        )
        delivered = Counter(
            (*row[:4], row.digest) for attempt in attempts for row in attempt.rows()
        )
        return Proof(
            produced=produced.total(),
            delivered=delivered.total(),
            lost=(produced - delivered).total(),
            duplicated=(delivered - produced).total(),
        )


def gaps(found: Iterable[Commit]) -> Iterator[Gap]:
    """Yield the time between each two successive commits of a split, whichever hosts made them."""
    for split, times in _by_split(found).items():
        for before, after in itertools.pairwise(times):
            yield Gap(after.at - before.at, before.at, split, (before.host, after.host))


def moves(found: Iterable[Commit]) -> Iterator[Move]:
    """Yield each change of the host that reads a split."""
    for split, times in _by_split(found).items():
        for before, after in itertools.pairwise(times):
            if before.host != after.host:
                yield Move(split, before, after)


def _log(sink: Path) -> list[Path]:
    log = sink / "_spark_metadata"
    return [entry for entry in log.iterdir() if entry.name.isdigit()] if log.is_dir() else []


def _commit(host: str, sink: Path, entry: Path) -> Commit:
    tables = [pq.read_table(sink / name, columns=_COLUMNS) for name in spark_files.added(entry)]
    found = [table.group_by(_COLUMNS).aggregate([]).to_pylist() for table in tables]
    splits = frozenset(
        (row["cluster"], row["topic"], row["partition"]) for rows in found for row in rows
    )
    return Commit(
        entry.stat().st_mtime,
        host,
        int(entry.name),
        sum(table.num_rows for table in tables),
        splits,
    )


def _by_split(found: Iterable[Commit]) -> dict[Split, list[Commit]]:
    times: dict[Split, list[Commit]] = {}
    for commit in sorted(found):
        for split in commit.splits:
            times.setdefault(split, []).append(commit)
    return times
